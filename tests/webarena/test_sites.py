import os
import threading

import httpx
import pytest

from agentgym_envs.webarena.browser.sites import LocalSites, local_sites
from tests.webarena.conftest import Site


def get(host: str, path: str = "/") -> httpx.Response:
    return httpx.get(f"http://{local_sites().address}{path}", headers={"host": host}, trust_env=False)


@pytest.mark.parametrize("host", ["a.test", "a.test:80"])
def test_sites_are_selected_by_host(site: Site, host: str) -> None:
    site.put("/x", lambda request: f"{request.method} {request.host}")
    assert get(host, "/x").text == f"GET {host}"
    assert (get("nobody.test").status_code, get("nobody.test").text) == (404, "There is no such site.")


def test_all_threads_share_one_server() -> None:
    servers: list[LocalSites] = []
    threads = [threading.Thread(target=lambda: servers.append(local_sites())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(servers)) == 1 and local_sites().address == servers[0].address


def test_a_forked_process_has_its_own_server(site: Site) -> None:
    address = local_sites().address
    child = os.fork()
    if not child:
        other = local_sites()
        other.mount("a.test", site)
        site.put("/", "Child")
        os._exit(0 if other.address != address and get("a.test").text == "Child" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

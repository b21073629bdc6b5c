"""Servers behind nginx and TLS: sticky sessions, streams, and restarts of one of two servers."""

import contextlib
import gc
import shutil
import signal
import threading
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs import make_vec
from agentgym_envs.errors import EnvError
from agentgym_envs.http.app import EnvServer, create_app
from agentgym_envs.http.run import background_server, make_server
from tests.http.nginx import certificate, needs_nginx, nginx
from tests.http.tools import COUNT, SLOW, TOYS, Api, server_process
from tests.ports import free_port
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow  # too slow for the fast run
CLIENTS, SESSIONS = 10, 100
NINE = {"task": "count/9"}


@contextlib.contextmanager
def two_servers():
    with background_server(TOYS, workers=1) as one, background_server(TOYS, workers=1) as two:
        yield [int(url.rpartition(":")[2]) for url in (one, two)]


@pytest.fixture
def trusted(tmp_path, monkeypatch):
    """Trust the certificate that is made in `tmp_path`, as a user would."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))


@needs_nginx
def test_a_client_plays_through_nginx_and_tls(tmp_path, trusted):
    with two_servers() as ports, nginx(tmp_path, "one address", ports) as url:
        env = gym.make(COUNT, base_url=url)
        env.reset(seed=0, options=NINE)
        assert [env.step("up")[0] for _ in range(3)] == ["1", "2", "3"]
        assert "too long" in env.step("x" * 2**21)[0]
        slow = make_vec(SLOW, 4, base_url=url, infos="list")
        slow.reset(seed=0, options=NINE)
        assert slow.step(["sleep 0.1", "up", "up", "up"])[0] == ("slept", "1", "1", "1")
        for each in (env, slow):
            each.close()
        assert [Api(f"http://127.0.0.1:{port}").sessions() for port in ports] == [0, 0]


@needs_nginx
def test_a_proxy_without_tls_keeps_the_fast_paths(tmp_path):
    taken: list[int] = []

    def watch(server: EnvServer) -> list[Any]:
        original = server.step_now

        def step_now(request: Any) -> Any:
            response = original(request)
            taken.append(0 if response is None else response.status_code)
            return response

        server.step_now = step_now  # type: ignore[method-assign]
        return []

    with background_server([COUNT], token="sesame", mounts=[watch]) as server:
        ports = [int(server.rpartition(":")[2])] * 2
        with nginx(tmp_path, "one address", ports, "http") as url:
            env = gym.make(COUNT, base_url=url, token="sesame")
            env.reset(seed=0, options=NINE)
            assert [env.step("up")[0] for _ in range(3)] == ["1", "2", "3"]
            connection = env.unwrapped._sessions.require().connection  # type: ignore[attr-defined]
            assert connection._plain_from == 0 and taken == [200] * 3
            env.close()


@needs_nginx
def test_an_address_for_each_server_spreads_by_load(tmp_path, trusted):
    with two_servers() as ports, nginx(tmp_path, "an address for each server", ports) as url:
        envs = [gym.make(COUNT, base_url=[f"{url}/one", f"{url}/two"]) for _ in range(6)]
        assert [Api(f"http://127.0.0.1:{port}").sessions() for port in ports] == [3, 3]
        for env in envs:
            env.reset(seed=0, options=NINE)
            assert env.step("up")[0] == "1"
            env.close()


@needs_nginx
def test_an_unknown_certificate_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    refused = pytest.raises(EnvError, match="CERTIFICATE_VERIFY_FAILED")
    with two_servers() as ports, nginx(tmp_path, "one address", ports) as url, refused:
        gym.make(COUNT, base_url=url, connect_timeout=0)


@needs_nginx
def test_a_thousand_sessions_survive_the_restart_of_another_server(tmp_path, trusted):
    ports = free_port(), free_port()
    apis = [Api(f"http://127.0.0.1:{port}") for port in ports]
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(server_process(ports[0], [TOYS[0]]))
        stack.enter_context(server_process(ports[1], [TOYS[0]]))
        url = stack.enter_context(nginx(tmp_path, "one address", ports))
        # environments with other settings have a connection of their own, as those of another process
        clients = [make_vec(COUNT, SESSIONS, base_url=url, infos="list", timeout=60.0 + n) for n in range(CLIENTS)]
        for client in clients:
            client.reset(seed=0, options=NINE)
        assert {text for client in clients for text in client.step(["up"] * SESSIONS)[0]} == {"1"}
        held = [api.sessions() for api in apis]
        assert sum(held) == CLIENTS * SESSIONS and min(held) > 0
        first.send_signal(signal.SIGKILL)
        first.wait()
        results = [client.step(["up"] * SESSIONS) for client in clients]
        ends = [{info["stop_reason"] for info in result[4]} for result in results]
        assert ends.count({"env_error"}) * SESSIONS == held[0] and ends.count({None}) * SESSIONS == held[1]
        assert {text for result, end in zip(results, ends, strict=True) if end == {None} for text in result[0]} == {"2"}
        stack.enter_context(server_process(ports[0], [TOYS[0]]))
        for turn, of_the_lost in (("3", None), ("4", "1")):  # the next step begins another episode
            for client, end in zip(clients, ends, strict=True):
                observations = set(client.step(["up"] * SESSIONS)[0])
                assert observations == {turn} if end == {None} else of_the_lost in (None, *observations)
        assert [api.sessions() for api in apis] == held
        for client in clients:
            client.close()


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate: apt-get install openssl")
def test_a_server_with_tls_is_reached(tmp_path, trusted):
    made, key = certificate(tmp_path)
    port = free_port()
    server = make_server(create_app([COUNT]), "127.0.0.1", port, ssl_certfile=str(made), ssl_keyfile=str(key))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    env = gym.make(COUNT, base_url=f"https://127.0.0.1:{port}")
    env.reset(seed=0, options=NINE)
    assert env.step("up")[0] == "1"
    env.close()
    del env
    gc.collect()  # ends its connections, for which the server would wait
    server.should_exit = True
    thread.join(SECONDS)

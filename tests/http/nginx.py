"""nginx before our servers, with TLS and a certificate of its own. Its configuration is that of docs/serving.md."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from tests.http.tools import ROOT
from tests.ports import free_port
from tests.waiting import until

needs_nginx = pytest.mark.skipif(
    not (shutil.which("nginx") or os.path.exists("/usr/sbin/nginx")) or not shutil.which("openssl"),
    reason="nginx and openssl are needed: apt-get install nginx openssl",
)


def documented(name: str) -> str:
    """The configuration in docs/serving.md that follows a comment with its name."""
    page = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
    found = re.search(rf"```nginx\n# {name}\n(.*?)```", page, re.DOTALL)
    assert found, name
    return found[1]


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a self-signed certificate for 127.0.0.1, and its key."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out", str(made), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


@contextlib.contextmanager
def nginx(folder: Path, name: str, ports: Sequence[int], scheme: str = "https") -> Iterator[str]:
    """Run nginx before two servers; yields its address. The certificate is in `folder`."""
    made, key = certificate(folder)
    port = free_port()
    site = documented(name)
    for old, new in [
        ("listen 443 ssl", f"listen 127.0.0.1:{port}{' ssl' if scheme == 'https' else ''}"),
        ("/etc/ssl/agentgym.pem", str(made)),
        ("/etc/ssl/agentgym.key", str(key)),
        ("127.0.0.1:8001", f"127.0.0.1:{ports[0]}"),
        ("127.0.0.1:8002", f"127.0.0.1:{ports[1]}"),
    ]:
        assert old in site, old
        site = site.replace(old, new)
    parts = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{part}_temp_path {folder}/{part};\n" for part in parts)
    user = "user root root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 4096; }}\nhttp {{ access_log off;\n{temporary}{site} }}\n"
    )
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    command = [program, "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen(command)
    url = f"{scheme}://127.0.0.1:{port}"
    try:
        until(lambda: process.poll() is not None or _answers(url, made))
        assert process.poll() is None, (folder / "error.log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait()


def _answers(url: str, made: Path) -> bool:
    try:
        return httpx.get(url, verify=httpx.create_ssl_context(str(made)), trust_env=False).status_code < 600
    except httpx.HTTPError:
        return False

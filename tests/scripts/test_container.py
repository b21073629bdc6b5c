"""The image and the compose files: rules, linters where they are installed, and a run where Docker is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentgym_envs.cli import main
from tests.plugins.startup import python_path
from tests.ports import free_port
from tests.waiting import until

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
COMPOSE = ("compose.yaml", "compose.viewer.yaml")
TOKEN = "a-word-that-clients-send"


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with their arguments, comments and line ends removed."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [(line.split()[0].upper(), line.split(None, 1)[1]) for line in lines.splitlines() if line.strip()]


def faults(text: str) -> list[str]:
    """The rules that a Dockerfile breaks."""
    steps = instructions(text)
    said = {name: [argument for each, argument in steps if each == name] for name, _ in steps}
    base = next((a.partition("=")[2] for a in said.get("ARG", []) if a.startswith("PYTHON=")), "")
    last = [name for name, _ in steps[[name for name, _ in steps].index("FROM") :]]
    found = {
        "the base is not pinned": not re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", base),
        "another base is used": any(a.split()[0] != "${PYTHON}" for a in said["FROM"]),
        "it runs as root": not re.fullmatch(r"[1-9]\d*:[1-9]\d*", said.get("USER", ["0"])[-1]),
        "it has no health check": "HEALTHCHECK" not in said,
        "it adds files": "ADD" in said,
        "it copies the whole folder": any(a.split()[0] in (".", "./") for a in said.get("COPY", [])),
        "pip keeps its cache": any("pip install" in a and "--no-cache-dir" not in a for a in said.get("RUN", [])),
        "a secret is written into it": any("TOKEN" in a for a in [*said.get("ENV", []), *said.get("ARG", [])]),
        "it installs after the user is set": "RUN" in last[last.index("USER") :] if "USER" in last else False,
    }
    return [rule for rule, broken in found.items() if broken]


def test_the_dockerfile_keeps_the_rules() -> None:
    assert faults(DOCKERFILE.read_text()) == []


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("PYTHON=python:3.12.11-slim-bookworm", "PYTHON=python:3-slim", "the base is not pinned"),
        ("USER 10001:10001\n", "", "it runs as root"),
        ("USER 10001:10001", "USER root", "it runs as root"),
        ("HEALTHCHECK", "# HEALTHCHECK", "it has no health check"),
        ("COPY adapters adapters", "ADD https://example.com/a.tar.gz /", "it adds files"),
        ("COPY adapters adapters", "COPY . .", "it copies the whole folder"),
        ("--no-cache-dir ", "", "pip keeps its cache"),
        ("PYTHONUNBUFFERED=1", "AGENTGYM_TOKEN=secret", "a secret is written into it"),
    ],
)
def test_a_broken_rule_is_found(old: str, new: str, rule: str) -> None:
    text = DOCKERFILE.read_text()
    assert old in text and rule in faults(text.replace(old, new))


def test_the_context_has_the_copied_files_and_no_more() -> None:
    ignored, *allowed = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    copied = [a for name, a in instructions(DOCKERFILE.read_text()) if name == "COPY" and not a.startswith("--from")]
    sources = {source for argument in copied for source in argument.split()[:-1]}
    assert ignored == "*" and {line[1:] for line in allowed if line.startswith("!")} == sources
    assert all((ROOT / source).exists() for source in sources)


@pytest.mark.parametrize("name", COMPOSE)
def test_services_have_no_rights_that_they_do_not_need(name: str) -> None:
    for service in yaml.safe_load((ROOT / name).read_text())["services"].values():
        assert service["cap_drop"] == ["ALL"] and service["read_only"] is True
        assert service["security_opt"] == ["no-new-privileges:true"] and "privileged" not in service


def test_the_server_has_a_token_and_the_viewer_is_for_this_machine() -> None:
    server, viewer = (yaml.safe_load((ROOT / name).read_text())["services"] for name in COMPOSE)
    assert server["server"]["environment"]["AGENTGYM_TOKEN"].startswith("${AGENTGYM_TOKEN:?")
    assert all(port.startswith("127.0.0.1:") for port in viewer["viewer"]["ports"])
    assert all(volume.endswith(":ro") for volume in viewer["viewer"]["volumes"])


@pytest.mark.slow
def test_the_compose_files_follow_the_specification() -> None:
    pytest.importorskip("check_jsonschema")
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", *COMPOSE]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_hadolint_finds_nothing() -> None:
    done = subprocess.run(["hadolint", str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def command(port: int) -> list[str]:
    """The default command of the image, with the interpreter of these tests and another port."""
    steps = dict(instructions(DOCKERFILE.read_text()))
    entry, words = json.loads(steps["ENTRYPOINT"]), json.loads(steps["CMD"])
    assert entry == ["agentgym"] and words[-1] == "8000"
    return [sys.executable, "-m", "agentgym_envs", *words[:-1], str(port)]


def health_check(port: int) -> list[str]:
    words = json.loads(dict(instructions(DOCKERFILE.read_text()))["HEALTHCHECK"].partition("CMD ")[2])
    return [sys.executable, *(word.replace(":8000/", f":{port}/") for word in words[1:])]


def environment(cache: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "AGENTGYM_TOKEN"}
    return {**kept, "PYTHONPATH": python_path(ROOT), "AGENTGYM_CACHE": str(cache), "PYTHONUNBUFFERED": "1", **more}


def test_the_default_command_refuses_to_serve_without_a_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AGENTGYM_TOKEN", raising=False)
    assert main(command(free_port())[3:]) == 2 and "AGENTGYM_TOKEN" in capsys.readouterr().err


@pytest.mark.slow
def test_the_default_command_serves_and_the_health_check_passes(tmp_path: Path) -> None:
    port = free_port()
    words = [*command(port), "textcraft"]  # the image serves all that is installed in it, which is more here
    env = environment(tmp_path, AGENTGYM_TOKEN=TOKEN)
    assert subprocess.run(health_check(port), capture_output=True, check=False).returncode != 0
    with subprocess.Popen(words, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None and "Serving at" in server.stdout.readline()
            until(lambda: subprocess.run(health_check(port), capture_output=True, check=False).returncode == 0)
        finally:
            server.terminate()
            server.communicate()


def docker_is_there() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    if not docker_is_there():
        pytest.skip("there is no Docker")
    name = f"agentgym-envs-test-{os.getpid()}"
    subprocess.run(["docker", "build", "-q", "-t", name, str(ROOT)], check=True)
    yield name
    subprocess.run(["docker", "rmi", "-f", name], check=False)


@pytest.mark.slow
def test_the_image_serves_as_an_ordinary_user_and_is_healthy(image: str) -> None:
    port = free_port()
    words = ["docker", "run", "-d", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"]
    words += ["-e", f"AGENTGYM_TOKEN={TOKEN}", "-p", f"127.0.0.1:{port}:8000", image]
    container = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    def inside(*command: str) -> str:
        return subprocess.run(["docker", *command], capture_output=True, text=True, check=True).stdout.strip()

    def healthy() -> bool:
        return inside("inspect", "--format", "{{.State.Health.Status}}", container) == "healthy"

    try:
        until(healthy)
        assert inside("exec", container, "id", "-u") == "10001"
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        answer: Any = json.load(urllib.request.urlopen(request))
        assert answer["openapi"]
    finally:
        subprocess.run(["docker", "rm", "-f", container], capture_output=True, check=False)

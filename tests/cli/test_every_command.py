"""Every command once: the help of each, and one request to each server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
import uvicorn

from agentgym_envs.cli import main
from agentgym_envs.cli.app import make_app
from tests.viewer.records import record, save
from tests.waiting import SECONDS

from .conftest import Run

PLUGINS = {"train": "trl", "tiny-model": "trl", "verl": "verl"}
"""The commands of plug-ins, and the package that each requires."""


def paths(command: Any, *above: str) -> Iterator[str]:
    """Yield the words of a command and of all its subcommands."""
    yield " ".join(above)
    for name, below in getattr(command, "commands", {}).items():
        yield from paths(below, *above, name)


COMMANDS = list(paths(typer.main.get_command(make_app())))


def test_all_commands_are_found() -> None:
    assert {"", "list", "doctor", "search", "search index", "webarena sites", *PLUGINS} <= set(COMMANDS)


def help_of(words: str, capfd: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """Run --help; return the exit code and the output. TRL's parser exits by itself."""
    try:
        code: Any = main([*words.split(), "--help"])
    except SystemExit as end:
        code = end.code
    return code, capfd.readouterr().out


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_a_help(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    if words in PLUGINS:
        pytest.importorskip(PLUGINS[words], reason=f"the extra {PLUGINS[words]} is not installed")
    code, out = help_of(words, capfd)
    assert code == 0 and f"usage: agentgym {words}".strip() in out.lower()


def test_every_command_of_verl_has_a_help(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("verl", reason="the extra verl is not installed")
    from agentgym_verl.cli import _app

    below = list(paths(typer.main.get_command(_app()), "verl"))
    assert {"verl data", "verl train", "verl config-path"} <= set(below)
    for words in below:
        code, out = help_of(words, capfd)
        assert code == 0 and f"usage: agentgym {words}" in out.lower(), words


async def ask(port: int, host: str, method: str, path: str, **request: Any) -> Any:
    """Send a request with this Host header to a port; return the JSON of the response."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=SECONDS) as client:
        return (await client.request(method, path, headers={"host": host}, **request)).json()


@pytest.fixture
def visit(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Any]]:
    """Run a command that serves, send one request and stop it; return the response and the outcome."""
    serve = uvicorn.Server.serve

    def call(
        *words: object, host: str = "127.0.0.1", method: str = "GET", path: str, **request: Any
    ) -> tuple[Any, Any]:
        answers = []

        async def serve_once(server: uvicorn.Server, sockets: list[Any] | None = None) -> None:
            if sockets is None:  # the sites, which run in a thread until the process ends
                return await serve(server)
            serving = asyncio.ensure_future(serve(server, sockets=sockets))
            while not server.started and not serving.done():
                await asyncio.sleep(0.01)
            port = sockets[0].getsockname()[1]
            try:
                answers.append(await ask(port, f"{host}:{port}", method, path, **request))
            finally:
                server.should_exit = True
                await serving

        monkeypatch.setattr(uvicorn.Server, "serve", serve_once)
        outcome = run(*words, "--port", 0)
        assert outcome.code == 0, outcome
        return *answers, outcome

    return call


def test_serve_answers_a_request(visit: Callable[..., tuple[Any, Any]]) -> None:
    answer, outcome = visit("serve", "textcraft", path="/envs")
    assert [row["id"] for row in answer["envs"]] == ["AgentGym/TextCraft-v0"]
    assert "AgentGym/TextCraft-v0" in outcome.out


def test_search_serve_answers_a_request(visit: Callable[..., tuple[Any, Any]], run: Run) -> None:
    pytest.importorskip("tantivy")
    Path("cities.jsonl").write_text(json.dumps({"id": "c7", "contents": '"City 7"\nIt lies on the river.'}) + "\n")
    assert run("search", "index", "cities.jsonl").code == 0
    body = {"queries": ["river"], "topk": 1}
    answer, _ = visit("search", "serve", "cities.index", method="POST", path="/retrieve", json=body)
    assert answer["result"][0][0]["id"] == "c7"


def test_view_answers_a_request(visit: Callable[..., tuple[Any, Any]]) -> None:
    save(Path("t.jsonl"), record("a"), record("b"))
    answer, outcome = visit("view", "t.jsonl", "--no-browser", path="/api/summary")
    assert answer["count"] == 2 and "2 episodes" in outcome.out


def test_webarena_sites_answers_a_request(visit: Callable[..., tuple[Any, Any]]) -> None:
    pytest.importorskip("playwright")
    inspector = "inspector.agentgym.localhost"
    answer, outcome = visit("webarena", "sites", "--world", 1, "--no-browser", path="/status", host=inspector)
    assert answer["start"] and f"Inspector at http://{inspector}:" in outcome.out

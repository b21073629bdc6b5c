"""Every block of Python in the README and in docs/ runs, in its order, in one namespace a page."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.cli.app import main
from agentgym_envs.http.dialects.openenv import openenv_routes
from agentgym_envs.http.run import background_server
from tests.docs.snippets import PAGES, blocks
from tests.quiet_http import QuietHTTPServer

FAST = {"docs/cheatsheet.md", "docs/index.md", "docs/textcraft.md"}
SERVED = ("AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:80\d\d")
_SOCKET = "unix:/tmp/textcraft.sock"
_MODEL_SERVER = "http://localhost:8000"
_NOTEBOOKS = "docs/notebooks/"  # tests/docs/test_notebooks.py runs them
WITH_CODE = [
    page
    for page in PAGES
    if not page.startswith(_NOTEBOOKS) and any(not block.skipped for block in blocks(page, "python"))
]


class Answers(BaseHTTPRequestHandler):
    """A model server whose model always looks at what it carries."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": "Thought: What do I carry?\nAction: inventory"}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def model_server() -> Iterator[str]:
    with QuietHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def with_servers(code: str, stack: contextlib.ExitStack) -> str:
    """The code with the addresses that it names leading to servers that were started for it."""
    for address in sorted(set(_ADDRESS.findall(code))):
        url = stack.enter_context(background_server(SERVED, mounts=[openenv_routes]))
        code = code.replace(address, url)
    if _SOCKET in code:
        code = code.replace(_SOCKET, stack.enter_context(background_server(SERVED, host=f"unix:{Path.cwd()}/socket")))
    if _MODEL_SERVER in code:
        code = code.replace(_MODEL_SERVER, stack.enter_context(model_server()))
    return code


def no_names() -> dict[str, Any]:
    return {}


def model_names() -> dict[str, Any]:
    """Names for the README: a model and its tokenizer."""
    from agentgym_trl.models import load_tokenizer

    assert main(["tiny-model", "tiny"]) == 0
    return {"model": "tiny", "tokenizer": load_tokenizer("tiny")}


def policy_names() -> dict[str, Any]:
    """A policy for docs/openenv.md: the oracle's commands, whatever it observes."""
    env = gym.make("AgentGym/TextCraft-v0")
    env.reset(seed=1, options={"task": "textcraft/3"})
    commands = iter(list(env.unwrapped.oracle()))  # type: ignore[attr-defined]
    return {"my_policy": lambda _: next(commands)}


def a_run() -> dict[str, Any]:
    """A run for docs/metrics.md."""
    assert main(["eval", "textcraft", "--policy", "random", "--tasks", "5", "--out", "run"]) == 0
    return {}


def a_corpus() -> dict[str, Any]:
    """Notes for docs/search.md, and the index and the questions that it writes on the command line."""
    Path("notes").mkdir()
    Path("notes/cache.md").write_text("The cache folder is set by the variable AGENTGYM_CACHE. " * 30)
    exec(blocks("docs/search.md", "python")[0].code, {})
    assert main(["search", "index", "notes.jsonl", "--out", "notes.index"]) == 0
    Path("mine.json").write_text(blocks("docs/search.md", "json")[0].code)
    return {}


NAMES: dict[str, Callable[[], dict[str, Any]]] = {
    "README.md": model_names,
    "docs/metrics.md": a_run,
    "docs/openenv.md": policy_names,
    "docs/search.md": a_corpus,
}


def marks(page: str) -> list[pytest.MarkDecorator]:
    return [] if page in FAST else [pytest.mark.slow, pytest.mark.train]


@pytest.mark.parametrize("page", [pytest.param(page, marks=marks(page)) for page in WITH_CODE])
def test_the_code_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page", **NAMES.get(page, no_names)()}
    with contextlib.ExitStack() as stack:
        stack.callback(close_all, names)
        whole = with_servers("\0".join(block.code for block in blocks(page, "python") if not block.skipped), stack)
        lines = [block.line for block in blocks(page, "python") if not block.skipped]
        for line, code in zip(lines, whole.split("\0"), strict=True):
            exec(compile("\n" * line + code, page, "exec"), names)


def close_all(names: dict[str, Any]) -> None:
    for value in names.values():
        if isinstance(value, (gym.Env, gym.vector.VectorEnv)):
            with contextlib.suppress(Exception):  # closed by the page itself
                value.close()

"""`agentgym eval` of teams: one joint record per episode, for every kind of policy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from agentgym_envs.cli import plugins
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.rollout.token_file import TokenFile
from agentgym_envs.trajectory import Trajectory, line_mark, read_trajectories
from tests.multiagent.engines import CODEC, Listener, name_in
from tests.quiet_http import QuietHTTPServer

from .conftest import Run


def records() -> list[Trajectory]:
    return list(read_trajectories("out/trajectories.jsonl"))


def test_the_oracle_solves_every_group(run: Run) -> None:
    words = ("eval", "textcraftcoop", "--policy", "oracle", "--tasks", 5, "--env-arg", "num_agents=3", "--out", "out")
    metrics = run(*words, "--json").json["metrics"]
    assert metrics["overall"]["success"]["mean"] == 1
    assert {row["group"] for row in metrics["groups"]} <= {f"agents-3/depth-{depth}" for depth in (1, 2, 3, 4)}
    assert all(len(per_agent_trajectories(record)) == 3 for record in records())
    assert "agents-3" in run("report", "out").out


def test_a_random_team_solves_nothing(run: Run) -> None:
    words = ("eval", "planneractor", "--policy", "random", "--tasks", 5, "--max-turns", 6)
    overall = run(*words, "--groups", "depth-3", "--json").json["metrics"]["overall"]
    assert (overall["success"]["mean"], overall["stop_reasons"]) == (0, {"turn_limit": 5})


PLAN = {"crafter_0": ["pass", "get 6 cobblestone", "give 6 cobblestone to crafter_1"], "crafter_1": ["pass"] * 3}


def answer(prompt: str) -> str:
    """The next action of crafter_0 or crafter_1 to build a wall of cobblestone."""
    name, turn = name_in(prompt), prompt.count("<|im_start|>assistant\n") - 1
    return [*PLAN[name], "craft 6 cobblestone wall using 6 cobblestone"][min(turn, 3)]


@pytest.fixture
def wall(tmp_path: Path) -> tuple[object, ...]:
    (tmp_path / "wall.txt").write_text("textcraft-coop/2/22\n")
    return "eval", "textcraftcoop", "--tasks", "wall.txt", "--split", "all", "--max-turns", 8, "--out", "out"


def test_a_model_in_this_process_plays_every_agent(
    run: Run,
    wall: tuple[object, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Listener(answer)
    monkeypatch.setattr(plugins, "load", lambda group, name: lambda model, **options: (engine, CODEC))
    outcome = run(*wall, "--policy", "hf:some/model", "-k", 3, "--tokens", "--json")
    assert outcome.json["metrics"]["overall"]["success"]["mean"] == 1
    assert outcome.json["metrics"]["overall"]["tokens"] > 50
    path = Path("out/trajectories.jsonl")
    tokens = TokenFile(path)
    for line in path.read_bytes().splitlines():
        segments = tokens.read(line_mark(line)) or []
        views = per_agent_trajectories(Trajectory.from_json(line.decode()))
        assert len(segments) == 2
        for segment, view in zip(segments, views.values(), strict=True):
            written = "".join(piece for piece, own in zip(segment.pieces, segment.mask, strict=True) if own)
            assert written.split("<|im_end|>")[:-1] == view.actions
            assert view.instructions in "".join(segment.prompt_pieces)


class Model(BaseHTTPRequestHandler):
    """A chat server with the plan to build the wall."""

    requests: ClassVar[list[Any]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append(body["messages"])
        turns = sum(message["role"] == "assistant" for message in body["messages"])
        prompt = body["messages"][0]["content"] + "<|im_start|>assistant\n" * (turns + 1)
        reply = {"choices": [{"message": {"content": answer(prompt)}, "finish_reason": "stop"}]}
        data = json.dumps({**reply, "usage": {"prompt_tokens": 9, "completion_tokens": 3}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    Model.requests.clear()
    with QuietHTTPServer(("127.0.0.1", 0), Model) as httpd:
        Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}/v1"
        httpd.shutdown()


def test_a_model_on_a_server_plays_every_agent(run: Run, wall: tuple[object, ...], server: str) -> None:
    outcome = run(*wall, "--policy", "openai:bot", "--base-url", server, "--json")
    assert outcome.json["metrics"]["overall"]["success"]["mean"] == 1
    assert outcome.json["metrics"]["overall"]["tokens"] == 4 * 2 * 3
    systems = {messages[0]["content"].split(",")[0] for messages in Model.requests}
    assert systems == {"You are crafter_0", "You are crafter_1"}
    assert run(*wall, "--policy", "openai:bot", "--base-url", server, "--resume").code == 0
    assert len(records()) == 1
    replayed = run("eval", "textcraftcoop", "--policy", "replay:out/trajectories.jsonl", "--json")
    assert replayed.json["metrics"]["overall"]["success"]["mean"] == 1


def test_agents_for_a_single_player_are_refused(refuses: Run) -> None:
    err = refuses("eval", "textcraftcoop", "--policy", "oracle", "--agent", "react").err
    assert "is a team" in err and "agent_grammar=react" in err

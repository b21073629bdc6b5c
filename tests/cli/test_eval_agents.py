"""`agentgym eval` with agents, with recorded tokens, and with failing environments."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import pytest

from agentgym_envs.cli import plugins
from agentgym_envs.core import Transition
from agentgym_envs.errors import EnvError
from agentgym_envs.rollout import BatchEngine, Generation
from agentgym_envs.rollout.token_file import TokenFile, tokens_path
from agentgym_envs.trajectory import Trajectory, line_mark, read_trajectories
from tests.quiet_http import QuietHTTPServer
from tests.toy import CountEnv
from tests.waiting import SECONDS

from .conftest import PausedRun, Run
from .letters import Codec


def records(directory: str = "out") -> list[Trajectory]:
    return list(read_trajectories(Path(directory) / "trajectories.jsonl"))


def result(directory: str = "out") -> Any:
    return json.loads((Path(directory) / "eval.json").read_text())


class Model(BaseHTTPRequestHandler):
    """A chat server in ReAct's form that gives up in its first attempt and counts up after its lesson."""

    seen: ClassVar[list[list[dict[str, str]]]] = []

    def do_POST(self) -> None:
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        self.seen.append(messages)
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        body = json.dumps({"choices": [{"message": {"content": self.answer(messages)}}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, messages: list[dict[str, str]]) -> str:
        if "Count to" not in messages[-1]["content"] and not messages[-1]["content"].strip().isdigit():
            return "Count on."
        learnt = "Count on." in messages[0]["content"]
        return f"Thought: I can\nAction: {'up' if learnt else 'give up'}"

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Model, "seen", [])
    with QuietHTTPServer(("127.0.0.1", 0), Model) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}/v1"
        http.shutdown()


def test_an_agent_guides_a_model_and_sets_the_form_of_its_answers(run: Run, toy: str, server: str) -> None:
    words = ("eval", toy, "--policy", "openai:bot", "--base-url", server, "--split", "train", "--tasks", 2)
    assert run(*words, "--agent", "react", "--context", "last:2", "--out", "out").code == 0
    assert {(t.env_kwargs["grammar"], t.meta["agent"]["name"], t.stop_reason) for t in records()} == {
        ("react", "react", "failure")
    }
    assert result()["settings"]["agent"] == {"name": "react", "context": "last:2", "attempts": 1}
    assert result()["settings"]["env_args"] == {"grammar": "react"}
    assert "# openai:bot, react on" in Path("out/report.md").read_text()


@pytest.mark.slow
def test_a_reflecting_agent_learns_from_its_first_attempt(run: Run, toy: str, server: str) -> None:
    words = ("eval", toy, "--policy", "openai:bot", "--base-url", server, "--split", "train", "--agent")
    assert run(*words, "reflect", "--attempts", 2, "--out", "out", "--json").code == 0
    overall = result()["metrics"]["overall"]
    assert overall["success"]["mean"] == 1
    assert {len(t.meta["attempts"]) for t in records()} == {1}
    assert overall["turns"] == pytest.approx((2 + 3 + 9) / 3 + 1)  # the turns of the first attempts count


@pytest.mark.slow
def test_agent_options_without_effect_are_refused(refuses: Run, toy: str) -> None:
    def err(policy: str, *words: object) -> str:
        address = ("--base-url", "http://127.0.0.1:9/v1") if policy.startswith("openai") else ()
        return refuses("eval", toy, "--policy", policy, *address, *words).err

    assert "choose one with --agent" in err("openai:bot", "--context", "full")
    assert "choose one with --agent" in err("oracle", "--attempts", 2)
    assert "agents guide models only" in err("oracle", "--agent", "react", "--context", "last:2")
    assert "--attempts belongs to --agent reflect" in err("openai:bot", "--agent", "react", "--attempts", 2)
    assert "no agent 'clever'" in err("openai:bot", "--agent", "clever")
    assert "last:0" in err("openai:bot", "--agent", "act", "--context", "last:0")


def test_an_agent_only_sets_the_form_of_the_answers_of_an_oracle(run: Run, toy: str) -> None:
    words = ("eval", toy, "--policy", "oracle", "--split", "train", "--agent", "react")
    outcome = run(*words, "--out", "out")
    assert outcome.code == 0
    assert "--agent react only sets the form of the answers" in outcome.err
    assert {turn.action for t in records() for turn in t.turns} == {"Thought: \nAction: up"}
    assert run(*words, "--env-arg", "grammar=tag", "--out", "tag").code == 0
    assert {turn.action for t in records("tag") for turn in t.turns} == {"<action>up</action>"}


class Counter(BatchEngine):
    """An engine that always answers "up"."""

    def generate_batch(self, prompts: Any, samplings: Any) -> list[Generation]:
        return [Generation([ord("u"), ord("p"), 10], "stop", [-0.5] * 3) for _ in prompts]


def load(asked: list[Any]) -> Any:
    def engine(model: str, **options: Any) -> Any:
        asked.append(options)
        return Counter(), Codec()

    return lambda group, name: engine


def test_chat_template_kwargs_reach_the_model(
    run: Run, refuses: Run, toy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(plugins, "load", load(asked))
    words = ("eval", toy, "--policy", "hf:some/model", "--split", "train", "--out", "out", "--chat-template-kwargs")
    assert run(*words, '{"enable_thinking": false}').code == 0
    assert asked == [{"chat_template": None, "chat_template_kwargs": {"enable_thinking": False}}]
    assert "chat_template_kwargs" in refuses(*words, "{}", "--resume").err  # a run with other settings
    for wrong in ("enable_thinking", "[1]"):
        assert (
            f"must be a JSON object, as in '{{\"enable_thinking\": false}}'; got '{wrong}'"
            in refuses(*words, wrong).err
        )


@pytest.mark.parametrize("agent", [(), ("--agent", "act")])
def test_tokens_are_written_with_the_episodes(
    run: Run, toy: str, monkeypatch: pytest.MonkeyPatch, agent: tuple[str, ...]
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(plugins, "load", load(asked))
    words = ("eval", toy, "--policy", "hf:some/model", "--split", "train", "--out", "out", *agent)
    assert run(*words, "--tokens").code == 0
    assert asked == [{"chat_template": None, "logprobs": True}]
    path = Path("out/trajectories.jsonl")
    tokens = TokenFile(path)
    for line in path.read_bytes().splitlines():
        [segment] = tokens.read(line_mark(line)) or []
        sampled = [piece for piece, mask in zip(segment.pieces, segment.mask, strict=True) if mask]
        assert "".join(sampled) == "up\n" * len(json.loads(line)["turns"])
    assert run(*words, "--overwrite").code == 0
    assert not tokens_path(path).exists()  # belonged to the overwritten run


def test_tokens_of_policies_without_tokens_are_refused(refuses: Run, toy: str) -> None:
    for words in (["oracle"], ["random"], ["openai:bot", "--base-url", "http://127.0.0.1:9/v1"]):
        assert "does not" in refuses("eval", toy, "--policy", *words, "--tokens", "--out", "out").err
    assert "give --out DIR" in refuses("eval", toy, "--policy", "hf:x", "--tokens").err


class Flaky(CountEnv):
    """An environment whose first steps fail, over all of its instances."""

    failures: ClassVar[int] = 0

    def _act(self, command: str) -> Transition:
        if Flaky.failures:
            Flaky.failures -= 1
            raise EnvError("a cable came loose")
        return super()._act(command)


@pytest.fixture
def flaky() -> Iterator[str]:
    gym.register("Toy/Flaky-v0", Flaky, disable_env_checker=True, order_enforce=False)
    yield "Toy/Flaky-v0"
    del gym.registry["Toy/Flaky-v0"]


@pytest.mark.slow
@pytest.mark.parametrize(("failures", "retries", "excluded", "retried"), [(2, 2, 0, 2), (4, 1, 1, 3), (3, 0, 3, 0)])
def test_failed_episodes_are_repeated_and_then_counted_separately(
    run: Run, flaky: str, monkeypatch: pytest.MonkeyPatch, failures: int, retries: int, excluded: int, retried: int
) -> None:
    monkeypatch.setattr(Flaky, "failures", failures)
    words = ("eval", flaky, "--policy", "oracle", "--split", "train", "--retries", retries, "--out", "out")
    outcome = run(*words)
    assert outcome.code == 0
    overall = result()["metrics"]["overall"]
    assert (overall["excluded"], overall["episodes"]) == (excluded, 3 - excluded)
    assert result()["retried"] == retried
    assert len(records()) == 3 + retried
    assert ("repeated, because the environment had failed" in outcome.out) == bool(retried)
    assert ("a cable came loose" in outcome.out) == bool(excluded)
    assert run(*words, "--resume").code == 0
    assert result()["metrics"]["overall"]["episodes"] == 3


@pytest.mark.slow
def test_a_killed_run_resumes_with_the_same_result(run: Run, paused_run: PausedRun, tmp_path: Path) -> None:
    paused_run.process.kill()
    paused_run.process.wait(timeout=SECONDS)
    path = tmp_path / "out/trajectories.jsonl"
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "env_')  # as after a power failure
    shown = run("report", "out")
    assert shown.code == 0
    assert "not complete" in shown.out
    assert run(*paused_run.words, "out", "--resume").code == 0
    assert run(*paused_run.words, "whole").code == 0
    assert result("out")["metrics"] == result("whole")["metrics"]
    for name in ("report.md", "metrics.csv", "report.html"):
        assert Path("out", name).read_text() == Path("whole", name).read_text()

"""`agentgym eval` with agents, with the tokens of a model, and with environments that fail."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
from tests.toy import CountEnv
from tests.waiting import SECONDS

from .conftest import Held, Run
from .letters import Codec


def records(directory: str = "out") -> list[Trajectory]:
    return list(read_trajectories(Path(directory) / "trajectories.jsonl"))


def result(directory: str = "out") -> Any:
    return json.loads((Path(directory) / "eval.json").read_text())


class Model(BaseHTTPRequestHandler):
    """A chat server that counts up in ReAct's form, gives up at its first try, and learns from that."""

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
        """Be quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Model, "seen", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}/v1"
        http.shutdown()


def test_an_agent_guides_a_model_and_sets_the_form_of_its_answers(run: Run, toy: str, server: str) -> None:
    words = ("eval", toy, "--policy", "openai:bot", "--base-url", server, "--split", "train", "--tasks", 2)
    assert run(*words, "--agent", "react", "--context", "last:2", "--out", "out").code == 0
    assert {(t.env_kwargs["grammar"], t.meta["agent"]["name"], t.stop_reason) for t in records()} == {
        ("react", "react", "failure")
    }
    assert result()["settings"]["agent"] == {"name": "react", "context": "last:2", "tries": 1}
    assert result()["settings"]["env_args"] == {"grammar": "react"}
    assert "# openai:bot, react on" in Path("out/report.md").read_text()


@pytest.mark.slow
def test_an_agent_that_reflects_learns_from_its_first_try(run: Run, toy: str, server: str) -> None:
    words = ("eval", toy, "--policy", "openai:bot", "--base-url", server, "--split", "train", "--agent")
    assert run(*words, "reflect", "--tries", 2, "--out", "out", "--json").code == 0
    overall = result()["metrics"]["overall"]
    assert overall["success"]["mean"] == 1
    assert {len(t.meta["attempts"]) for t in records()} == {1}
    assert overall["turns"] == pytest.approx((2 + 3 + 9) / 3 + 1)  # the first tries' turns count


@pytest.mark.slow
def test_options_of_agents_that_mean_nothing_are_refused(refuses: Run, toy: str) -> None:
    def err(policy: str, *words: object) -> str:
        address = ("--base-url", "http://127.0.0.1:9/v1") if policy.startswith("openai") else ()
        return refuses("eval", toy, "--policy", policy, *address, *words).err

    assert "choose one with --agent" in err("openai:bot", "--context", "full")
    assert "choose one with --agent" in err("oracle", "--tries", 2)
    assert "no agent guides" in err("oracle", "--agent", "react", "--context", "last:2")
    assert "--tries belongs to --agent reflect" in err("openai:bot", "--agent", "react", "--tries", 2)
    assert "no agent 'clever'" in err("openai:bot", "--agent", "clever")
    assert "last:0" in err("openai:bot", "--agent", "act", "--context", "last:0")


def test_of_an_agent_an_oracle_takes_the_form_of_answers_alone(run: Run, toy: str) -> None:
    words = ("eval", toy, "--policy", "oracle", "--split", "train", "--agent", "react")
    outcome = run(*words, "--out", "out")
    assert outcome.code == 0
    assert "--agent react sets the form of the answers only" in outcome.err
    assert {turn.action for t in records() for turn in t.turns} == {"Thought: \nAction: up"}
    assert run(*words, "--env-arg", "grammar=tag", "--out", "tag").code == 0
    assert {turn.action for t in records("tag") for turn in t.turns} == {"<action>up</action>"}


class Counter(BatchEngine):
    """Counts up."""

    def generate_batch(self, prompts: Any, samplings: Any) -> list[Generation]:
        return [Generation([ord("u"), ord("p"), 10], "stop", [-0.5] * 3) for _ in prompts]


def load(asked: list[Any]) -> Any:
    def engine(model: str, **options: Any) -> Any:
        asked.append(options)
        return Counter(), Codec()

    return lambda group, name: engine


def test_variables_of_the_chat_template_reach_the_model(
    run: Run, refuses: Run, toy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(plugins, "load", load(asked))
    words = ("eval", toy, "--policy", "hf:some/model", "--split", "train", "--out", "out", "--chat-template-kwargs")
    assert run(*words, '{"enable_thinking": false}').code == 0
    assert asked == [{"chat_template": None, "chat_template_kwargs": {"enable_thinking": False}}]
    assert "chat_template_kwargs" in refuses(*words, "{}", "--resume").err  # another run
    for wrong in ("enable_thinking", "[1]"):
        assert (
            f"must be a JSON object, as in '{{\"enable_thinking\": false}}'; got '{wrong}'"
            in refuses(*words, wrong).err
        )


@pytest.mark.parametrize("agent", [(), ("--agent", "act")])
def test_the_tokens_of_a_model_lie_beside_its_episodes(
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
        said = [piece for piece, mask in zip(segment.pieces, segment.mask, strict=True) if mask]
        assert "".join(said) == "up\n" * len(json.loads(line)["turns"])
    assert run(*words, "--overwrite").code == 0
    assert not tokens_path(path).exists()  # those of a run that is no more


def test_tokens_of_what_has_none_are_refused(refuses: Run, toy: str) -> None:
    for words in (["oracle"], ["random"], ["openai:bot", "--base-url", "http://127.0.0.1:9/v1"]):
        assert "is none" in refuses("eval", toy, "--policy", *words, "--tokens", "--out", "out").err
    assert "no --out" in refuses("eval", toy, "--policy", "hf:x", "--tokens").err


class Flaky(CountEnv):
    """Breaks down at the first steps that are ever taken with it."""

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
@pytest.mark.parametrize(("failures", "retries", "left", "replayed"), [(2, 2, 0, 2), (4, 1, 1, 3), (3, 0, 3, 0)])
def test_what_the_environment_spoiled_is_played_again_and_then_counted_apart(
    run: Run, flaky: str, monkeypatch: pytest.MonkeyPatch, failures: int, retries: int, left: int, replayed: int
) -> None:
    monkeypatch.setattr(Flaky, "failures", failures)
    words = ("eval", flaky, "--policy", "oracle", "--split", "train", "--retries", retries, "--out", "out")
    outcome = run(*words)
    assert outcome.code == 0
    overall = result()["metrics"]["overall"]
    assert (overall["excluded"], overall["episodes"]) == (left, 3 - left)
    assert result()["replayed"] == replayed
    assert len(records()) == 3 + replayed
    assert ("played again" in outcome.out) == bool(replayed)
    assert ("a cable came loose" in outcome.out) == bool(left)
    assert run(*words, "--resume").code == 0
    assert result()["metrics"]["overall"]["episodes"] == 3


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_like_one_that_was_not(run: Run, held: Held, tmp_path: Path) -> None:
    held.process.kill()
    held.process.wait(timeout=SECONDS)
    path = tmp_path / "out/trajectories.jsonl"
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "env_')  # what a power cut may leave
    shown = run("report", "out")
    assert shown.code == 0
    assert "not complete" in shown.out
    assert run(*held.words, "out", "--resume").code == 0
    assert run(*held.words, "whole").code == 0
    assert result("out")["metrics"] == result("whole")["metrics"]
    for name in ("report.md", "metrics.csv", "report.html"):
        assert Path("out", name).read_text() == Path("whole", name).read_text()

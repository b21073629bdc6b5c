import json
import resource
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agentgym_envs.cli import plugins
from agentgym_envs.cli.run_store import RunStore
from agentgym_envs.errors import UsageError
from agentgym_envs.evaluate import evaluate
from agentgym_envs.rollout import BatchEngine, ChatPolicy, Generation, OraclePolicy
from agentgym_envs.trajectory import Trajectory, read_trajectories
from tests.quiet_http import QuietHTTPServer
from tests.waiting import SECONDS

from .conftest import PAUSED_AT, TASKS, PausedRun, Run
from .letters import Codec


def records(directory: str | Path = "out") -> list[Trajectory]:
    return list(read_trajectories(Path(directory) / "trajectories.jsonl"))


def result(directory: str | Path = "out") -> Any:
    return json.loads((Path(directory) / "eval.json").read_text())


def test_the_oracle_solves_every_test_task(run: Run) -> None:
    outcome = run("eval", "textcraft", "--policy", "oracle", "--json")
    metrics = outcome.json["metrics"]
    assert outcome.err == ""
    assert metrics["overall"]["success"]["mean"] == 1
    assert metrics["overall"]["tasks"] == metrics["overall"]["episodes"] == 108
    assert [row["group"] for row in metrics["groups"]] == ["depth-1", "depth-2", "depth-3", "depth-4"]


def test_a_random_policy_solves_almost_nothing(run: Run) -> None:
    words = ("--policy", "random", "--groups", "depth-2,depth-3,depth-4", "--max-turns", 10, "-k", 2)
    overall = run("eval", "textcraft", *words, "--json").json["metrics"]["overall"]
    assert overall["episodes"] == 2 * overall["tasks"] == 166
    assert overall["success"]["high"] < 0.1
    assert overall["invalid_actions"] == 0


def test_random_episodes_differ_and_depend_on_the_seed(run: Run, toy: str) -> None:
    words = ("eval", toy, "--policy", "random", "--split", "train", "-k", 2, "--max-turns", 3)
    for directory, seed in (("a", 0), ("b", 0), ("c", 9)):
        assert run(*words, "--seed", seed, "--out", directory).code == 0
    first, same, other = ({(t.task.id, *t.actions) for t in records(name)} for name in "abc")
    assert first == same
    assert not first & other
    assert len({tuple(actions) for _, *actions in first}) == 6


def test_the_table_shows_success_and_stop_reasons(run: Run) -> None:
    out = run("eval", "textcraft", "--policy", "oracle", "--tasks", 20, "--out", "out").out
    row = next(line for line in out.splitlines() if line.strip().startswith("all"))
    # 20 of 20: the lower bound is 20/(20+z²) = 83.9 %.
    assert "100.0%  [83.9, 100.0]" in row
    assert "ended by: success 20" in out
    assert "score" not in out  # always equal to success here


def test_the_json_output_and_the_files_agree(run: Run) -> None:
    outcome = run(
        "eval", "textcraft", "--policy", "oracle", "--tasks", 6, "-k", 2, "--seed", 4, "--out", "out", "--json"
    )
    assert outcome.json == {**result(), "out": "out"}
    assert result()["complete"] is True
    assert result()["metrics"] == json.loads(json.dumps(evaluate(records()).to_json()))
    assert {(t.seed, t.meta["policy"], t.task.split) for t in records()} == {
        (4, "oracle", "test"),
        (5, "oracle", "test"),
    }


def test_a_score_that_differs_from_success_has_a_column(run: Run, toy: str) -> None:
    words = ("eval", toy, "--policy", "oracle", "--split", "train", "--max-turns", 3)
    overall = run(*words, "--json").json["metrics"]["overall"]
    assert overall["success"]["mean"] == pytest.approx(2 / 3)
    assert overall["score"]["mean"] == pytest.approx((1 + 1 + 3 / 9) / 3)
    assert "score" in run(*words).out


def test_two_environments_in_one_run(run: Run, toy: str) -> None:
    metrics = run("eval", toy, "textcraft", "textcraft", "--policy", "oracle", "--tasks", 1, "--split", "validation")
    assert "TextCraft" in metrics.out
    assert "CliCount" in metrics.out
    words = ("--policy", "oracle", "--tasks", 1, "--split", "validation", "--json")
    metrics = run("eval", toy, "textcraft", *words).json["metrics"]
    assert (len(metrics["environments"]), metrics["overall"]["tasks"], metrics["overall"]["env_id"]) == (2, 2, None)


@pytest.mark.slow
def test_the_directory_of_another_run_is_not_changed(run: Run, refuses: Run, tmp_path: Path) -> None:
    words = ("eval", "textcraft", "--policy", "oracle", "--tasks", 4, "--out", "out")
    assert run(*words).code == 0
    before = (tmp_path / "out/trajectories.jsonl").read_bytes()
    assert "--resume continues it" in refuses(*words).err
    err = refuses("eval", "textcraft", "--policy", "random", "--tasks", 5, "--out", "out", "--resume").err
    assert "policy is 'oracle' there and 'random' here" in err
    assert "tasks is 4 there and 5 here" in err
    assert "give one of them" in refuses(*words, "--resume", "--overwrite").err
    assert "give --out DIR" in refuses(*words[:-2], "--resume").err
    assert "is a file" in refuses(*words[:-1], "out/eval.json").err
    assert (tmp_path / "out/trajectories.jsonl").read_bytes() == before
    (tmp_path / "out/eval.json").unlink()
    assert "cannot be read" in refuses(*words, "--resume").err
    assert run(*words, "--overwrite").code == 0
    assert len(records()) == 4


def test_two_runs_cannot_write_to_one_directory(run: Run, refuses: Run) -> None:
    words = ("eval", "textcraft", "--policy", "oracle", "--tasks", 2, "--out", "out")
    assert run(*words).code == 0
    before = Path("out/trajectories.jsonl").read_bytes()
    settings = {name: value for name, value in result()["settings"].items()}
    other = RunStore(Path("out"), settings, {}, resume=True, overwrite=False)
    for how in ("--resume", "--overwrite"):
        assert "another eval is writing to out" in refuses(*words, how).err
    assert Path("out/trajectories.jsonl").read_bytes() == before
    other.close()
    assert run(*words, "--resume").code == run(*words, "--overwrite").code == 0
    assert len(records()) == 2


def test_a_refused_run_releases_its_lock(run: Run, refuses: Run) -> None:
    words = ("eval", "textcraft", "--policy", "oracle", "--tasks", 2, "--out", "out")
    assert run(*words).code == 0
    with pytest.raises(UsageError, match="other settings"):
        RunStore(Path("out"), {"policy": "another"}, {}, resume=True, overwrite=False)
    assert run(*words, "--resume").code == 0


def test_an_environment_with_too_few_tasks_is_named(refuses: Run, toy: str) -> None:
    message = refuses("eval", "textcraft", toy, "--policy", "oracle", "--tasks", 50).err
    assert f"this is {toy}, one of 2 environments: choose fewer tasks" in message
    assert "one of" not in refuses("eval", toy, "--policy", "oracle", "--tasks", 50).err


def test_other_files_survive_overwriting(run: Run, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/notes.txt").write_text("mine")
    words = ("eval", "textcraft", "--policy", "oracle", "--tasks", 2, "--out", "out")
    assert run(*words).code == run(*words, "--overwrite").code == 0
    assert (tmp_path / "out/notes.txt").read_text() == "mine"


def test_overwriting_removes_the_reports_of_the_old_run(
    run: Run, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ("eval", "textcraft", "--tasks", 2, "--out", "out", "--policy")
    assert run(*words, "oracle").code == 0
    assert (tmp_path / "out/report.html").exists()
    monkeypatch.setattr(Model, "fails", True)  # the new run ends before it writes reports
    assert run(*words, "openai:bot", "--base-url", server, "--overwrite").code != 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["eval.json", "trajectories.jsonl"]


def test_an_unwritable_directory_is_reported(refuses: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    err = refuses("eval", "textcraft", "--policy", "oracle", "--tasks", 1, "--out", "file/out").err
    assert "cannot write to --out file/out: Not a directory" in err


def test_a_malformed_record_is_reported_with_its_line(refuses: Run, run: Run, tmp_path: Path) -> None:
    words = ("eval", "textcraft", "--policy", "oracle", "--tasks", 2, "--out", "out")
    assert run(*words).code == 0
    with open(tmp_path / "out/trajectories.jsonl", "a") as file:
        file.write("{}\n")
    assert "trajectories.jsonl:3" in refuses(*words, "--resume").err


def test_resume_plays_missing_and_failed_episodes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("eval", "textcraft", "--policy", "random", "--tasks", 12, "-k", 2, "--max-turns", 6, "--json", "--out")
    whole = run(*words, "whole").json["metrics"]
    assert run(*words, "out").json["metrics"] == whole

    lines = (Path("out") / "trajectories.jsonl").read_text().splitlines(keepends=True)
    failed = json.loads(lines[3]) | {"stop_reason": "env_error", "error": "power cut", "score": 0.0, "success": False}
    torn = lines[8][: len(lines[8]) // 2]
    Path("out/trajectories.jsonl").write_text("".join([*lines[:3], json.dumps(failed) + "\n", *lines[4:8], torn]))
    assert run(*words, "out", "--resume").json["metrics"] == whole
    assert len(records()) == 24 + 1  # the failed record stays in the file, and the repeated one counts

    monkeypatch.setattr(OraclePolicy, "act", None)
    assert run(*words, "out", "--resume").json["metrics"] == whole  # nothing left to play
    assert len(records()) == 25


def test_infrastructure_errors_are_counted_separately(run: Run, toy: str) -> None:
    outcome = run("eval", toy, "--policy", "oracle", "--out", "out")
    assert outcome.code == 0
    overall = result()["metrics"]["overall"]
    assert (overall["tasks"], overall["excluded"], overall["success"]["mean"]) == (1, 1, 1)
    assert overall["stop_reasons"] == {"env_error": 1, "success": 1}
    assert "1 episode without information on the policy" in outcome.out


@pytest.mark.slow
def test_ctrl_c_saves_the_episodes_and_resume_gives_the_same_result(
    run: Run, paused_run: PausedRun, tmp_path: Path
) -> None:
    paused_run.process.send_signal(signal.SIGINT)
    _, err = paused_run.process.communicate(timeout=SECONDS)
    assert paused_run.process.returncode == 130
    saved = f"{PAUSED_AT} of {TASKS} episodes are saved in out"
    assert err.endswith(f"\nagentgym: interrupted; {saved}; continue with --resume\n")
    assert len(records(tmp_path / "out")) == PAUSED_AT
    assert result()["complete"] is False

    first = (tmp_path / "out/trajectories.jsonl").read_bytes()
    assert run(*paused_run.words, "out", "--resume").code == 0
    assert (tmp_path / "out/trajectories.jsonl").read_bytes().startswith(first)
    assert run(*paused_run.words, "whole").code == 0
    assert result("out")["metrics"] == result("whole")["metrics"]
    assert len(records("out")) == TASKS


@pytest.mark.slow
def test_a_full_disk_loses_no_saved_episode(spawn: Run, run: Run, tmp_path: Path) -> None:
    words = ("eval", "textcraft", "--policy", "oracle", "--tasks", 60, "--out", "out")

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    outcome = spawn(*words, preexec_fn=small_files)
    saved = len(records(tmp_path / "out"))
    assert 0 < saved < 60
    assert outcome.code == 1
    assert "\nagentgym: " in outcome.err
    assert outcome.err.endswith(f"; {saved} of 60 episodes are saved in out; continue with --resume\n")
    assert outcome.err.count("\nagentgym: ") == 1
    assert run(*words, "--resume").code == 0
    assert result()["metrics"]["overall"]["episodes"] == 60


def test_replay_repeats_recorded_episodes(run: Run, refuses: Run) -> None:
    words = ("eval", "textcraft", "--tasks", 15, "-k", 2, "--max-turns", 7)
    assert run(*words, "--policy", "random", "--out", "out").code == 0
    again = run("eval", "textcraft", "--policy", "replay:out/trajectories.jsonl", "--out", "again")
    assert again.code == 0
    assert result("again")["metrics"] == result("out")["metrics"]
    assert sorted((t.task.id, t.seed, t.actions) for t in records("again")) == sorted(
        (t.task.id, t.seed, t.actions) for t in records("out")
    )
    shorter = run("eval", "textcraft", "--policy", "replay:out/trajectories.jsonl", "--max-turns", 3, "--json").json
    assert shorter["metrics"]["overall"]["turns"] <= 3
    other = refuses("eval", "textcraft", "--policy", "replay:out/trajectories.jsonl", "--env-arg", "worlds=invented")
    assert "was recorded with no --env-arg" in other.err


@pytest.mark.slow
def test_replay_ignores_arguments_that_only_select_tasks(run: Run, refuses: Run) -> None:
    only = ("--env-arg", "split=test", "--env-arg", 'groups=["depth-2"]')
    grammar = ("--env-arg", "grammar=react")
    words = ("eval", "textcraft", "--split", "test", "--groups", "depth-2", "--tasks", 2)
    assert run(*words, "--policy", "oracle", *only, *grammar, "--out", "out").code == 0
    assert all(dict(t.env_kwargs)["split"] == "test" for t in records("out"))
    replay = ("eval", "textcraft", "--policy", "replay:out/trajectories.jsonl")
    assert run(*replay, *grammar, "--out", "again").code == 0
    assert result("again")["metrics"] == result("out")["metrics"]
    assert 'was recorded with --env-arg grammar="react"; its' in refuses(*replay, *only).err


@pytest.mark.slow
def test_invalid_policies_are_refused(refuses: Run, tmp_path: Path, toy: str) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "bad.jsonl").write_text('{"schema": 99}\n')

    def err(policy: str, *words: object) -> str:
        return refuses("eval", "textcraft", "--policy", policy, *words).err

    for policy in ("clever", "oracle:", "replay", "hf:", ""):
        assert "there is no policy" in err(policy)
        assert "choose oracle, oracle:DEFECTS, random" in err(policy)
    assert "did you mean oracle?" in err("orcale")
    assert "must name each of idle, slip, detour, forget at most once, got 'x'" in err("oracle:x")
    assert "did you mean openai:MODEL?" in err("openai")
    assert "did you mean" not in err("clever")
    assert "must begin with http" in err("openai:bot", "--base-url", "127.0.0.1:8000/v1")
    assert "train, validation, test, all" in err("oracle", "--split", "tset")
    assert "not a file" in err("replay:nowhere.jsonl")
    assert "empty.jsonl contains no episode to replay" in err("replay:empty.jsonl")
    assert "bad.jsonl:1" in err("replay:bad.jsonl")
    assert "has only 108" in err("oracle", "--tasks", 1000)
    assert "has an unlimited number of tasks" in err("oracle", "--env-arg", "worlds=invented")
    assert "cannot be read" in err("hf:x", "--chat-template", "nowhere.jinja")
    assert "no group 'depth-9'" in err("oracle", "--groups", "depth-9")


class Model(BaseHTTPRequestHandler):
    """A chat server with two actions that fails while `fails` is True."""

    seen: ClassVar[list[tuple[dict[str, Any], str | None]]] = []
    fails: ClassVar[bool] = False

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((body, self.headers.get("Authorization")))
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        text = ["inventory", "get 1 stick"][turn]
        answer = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
        self.send_response(400 if self.fails else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Model, "seen", [])
    monkeypatch.setattr(Model, "fails", False)
    with QuietHTTPServer(("127.0.0.1", 0), Model) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}/v1"
        http.shutdown()


def test_a_model_on_a_server_is_evaluated(run: Run, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    words = ("--base-url", server, "--api-key-env", "MY_KEY", "--temperature", 0.5, "--max-turn-tokens", 40)
    outcome = run("eval", "textcraft", "--policy", "openai:bot", *words, "--max-turns", 2, "--tasks", 3, "--json")
    assert outcome.code == 0
    assert outcome.json["metrics"]["overall"]["episodes"] == 3
    bodies, keys = zip(*Model.seen, strict=True)
    assert set(keys) == {"Bearer secret"}
    assert {(body["model"], body["temperature"], body["max_tokens"]) for body in bodies} == {("bot", 0.5, 40)}
    assert bodies[0]["messages"][0]["role"] == "system"


@pytest.mark.slow
def test_a_failing_server_ends_the_run_and_the_episodes_are_saved(
    run: Run, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("eval", "textcraft", "--policy", "openai:bot", "--base-url", server, "--tasks", 6, "--max-turns", 2)
    act, calls = ChatPolicy.act, []

    async def act_and_fail_later(self, env, messages):
        calls.append(1)
        Model.fails = len(calls) > 4
        return await act(self, env, messages)

    monkeypatch.setattr(ChatPolicy, "act", act_and_fail_later)
    outcome = run(*words, "--concurrency", 1, "--out", "out")
    assert outcome.code == 1
    assert "HTTP 400" in outcome.err
    assert outcome.err.endswith("; 2 of 6 episodes are saved in out; continue with --resume\n")
    monkeypatch.setattr(ChatPolicy, "act", act)
    monkeypatch.setattr(Model, "fails", False)
    assert run(*words, "--out", "out", "--resume").code == 0
    assert len(records()) == 6


class Counter(BatchEngine):
    """An engine that always answers "up" and records its samplings."""

    def __init__(self) -> None:
        super().__init__()
        self.samplings: list[Any] = []

    def generate_batch(self, prompts: Any, samplings: Any) -> list[Generation]:
        self.samplings += samplings
        return [Generation([ord("u"), ord("p"), 10], "stop", [0.0] * 3) for _ in prompts]


def test_a_model_in_this_process_is_evaluated(run: Run, toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Counter()
    monkeypatch.setattr(plugins, "load", lambda group, name: lambda model, chat_template: (engine, Codec()))
    words = ("--policy", "hf:some/model", "--split", "train", "-k", 2, "--temperature", 0.7, "--max-turn-tokens", 9)
    overall = run("eval", toy, *words, "--out", "out", "--json").json["metrics"]["overall"]
    assert (overall["success"]["mean"], overall["episodes"], overall["tasks"]) == (1, 6, 3)
    assert {(sampling.temperature, sampling.max_tokens) for sampling in engine.samplings} == {(0.7, 9)}
    assert {turn.action for t in records() for turn in t.turns} == {"up"}
    truncated = run("eval", toy, *words, "--max-tokens", 20, "--json").json["metrics"]["overall"]
    assert "token_limit" in truncated["stop_reasons"]

"""`agentgym compare`."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from agentgym_envs.rollout import make_agent
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter

from ..episodes import episode, several
from .conftest import Run


def record(path: str, episodes: Iterable[Trajectory]) -> str:
    """Write a run without settings: a file of trajectories."""
    with TrajectoryWriter(path) as writer:
        for each in episodes:
            writer.write(each)
    return path


@pytest.fixture
def base() -> str:
    tasks = [e for n in range(20) for e in several(f"t/{n}", n % 2, n % 2)]
    return record("base.jsonl", [*tasks, episode("h/1", 0, group="hard")])


@pytest.fixture
def better() -> str:
    tasks = [e for n in range(20) for e in several(f"t/{n}", n % 2 or n < 14, n % 2)]
    tasks[2] = episode("t/1", 0, seed=0)  # solved in half of its episodes: its mean falls, but it does not flip
    tasks[6:8] = several("t/3", 0, 0)
    return record("better.jsonl", [*tasks, episode("h/1", 0.5, group="hard")])


def test_the_table_shows_the_gains(run: Run, base: str, better: str) -> None:
    outcome = run("compare", base, better)
    assert outcome.code == 0
    assert outcome.err == ""
    assert "better.jsonl against base.jsonl, success" in outcome.out
    lines = {line.split()[0]: line.split() for line in outcome.out.splitlines() if line.strip()}
    # 20 tasks: half of them solved; then 7 gain a half, one loses a half and one all: (7/2 - 1/2 - 1) / 20 = 10 %.
    assert lines["easy"][1:5] == ["20", "50.0%", "60.0%", "+10.0"]
    assert lines["easy"][-3:] == ["7", "2", "0.180"]  # 2 (1 + 9 + 36) / 512
    # One unchanged task, plus the two pseudo-tasks that gain and lose 1: 0 ± 1.96 sqrt(2/9).
    assert lines["hard"][1:] == ["1", "0.0%", "0.0%", "+0.0", "[-92.4,", "+92.4]", "0", "0", "1.000"]
    assert lines["all"][1] == "21"
    assert "now solved 7: t/0, t/10, t/12, t/2, t/4, t/6, t/8" in outcome.out
    assert "no longer solved 1: t/3" in outcome.out


def test_json_output_has_every_run(run: Run, base: str, better: str) -> None:
    found = run("compare", base, better, base, "--value", "score", "--json").json
    assert (found["baseline"], found["value"]) == ("base.jsonl", "score")
    first, second = found["runs"]
    assert (first["run"], second["run"]) == ("better.jsonl", "base.jsonl")
    assert first["differing_conditions"] == []
    assert [row["group"] for row in first["groups"]] == ["easy", "hard"]
    assert first["groups"][1]["difference"]["mean"] == 0.5
    assert first["overall"]["won"] == ["t/0", "t/10", "t/12", "t/2", "t/4", "t/6", "t/8"]
    assert second["overall"]["difference"]["mean"] == 0


def test_flips_option_limits_the_named_tasks(run: Run, base: str, better: str) -> None:
    assert "now solved 7: t/0, t/10, and 5 more (--flips N)" in run("compare", base, better, "--flips", 2).out
    assert "now solved 7\n" in run("compare", base, better, "--flips", 0).out


def test_runs_of_eval_are_compared(run: Run, toy: str) -> None:
    for name, turns in (("short", 2), ("long", 30)):
        outcome = run("eval", toy, "--policy", "oracle", "--max-turns", turns, "--split", "all", "--out", name)
        assert outcome.code == 0, outcome.err
    order = [row["group"] for row in json.loads(Path("short/eval.json").read_text())["metrics"]["groups"]]
    outcome = run("compare", "short", "long/", "--json")
    found = outcome.json["runs"][0]
    assert found["run"] == "long"
    assert [row["group"] for row in found["groups"]] == order
    assert found["overall"]["up"] == len(found["overall"]["won"]) > 0
    [difference] = found["differing_conditions"]
    assert "max_turns is 2 in short, 30 in long" in difference
    assert f"not the same conditions: {difference}" in run("compare", "short", "long").err


def test_equal_file_names_are_shown_with_their_folders(run: Run, base: str, better: str) -> None:
    for folder, file in (("a", base), ("b", better)):
        Path(folder).mkdir()
        Path(file).rename(f"{folder}/run.jsonl")
    assert "b/run.jsonl against a/run.jsonl" in run("compare", "a/run.jsonl", "b/run.jsonl").out


def test_the_trajectories_of_a_run_are_named_by_its_folder(run: Run, base: str, better: str) -> None:
    for folder, file in (("a", base), ("b", better)):
        Path(folder).mkdir()
        Path(file).rename(f"{folder}/trajectories.jsonl")
    assert "b against a, success" in run("compare", "a", "b/trajectories.jsonl").out
    assert "a/trajectories.jsonl against a, success" in run("compare", "a", "a/trajectories.jsonl").out
    Path("b/trajectories.jsonl").rename("trajectories.jsonl")
    assert "trajectories.jsonl against a, success" in run("compare", "a", "trajectories.jsonl").out


def test_differing_arguments_are_reported(run: Run, base: str) -> None:
    other = record("react.jsonl", [episode("h/1", 1, group="hard", env_kwargs={"grammar": "react"})])
    outcome = run("compare", base, other, "--partial")
    assert 'arguments is {} in base.jsonl, {"grammar": "react"} in react.jsonl' in outcome.err
    assert "left out, only in the baseline: t/0, t/1, t/10 … 20 in all" in outcome.err
    assert outcome.code == 0


def test_tasks_of_only_one_run_are_refused(refuses: Run, base: str) -> None:
    other = record("other.jsonl", [episode("h/1", 1, group="hard"), episode("t/99", 1)])
    message = refuses("compare", base, other).err
    assert "21 of 22 are in only one" in message
    assert "--partial" in message and "other.jsonl" in message
    assert "no task in both runs" in refuses("compare", base, record("n.jsonl", [episode("n/1", 1)]), "--partial").err


def test_a_repeated_episode_counts_once(run: Run, base: str) -> None:
    again = record("again.jsonl", [episode("h/1", 0, group="hard", stop="env_error"), episode("h/1", 1, group="hard")])
    row = run("compare", again, again, "--json").json["runs"][0]["overall"]
    assert (row["before"], row["difference"]["excluded"]) == (1, 0)


def test_tasks_without_a_usable_episode_are_reported(run: Run) -> None:
    one = record("one.jsonl", [episode("t/1", 1), episode("t/2", 0, group="odd", stop="env_error")])
    two = record("two.jsonl", [episode("t/1", 1), episode("t/2", 0, group="odd")])
    outcome = run("compare", one, two)
    assert outcome.code == 0
    assert "1 task without a usable episode in one run is excluded" in outcome.out
    assert "–" in outcome.out


def test_names_are_not_interpreted_as_markup(run: Run) -> None:
    names = ["[red]", "[/]"]
    one, two = (record(f"{side}[bold].jsonl", [episode(f"t/{n}", side, group=n) for n in names]) for side in (0, 1))
    outcome = run("compare", one, two)
    assert "t/[red]" in outcome.out and "\n [/] " in outcome.out


def test_invalid_runs_are_refused(refuses: Run, base: str, tmp_path: Path) -> None:
    assert "at least two" in refuses("compare", base).err
    assert "there is no file nothing" in refuses("compare", base, "nothing").err
    assert "has no trajectories.jsonl" in refuses("compare", base, tmp_path).err
    assert "success or score" in refuses("compare", base, base, "--value", "luck").err
    Path("empty.jsonl").touch()
    assert "contains no episode yet" in refuses("compare", base, "empty.jsonl").err
    Path("run").mkdir()
    Path(base).rename("run/trajectories.jsonl")
    Path("run/eval.json").write_text("{")
    assert "eval.json cannot be read" in refuses("compare", "run", "run").err


def test_training_files_keep_every_episode_of_a_group(run: Run) -> None:
    """Test episodes with the same environment, task and seed."""
    groups = [episode("t/1", score) for score in (0, 0, 0, 1)] + [episode("t/2", 0) for _ in range(4)]
    before = record("step-0.jsonl", [episode("t/1", 0, stop="env_error"), *groups])
    after = record("step-9.jsonl", [episode("t/1", 1), *groups[1:]])
    row = run("compare", before, after, "--json").json["runs"][0]["overall"]
    assert (row["before"], row["after"], row["difference"]["mean"]) == (0.125, 0.25, 0.125)
    assert row["difference"]["excluded"] == 0


def settings_of(folder: str, **settings: object) -> str:
    """Write a run of eval with one solved episode and these settings."""
    record(f"{folder}/trajectories.jsonl", [episode("t/1", 1)])
    Path(folder, "eval.json").write_text(json.dumps({"schema": 2, "settings": settings}))
    return folder


def test_differing_limits_of_answers_are_reported(run: Run) -> None:
    old = settings_of("old", max_tokens=8192, max_turn_tokens=512, temperature=1.0, episodes_per_task=1)
    new = settings_of(
        "new", max_tokens=4096, max_turn_tokens=512, temperature=0.5, agent={"attempts": 3}, episodes_per_task=2
    )
    outcome = run("compare", old, new)
    assert outcome.err.splitlines() == [
        "not the same conditions: max_tokens is 8192 in old, 4096 in new",
        "not the same conditions: temperature is 1.0 in old, 0.5 in new",
        "not the same conditions: attempts is 1 in old, 3 in new",
    ]
    assert run("compare", old, old).err == ""
    assert run("compare", old, "new/trajectories.jsonl").err == ""  # a file has no settings


def test_the_grammar_of_an_agent_is_reported_once_with_the_agent(run: Run) -> None:
    def played(name: str, agent: str | None, grammar: str | None, context: str = "full") -> str:
        meta = {} if agent is None else {"agent": {"name": agent, "context": context}}
        kwargs = {} if grammar is None else {"grammar": grammar}
        return record(f"{name}.jsonl", [episode("t/1", 1, env_kwargs=kwargs, meta=meta)])

    plain, act = played("plain", None, None), played("act", "act", "bare")
    react, other = played("react", "react", "react", "last:2"), played("other", "react", "tag")
    assert make_agent("act").grammar == "bare"
    prefix = "not the same conditions: agent:"
    assert run("compare", plain, react).err == f"{prefix} none -> react (last:2)\n"
    assert run("compare", act, react).err == f"{prefix} act -> react (last:2)\n"
    assert 'arguments is {} in act.jsonl, {"grammar": "tag"}' in run("compare", act, other).err


def test_several_attempts_in_one_run_only_are_reported(run: Run) -> None:
    once = record("once.jsonl", [episode("t/1", 1, meta={"agent": {"name": "act", "attempts": 1}})])
    meta = {"agent": {"name": "reflect", "attempts": 3}, "attempts": [{}, {}]}
    again = record("again.jsonl", [episode("t/1", 1, meta=meta)])
    assert "again.jsonl had up to 3 attempts per episode" in run("compare", once, again).err
    assert "again.jsonl had up to 3 attempts per episode" in run("compare", again, once).err
    assert run("compare", again, again).err == ""
    assert run("compare", once, once).err == ""


@pytest.mark.parametrize(
    "odd", ["[]", '{"settings": 3, "metrics": [1]}', '{"metrics": {"groups": [1, {"group": []}]}}']
)
def test_a_malformed_eval_json_does_not_prevent_the_comparison(run: Run, odd: str) -> None:
    folder = settings_of("odd")
    Path(folder, "eval.json").write_text(odd)
    assert run("compare", folder, folder).code == 0


def test_a_malformed_episode_is_reported_with_its_line(refuses: Run, base: str) -> None:
    line = json.loads(Path(base).read_text().splitlines()[0])
    Path("odd.jsonl").write_text(json.dumps({**line, "score": float("nan")}) + "\n")
    assert "odd.jsonl:1: " in refuses("compare", base, "odd.jsonl").err
    assert "a finite number" in refuses("report", "odd.jsonl").err


def test_runs_without_shared_tasks_get_advice_that_helps(run: Run, refuses: Run) -> None:
    for seed, split in ((0, "test"), (0, "train")):
        words = ("--policy", "random", "--tasks", 2, "--max-turns", 2, "--split", split, "--seed", seed)
        assert run("eval", "textcraft", *words, "--out", split).code == 0
    err = refuses("compare", "test", "train").err
    assert "no task in both runs" in err and "textcraft/" in err and "--seed" in err and "--partial" not in err

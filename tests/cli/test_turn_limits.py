"""The turn limits of `eval`, `demos` and training: defaults of the environments, and what is said about them."""

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import gymnasium as gym
import pytest

from agentgym_envs.cli.evaluating.turn_limits import default_notes, limit_of, oracle_notes, turn_limits
from agentgym_envs.core import text_env
from agentgym_envs.difficulty import read_frozen
from agentgym_envs.registration import DEFAULT_MAX_TURNS, default_max_turns
from agentgym_envs.task import Difficulty, Task, TaskTable
from agentgym_envs.trajectory import read_trajectories

from .conftest import TOY, Run

TEXTCRAFT, SCIWORLD = "AgentGym/TextCraft-v0", "AgentGym/SciWorld-v0"


def test_the_default_limit_is_long_enough_for_the_oracle() -> None:
    tasks = text_env(gym.make(TEXTCRAFT)).tasks
    needed = [found.turns for task in tasks.sample() if (found := tasks.difficulty(task))]
    assert DEFAULT_MAX_TURNS < max(needed) <= default_max_turns(TEXTCRAFT)
    for env_id, folder in ((SCIWORLD, "sciworld"), ("AgentGym/WebArena-v0", "webarena.tasks.data")):
        kinds = read_frozen(files("agentgym_envs").joinpath(*folder.split("."), "difficulty.json")).values()
        assert max(kind.turns for kind in kinds) <= default_max_turns(env_id)
    assert default_max_turns(SCIWORLD) > 761  # its longest known plan


@pytest.mark.parametrize(
    "given, ids, limits, notes",
    [
        (7, [TEXTCRAFT, SCIWORLD], 7, None),
        (1, ["Other/Env-v0"], 1, None),
        (None, ["Other/Env-v0"], 30, ["at most 30 turns per episode, by default; --max-turns N changes it"]),
        (None, [SCIWORLD, "my.module:" + SCIWORLD], 800, ["at most 800 turns per episode, by default; "]),
        (None, [TEXTCRAFT, SCIWORLD], {TEXTCRAFT: 50, SCIWORLD: 800}, [f"{TEXTCRAFT}: at most 50", f"{SCIWORLD}: at"]),
    ],
)
def test_limits_are_given_or_those_of_the_environments(
    given: int | None, ids: list[str], limits: object, notes: Sequence[str] | None
) -> None:
    found = turn_limits(given, ids)
    assert found == limits
    assert [limit_of(found, env_id) for env_id in ids] == [given or default_max_turns(env_id) for env_id in ids]
    if notes is not None:
        assert all(text.startswith(start) for text, start in zip(default_notes(found), notes, strict=True))


class _Graded(TaskTable):
    asked = 0

    def difficulty(self, task: Task) -> Difficulty | None:
        self.asked += 1
        return None if task.group == "unknown" else Difficulty(int(task.id))


def test_a_plan_longer_than_the_limit_is_reported() -> None:
    table = _Graded("graded", 1, [Task(str(n), "test", "unknown" if n > 900 else "g", "go") for n in range(1, 1001)])
    tasks = table.sample()
    (note,) = oracle_notes("Other/Env-v0", table, tasks[:10], 8)
    assert "more than 8 turns, up to 10, for 2 of 10 tasks, so" in note
    (note,) = oracle_notes("Other/Env-v0", table, tasks, 20)
    assert "up to 891, for 88 of 90 tasks that were looked up" in note
    assert table.asked == 110  # no more than a hundred at a time
    assert list(oracle_notes("Other/Env-v0", table, tasks[:8], 8)) == []
    assert list(oracle_notes("Other/Env-v0", table, tasks, 30)) == []  # the default of the environment
    assert table.asked == 118


def test_eval_and_demos_report_their_limit(run: Run, toy: str) -> None:
    words = ("eval", "textcraft", "--policy", "oracle", "--split", "test", "--tasks", 5, "--seed", 1)
    assert "at most 50 turns per episode, by default" in run(*words, "--out", "long").err
    assert {episode.meta["max_turns"] for episode in read_trajectories("long/trajectories.jsonl")} == {50}
    assert json.loads(Path("long/eval.json").read_text())["settings"]["max_turns"] == 50
    short = run(*words, "--max-turns", 3, "--json")
    assert "the oracle needs more than 3 turns" in short.err and "at most" not in short.err  # JSON has the limit
    assert short.json["settings"]["max_turns"] == 3
    demos = run("demos", toy, "--out", "d.jsonl")
    assert "at most 100 turns" in demos.err
    assert {episode.meta["max_turns"] for episode in read_trajectories("d.jsonl")} == {100}


def test_environments_with_other_limits_play_within_their_own(run: Run, toy: str) -> None:
    words = ("eval", "textcraft", toy, "--policy", "oracle", "--split", "test", "--tasks", 2, "--out", "two")
    result = run(*words, "--json").json
    assert result["settings"]["max_turns"] == {TEXTCRAFT: 50, TOY: 30}
    found = {episode.env_id: episode.meta["max_turns"] for episode in read_trajectories("two/trajectories.jsonl")}
    assert found == {TEXTCRAFT: 50, TOY: 30}
    assert run(*words, "--resume").code == 0

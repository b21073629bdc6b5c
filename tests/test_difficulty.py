"""The difficulty of tasks, and the dial that restricts which tasks are drawn."""

from __future__ import annotations

import json
import pickle
from importlib.resources import files
from typing import Any

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import text_env
from agentgym_envs.difficulty import DialedTasks, TurnRange
from agentgym_envs.errors import UsageError
from agentgym_envs.http.run import background_server
from agentgym_envs.task import Difficulty, Task, TaskSet
from tests.toy import CountEnv

TEXTCRAFT, BABYAI, SEARCH = "AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0", "AgentGym/Search-v0"
DIALS: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    (TEXTCRAFT, {}, (5, 7)),
    (TEXTCRAFT, {"worlds": "invented"}, (20, 30)),
    (BABYAI, {"levels": "agentgym"}, (6, 9)),
    (SEARCH, {}, (4, 4)),
]


def make(env_id: str, **kwargs: Any) -> Any:
    return text_env(gym.make(env_id, **kwargs))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("env_id", "kwargs", "turns"), DIALS)
def test_drawn_tasks_lie_in_the_range(env_id: str, kwargs: dict[str, Any], turns: tuple[int, int]) -> None:
    """The oracle of what a reset draws needs as many turns; other tasks can still be named."""
    env, every = make(env_id, **kwargs, difficulty=turns), make(env_id, **kwargs)
    for seed in range(5):
        env.reset(seed=seed)
        assert turns[0] <= len(list(env.oracle())) <= turns[1]
    sampled = env.tasks.sample(8, split="train", seed=1)
    assert len({task.id for task in sampled}) == 8 and sampled == env.tasks.sample(8, split="train", seed=1)
    assert all(task.split == "train" and _within(env, task, turns) for task in sampled)
    outside = next(t for t in map(every.tasks.draw, range(999)) if not _within(every, t, turns))
    assert env.reset(seed=0, options={"task": outside.id})[1]["task_id"] == outside.id
    assert env.tasks.digest != every.tasks.digest
    assert pickle.loads(pickle.dumps(env)).tasks.draw(3) == env.tasks.draw(3)


def _within(env: Any, task: Any, turns: tuple[int, int]) -> bool:
    return bool(turns[0] <= env.tasks.difficulty(task).turns <= turns[1])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("env_id", [TEXTCRAFT, BABYAI, SEARCH])
def test_the_measure_is_that_of_an_episode(env_id: str) -> None:
    env = make(env_id)
    for key in range(10):
        task = env.tasks.draw(key, split="train")
        found, (observation, info) = env.tasks.difficulty(task), env.reset(seed=0, options={"task": task.id})
        assert found.turns == len(list(env.oracle()))
        assert found.observation_chars == pytest.approx(len(observation), rel=0.25)
        if env_id == BABYAI:
            assert found.branching == len(info["available_actions"])
            assert found.observation_chars == len(observation)


def test_measures_are_hand_counted_ones() -> None:
    """Planks from a log, the only recipe that is needed; and two of BabyAI's worlds."""
    env = make(TEXTCRAFT, max_distractors=0)
    task = env.tasks.get("textcraft/0")
    observation, _ = env.reset(options={"task": task.id})
    lines = observation.split("\n\n")[0].split("\n")[1:]
    assert len(lines) == 1
    found = env.tasks.difficulty(task)
    assert (found.turns, found.branching) == (2, 2.0)  # take the logs, or craft
    assert 0 <= found.distractors <= 10
    baby = make(BABYAI).tasks
    alone = baby.difficulty(baby.get("babyai/GoToRedBallNoDists/0"))
    assert alone.distractors == 0
    assert baby.difficulty(baby.get("babyai/GoToRedBall/0")).distractors == 7


@pytest.mark.parametrize("difficulty", [5, (5,), (8, 3), (0, 3), (1.5, 3), "3-8", (True, 3)])
def test_a_malformed_range_is_an_error(difficulty: Any) -> None:
    with pytest.raises(UsageError, match=r"as in difficulty=\(3, 8\)"):
        make(TEXTCRAFT, difficulty=difficulty)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ("env_id", "kwargs", "known"),
    [
        (TEXTCRAFT, {}, "of split train needs 90 to 99 turns; the oracle needs 2 to"),
        (TEXTCRAFT, {"groups": ["depth-1"]}, "in depth-1 needs 90 to 99 turns"),
        (SEARCH, {"split": "test"}, "of split test needs 90 to 99 turns; the oracle needs 2 to"),
        (BABYAI, {"levels": "GoToRedBallNoDists"}, "needs 90 to 99 turns; the oracle needs 1 to"),
        ("AgentGym/MiniWoB-v0", {}, "have no known difficulty"),
    ],
)
def test_an_empty_range_names_the_turns_that_exist(env_id: str, kwargs: dict[str, Any], known: str) -> None:
    with pytest.raises(UsageError, match=known):
        make(env_id, difficulty=(90, 99), **kwargs)


class Numbers(TaskSet):
    """Unlimited tasks. One in ten needs one turn, the others need two."""

    name, version, groups, digest = "numbers", 1, ("all",), ""

    def get(self, task_id: str) -> Task:
        return Task(task_id, "train", "all", "count")

    def draw(self, key: int, *, split: str | None = None, groups: Any = None) -> Task:
        return self.get(str(key))

    def sample(self, count: int | None = None, **_: Any) -> list[Task]:
        raise NotImplementedError

    def difficulty(self, task: Task) -> Difficulty:
        return Difficulty(1 if int(task.id) % 10 == 0 else 2)


def test_rare_tasks_of_an_unlimited_set_are_found() -> None:
    """However many are outside of the range, as long as the next one in it comes soon."""
    found = DialedTasks(Numbers(), TurnRange(1, 1)).sample(200)
    assert len(found) == 200 and all(int(task.id) % 10 == 0 for task in found)


def test_a_server_and_a_vector_take_the_range() -> None:
    local = make(TEXTCRAFT, difficulty=(5, 7))
    with background_server([TEXTCRAFT]) as url:
        remote = make(TEXTCRAFT, base_url=url, difficulty=(5, 7))
        assert [remote.reset(seed=seed) for seed in range(3)] == [local.reset(seed=seed) for seed in range(3)]
        task = remote.tasks.draw(0)
        assert remote.tasks.difficulty(task) == local.tasks.difficulty(task) != None  # noqa: E711
        assert remote.tasks.digest == local.tasks.digest
        with pytest.raises(UsageError, match="needs 90 to 99 turns"):
            make(TEXTCRAFT, base_url=url, difficulty=[90, 99])
    vector: Any = gym.make_vec(TEXTCRAFT, num_envs=3, difficulty=(5, 7))
    _, infos = vector.reset(seed=4)
    assert all(_within(local, local.tasks.get(task), (5, 7)) for task in infos["task_id"])
    vector.close()


def test_a_set_without_a_measure_has_no_difficulty() -> None:
    tasks = CountEnv().tasks
    assert tasks.difficulty(tasks.draw(0)) is None


def test_ranges_include_both_ends() -> None:
    assert [turns in TurnRange(2, 4) for turns in (1, 2, 4, 5)] == [False, True, True, False]
    base = make(TEXTCRAFT).tasks
    counts = DialedTasks(base, TurnRange(2, 4)).counts()
    assert counts is not None
    expected = sum(2 <= base.difficulty(task).turns <= 4 for task in base)
    assert sum(sum(splits.values()) for splits in counts.values()) == expected
    assert isinstance(base.difficulty(base.draw(0)), Difficulty)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("package", "name", "kind"),
    [
        ("agentgym_envs.sciworld", "AgentGym/SciWorld-v0", "task"),
        ("agentgym_envs.webarena.tasks.data", "AgentGym/WebArena-v0", "template"),
    ],
)
def test_frozen_difficulties_are_of_the_present_tasks(package: str, name: str, kind: str) -> None:
    """A kind that was not measured has no difficulty, and the dial leaves it out."""
    tasks = make(name).tasks
    frozen = json.loads((files(package) / "difficulty.json").read_text())
    assert frozen["tasks"] == tasks.digest, "run scripts/measure_difficulty.py"
    first = {task.data[kind]: task for task in reversed(list(tasks))}
    assert frozen["kinds"] and set(frozen["kinds"]) <= set(first)
    for name_of_kind, task in first.items():
        found = tasks.difficulty(task)
        assert (found.turns if found else None) == frozen["kinds"].get(name_of_kind, [None])[0]
    turns = min(row[0] for row in frozen["kinds"].values())
    drawn = make(name, difficulty=(turns, turns)).tasks.sample(split="train")
    assert {task.data[kind] for task in drawn} == {k for k, row in frozen["kinds"].items() if row[0] == turns}


@pytest.mark.slow
def test_the_second_version_of_the_web_tasks_is_measured() -> None:
    tasks = make("AgentGym/WebArena-v0", table_version=2).tasks
    frozen = json.loads((files("agentgym_envs.webarena.tasks.data") / "difficulty-2.json").read_text())
    assert frozen["tasks"] == tasks.digest, "run scripts/measure_difficulty.py webarena-2"
    added = {task.data["template"] for task in tasks} - {
        task.data["template"] for task in make("AgentGym/WebArena-v0").tasks
    }
    assert added == set(frozen["kinds"]) and all(tasks.difficulty(task) for task in tasks)

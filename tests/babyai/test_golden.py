"""One episode of every level, compared with a golden file.

After an intended change, `WRITE_GOLDEN=1 pytest tests/babyai/test_golden.py` writes the file again: read the diff,
and raise the version in the environment's id if what a policy sees or gets has changed.
"""

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import GROUPS, LEVELS
from agentgym_envs.errors import NoOracle

NAME = "babyai.jsonl"
SEED = 7
RANDOM_TURNS = 15
KEPT_TURNS = 2
"""The number of first turns whose text is stored, as is the last one; other turns are stored as a hash."""
FORMS = ({"numbering": "stable"}, {"actions": "primitive"})
"""Further options for the first two levels of each group."""
PLAYED: list[tuple[str, dict[str, str]]] = [(level, {}) for level in LEVELS] + [
    (level, options) for levels in GROUPS.values() for level, options in zip(levels, FORMS, strict=False)
]


def brief(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def commands(env: BabyAIEnv, rng: random.Random) -> Iterator[str]:
    """Yield random commands, and then the oracle's, if it finds a plan."""
    for _ in range(RANDOM_TURNS):
        yield env.random_command(rng)
    try:
        yield from list(env.oracle())
    except NoOracle:
        return


def turn(env: BabyAIEnv, command: str) -> list[Any]:
    observation, reward, terminated, truncated, info = env.step(command)
    return [command, observation, reward, terminated, truncated, info["state_key"]]


def play(level: str, options: dict[str, str]) -> dict[str, Any]:
    env = BabyAIEnv(**options)  # type: ignore[arg-type]
    observation, info = env.reset(seed=0, options={"task": f"babyai/{level}/{SEED}"})
    turns = []
    for command in commands(env, random.Random(level)):
        turns.append(turn(env, command))
        if turns[-1][3] or turns[-1][4]:
            break
    for played in turns[KEPT_TURNS:-1]:
        played[1] = brief(played[1])
    return {"task": info["task_id"], "options": options, "observation": observation, "turns": turns}


def written() -> str:
    return "".join(json.dumps(play(level, options)) + "\n" for level, options in PLAYED)


@pytest.fixture
def episodes(frozen: Callable[[str, Callable[[], str]], str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in frozen(NAME, written).splitlines()]


def test_play_reproduces_the_golden_transcripts(episodes: list[dict[str, Any]]) -> None:
    for episode in episodes:
        env = BabyAIEnv(**episode["options"])
        observation, _ = env.reset(seed=0, options={"task": episode["task"]})
        assert observation == episode["observation"], episode["task"]
        for number, expected in enumerate(episode["turns"]):
            played = turn(env, expected[0])
            if KEPT_TURNS <= number < len(episode["turns"]) - 1:
                played[1] = brief(played[1])
            assert played == expected, (episode["task"], episode["options"], number)


def test_each_level_has_an_episode_and_nearly_all_succeed(episodes: list[dict[str, Any]]) -> None:
    assert [(episode["task"].split("/")[1], episode["options"]) for episode in episodes] == PLAYED
    ends = [episode["turns"][-1] for episode in episodes]
    assert all(reward == 0 for episode in episodes for _, _, reward, *_ in episode["turns"][:-1])
    assert sum(terminated and 0 < reward <= 1 for _, _, reward, terminated, *_ in ends) > 0.9 * len(ends)

"""The sentences of the text view against a slow version of AgentGym's, derived from minigrid's image."""

import random
from collections import Counter
from typing import Any

import pytest
from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT
from minigrid.minigrid_env import MiniGridEnv

from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import AGENTGYM_LEVELS, LEVELS
from tests.plugins.rotation import part

DOORS = ("open", "closed", "locked")
AGENT = (3, 6)
"""Column and row of the agent in the image, in which it looks up."""


def described_slowly(level: Any) -> str:
    image = MiniGridEnv.gen_obs(level)["image"]
    cells = {(x, y): (IDX_TO_OBJECT[image[x][y][0]], *image[x][y][1:]) for x in range(7) for y in range(7)}
    held = cells.pop(AGENT)
    return things(cells) + surroundings(cells) + hands(held)


def things(cells: dict[tuple[int, int], Any]) -> str:
    sentences, numbers = "", Counter[str]()
    for x, y in sorted(cells, key=lambda cell: (abs(cell[0] - 3) + 6 - cell[1], cell[1], cell[0])):
        if cells[x, y][0] in ("unseen", "empty", "wall"):
            continue
        name = named(cells[x, y])
        numbers[name] += 1
        position = f"right in front of you {6 - y} steps away. "
        if x != 3:
            position = f"{6 - y} steps in front of you and {abs(x - 3)} steps to your {'left' if x < 3 else 'right'}. "
        sentences += f"There is a {name} {numbers[name]} {position} "
    if not sentences:  # AgentGym has "you can see several objects: " here, and nothing after it
        return "You cannot see any objects within sight. "
    return f"In front of you in this room, you can see several objects: {sentences}"


def surroundings(cells: dict[tuple[int, int], Any]) -> str:
    text = "The room has walls around you. "
    for steps in range(1, 7):
        what = cells[3, 6 - steps][0]
        if what in ("wall", "box"):
            return f"{text}You are facing a {what} {steps} steps away. "
    return text


def hands(held: Any) -> str:
    return "You are not carrying anything." if held[0] == "empty" else f"You are carrying a {named(held)}."


def named(cell: Any) -> str:
    kind, color, state = cell
    return f"{IDX_TO_COLOR[color]} {DOORS[state] + ' ' if kind == 'door' else ''}{kind}"


def check(env: BabyAIEnv, task: str, turns: int) -> None:
    observation, _ = env.reset(seed=0, options={"task": task})
    rng = random.Random(task)
    for _ in range(turns):
        assert described_slowly(env.world.level) in observation
        observation, _, terminated, truncated, _ = env.step(env.random_command(rng))
        if terminated or truncated:
            break


@pytest.mark.parametrize("level", AGENTGYM_LEVELS[::3])
def test_sentences_equal_agentgyms(level: str) -> None:
    check(BabyAIEnv(), f"babyai/{level}/5", 20)


@pytest.mark.slow
def test_sentences_equal_agentgyms_on_all_levels() -> None:
    env = BabyAIEnv()
    for level in part(LEVELS, "babyai sentences"):
        for seed in range(4):
            check(env, f"babyai/{level}/{seed}", 50)

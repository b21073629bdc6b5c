"""Short episodes of some tasks, compared with a golden file.

After an intended change, `WRITE_GOLDEN=1 pytest tests/sciworld/test_golden.py` writes the file again: read the diff,
and raise the version in the environment's id if what a policy sees or gets has changed.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.sciworld.env import SciWorldEnv

FILE = Path(__file__).parents[1] / "golden" / "sciworld.jsonl"
HOUSE = ("open door to greenhouse", "go to greenhouse", "open door to outside", "go to outside")
WORKSHOP = ("open door to workshop", "go to workshop")
PLAYED: list[tuple[str, str, tuple[str, ...]]] = [
    (
        "find-non-living-thing/0",
        "",
        ("open door to kitchen", "go to kitchen", "Look around.", "focus on cupboard", "move cupboard to red box"),
    ),
    ("find-animal/0", "", (*HOUSE, "look around", "wait", "look around", "focus on air")),
    ("lifespan-longest-lived/0", "", (*HOUSE, "look around", "focus on baby baby brown bear")),
    (
        "power-component/0",
        "",
        (
            *WORKSHOP,
            "look around",
            "connect anode to cathode",
            "0",
            "focus on red light bulb",
            "connect battery anode to black wire terminal 1",
            "connect battery cathode to orange wire terminal 1",
            "connect black wire terminal 2 to cathode in red light bulb",
            "connect orange wire terminal 2 to anode in red light bulb",
        ),
    ),
    (
        "find-plant/0",
        "easy",
        (
            *("teleport to greenhouse", "look around", "look at soil", "1.", "look at soil", "cancel"),
            *("focus on adult apple tree", "pick up flower pot 6", "inventory", "reset task", "task"),
        ),
    ),
    (
        "boil/0",
        "easy",
        (
            *(
                "teleport to kitchen",
                "look around",
                "go to door",
                "99",
                "open freezer",
                "look in freezer",
                "open fridge",
            ),
            *("open cupboard", "move metal pot to sink", "activate sink", "look in metal pot", "focus on water", "0"),
            *("focus on water in metal pot", "move metal pot to stove", "activate stove", "wait", "look at stove"),
            *("pick up thermometer", "use thermometer on metal pot", "eat stove", "dance", "0"),
        ),
    ),
    (
        "chemistry-mix-paint-secondary-color/0",
        "teleportAction,openDoors",
        (
            *("teleport to art studio", "look around", "pour cup containing blue paint in art studio in jug"),
            *(
                "pour cup containing yellow paint in art studio in jug",
                "mix jug",
                "look around",
                "focus on green paint",
            ),
        ),
    ),
    ("grow-fruit/3", "easy", ("teleport to outside", "wait", "look around", "wait1", "look around", "help", "objects")),
    ("mendelian-genetics-known-plant/1", "", ("look around", "inventory", "", "read door", "go to hallway", "wait")),
]


def turn(env: SciWorldEnv, command: str) -> list[Any]:
    observation, reward, terminated, truncated, info = env.step(command)
    return [command, observation, reward, terminated, truncated, info["moves"], info["invalid_action"] is not None]


def play(
    make: Callable[..., SciWorldEnv], task: str, simplifications: str, commands: tuple[str, ...]
) -> dict[str, Any]:
    env = make(simplifications=simplifications)
    observation, info = env.reset(seed=0, options={"task": f"sciworld/{task}"})
    turns = [turn(env, command) for command in commands]
    env.close()
    return {"task": info["task_id"], "simplifications": simplifications, "observation": observation, "turns": turns}


@pytest.mark.slow
def test_play_reproduces_the_golden_transcripts(make: Callable[..., SciWorldEnv]) -> None:
    if os.environ.get("WRITE_GOLDEN"):
        FILE.write_text("".join(json.dumps(play(make, *played)) + "\n" for played in PLAYED), encoding="utf-8")
    episodes = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    for episode, played in zip(episodes, PLAYED, strict=True):
        now = play(make, *played)
        for number, expected in enumerate(episode["turns"]):
            assert now["turns"][number] == expected, (played[0], number)
        assert now == episode


def test_the_golden_file_covers_all_kinds_of_turns() -> None:
    episodes = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    turns = [turn for episode in episodes for turn in episode["turns"]]
    ends = [turn for turn in turns if turn[3]]
    assert [sum(turn[2] for turn in episode["turns"]) for episode in episodes].count(1.0) == 4
    assert len(ends) > 4 and any("Ambiguous request" in turn[1] for turn in turns)
    assert 0 < sum(turn[6] for turn in turns) < 10

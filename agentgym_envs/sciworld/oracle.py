"""The commands that solve a task: the simulator's own gold paths, tried out before they are told."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from agentgym_envs.errors import NoOracle
from agentgym_envs.sciworld.jvm import Jvm
from agentgym_envs.sciworld.simulation import Simulation

_found: dict[tuple[str, int, str], tuple[str, ...]] = {}
_scratch: WeakKeyDictionary[Jvm, Simulation] = WeakKeyDictionary()


def solve(jvm: Jvm, task: str, variation: int, simplifications: str, done: Sequence[str]) -> Sequence[str]:
    """What is left to do after the commands `done`. Raises NoOracle if they are not the beginning of the gold path."""
    path = gold_path(jvm, task, variation, simplifications)
    if tuple(done) != path[: len(done)]:
        raise NoOracle("the gold path of ScienceWorld starts at the beginning, and another way was taken")
    return path[len(done) :]


def gold_path(jvm: Jvm, task: str, variation: int, simplifications: str) -> tuple[str, ...]:
    """ScienceWorld's gold path up to where it solves the task; kept for as long as the process lives."""
    key = task, variation, simplifications
    if key not in _found:
        world = _scratch.setdefault(jvm, Simulation(jvm)) if jvm not in _scratch else _scratch[jvm]
        path = world.gold_path(*key)
        world.load(*key)
        for place, command in enumerate(path):
            if world.step(command).completed:
                _found[key] = tuple(path[: place + 1])
                break
        else:
            raise NoOracle(f"ScienceWorld's gold path does not solve {task} {variation}")
    return _found[key]

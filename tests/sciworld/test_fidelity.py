"""The simulator gives the same texts and scores through our environment and the package's own wrapper.

The wrapper lists all possible actions after every step. That draws lots from the generator that also moves the animals,
so its worlds go other ways than those of the same actions alone; here it is kept from asking.
"""

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
import scienceworld.scienceworld as upstream

from agentgym_envs.sciworld.env import SciWorldEnv
from agentgym_envs.sciworld.java import _OPTIONS

pytestmark = pytest.mark.slow

TASKS = (
    *("find-animal/7", "power-component/4", "lifespan-longest-lived-then-shortest-lived/5", "chemistry-mix/3"),
    *("use-thermometer/11", "identify-life-stages-1/2"),
)
WANDERED = (("boil/4", "easy"), ("grow-fruit/5", ""), ("find-plant/2", "teleportAction,openDoors"), ("freeze/0", ""))


def in_turns(cases: Sequence[Any]) -> list[Any]:
    """The first task is in every run."""
    return [cases[0], *(pytest.param(case, marks=pytest.mark.rotating) for case in cases[1:])]


JUNK = (
    *("", "0", "1", "-1", "cancel", "help", "objects", "task", "TASK", "reset task", "look", "inventory", "wait1"),
    *("go to door", "look at door", "open door", "look at substance", "Open Door To Kitchen", "dance", "é漢🙂\x00"),
    *("x" * 3000, "focus on", "$1 \\ %s {}", "connect agent to agent", "move air to inventory"),
)
"""Commands that are sent to the simulator unchanged."""


@pytest.fixture(scope="module")
def wrapper() -> Iterator[Any]:
    launch = upstream.launch_gateway
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upstream, "launch_gateway", partial(launch, javaopts=["-Xmx600m", *_OPTIONS]))
        made = upstream.ScienceWorldEnv(envStepLimit=10**9)
    made.get_valid_action_object_combinations = list
    yield made
    end(made)


def end(wrapper: Any) -> None:
    """Do what the wrapper's `close` leaves out, and prevent a second call by the garbage collector."""
    process = wrapper._gateway.java_process
    with contextlib.suppress(BrokenPipeError):
        wrapper.close()
    wrapper.close = lambda: None
    wrapper._obj_tree_tempdir.cleanup()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.wait(20)


def begin(env: SciWorldEnv, wrapper: Any, task: str) -> None:
    name, variation = task.split("/")
    wrapper.load(name, int(variation), env.simplifications)
    seen, _ = wrapper.reset()
    observation, _ = env.reset(seed=0, options={"task": f"sciworld/{task}"})
    assert observation == f"{wrapper.get_task_description()}\n{seen}"


def agree(env: SciWorldEnv, wrapper: Any, commands: Iterator[str]) -> dict[str, Any]:
    """Play the commands in both environments, compare them, and return the last info."""
    best = 0
    for command in commands:
        theirs, _, done, details = wrapper.step(command)
        ours, reward, terminated, truncated, info = env.step(command)
        assert (ours, terminated, truncated, info["moves"]) == (theirs, done, False, details["moves"]), command
        assert reward >= 0
        if info["invalid_action"] is None:  # what a task gives from the start is paid with the first known command
            best = max(best, details["score"])
        assert info["score"] == best / 100
        assert (info["stop_reason"] == "failure") == (details["score"] < 0)
        if terminated:
            break
    return info


@pytest.mark.parametrize("task", in_turns(TASKS))
def test_gold_paths_give_the_wrappers_results(make: Callable[..., SciWorldEnv], wrapper: Any, task: str) -> None:
    env = make()
    begin(env, wrapper, task)
    info = agree(env, wrapper, env.oracle())
    assert info["success"] and info["score"] == 1.0


def stray(env: SciWorldEnv, rng: random.Random) -> Iterator[str]:
    for _ in range(60):
        command = rng.choice(JUNK) if rng.random() < 0.3 else env.random_command(rng)
        if not command.startswith("focus"):
            yield command
    yield "focus on agent"


@pytest.mark.parametrize("wandered", in_turns(WANDERED))
def test_random_commands_give_the_wrappers_results(
    make: Callable[..., SciWorldEnv], wrapper: Any, wandered: tuple[str, str]
) -> None:
    task, simplifications = wandered
    env = make(simplifications=simplifications)
    begin(env, wrapper, task)
    agree(env, wrapper, stray(env, random.Random(task)))

"""Environments that share a JVM do not affect each other, and give the same results everywhere."""

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import pytest

from agentgym_envs.sciworld import java, pool
from agentgym_envs.sciworld.env import SciWorldEnv
from tests.plugins.rotation import part

pytestmark = pytest.mark.slow
ALWAYS = ("find-animal", "power-component")
MORE = ("boil", "grow-plant", "melt", "find-plant", "use-thermometer", "mendelian-genetics-known-plant")
"""Each run uses one of these."""
TASKS = ("boil", "find-animal", "power-component", *MORE[1:])
"""All tasks; the index decides how a task is played."""
SLOW = {"grow-plant", "mendelian-genetics-known-plant"}
"""Tasks with slow experts."""
Results = list[tuple[Any, ...]]


class Play(NamedTuple):
    task: str
    simplifications: str
    commands: Sequence[str]


def make(play: Play, **options: Any) -> SciWorldEnv:
    return SciWorldEnv(**{"split": None, "jvms": 1, "simplifications": play.simplifications, **options})


def steps(env: SciWorldEnv, play: Play) -> Iterator[tuple[Any, ...]]:
    """Yield the results of each step up to the end of the episode, and then the whole world with its ids."""
    observation, info = env.reset(seed=0, options={"task": play.task})
    yield observation, info["stop_reason"]
    for command in play.commands:
        observation, reward, terminated, truncated, info = env.step(command)
        yield observation, reward, info["score"], info["moves"], info["stop_reason"]
        if terminated or truncated:
            break
    yield hashlib.sha256(env.world.object_tree().encode()).hexdigest(), info["stop_reason"]


def in_turn(plays: Sequence[Play], between: Callable[[int], object] = lambda number: None) -> list[Results]:
    """Play episodes step by step in turn, in one JVM; `between` is called after each round."""
    results: list[Results] = [[] for _ in plays]
    with ExitStack() as stack:
        running = {index: steps(stack.enter_context(closing(make(play))), play) for index, play in enumerate(plays)}
        for number in itertools.count():
            for index, play in list(running.items()):
                if (step := next(play, None)) is None:
                    del running[index]
                else:
                    results[index].append(step)
            if not running:
                break
            between(number)
    return results


def random_play(env: SciWorldEnv, task: str, simplifications: str, length: int = 20) -> Play:
    """Return the commands of a seeded player that knows the objects within reach."""
    rng, commands = random.Random(task), []
    env.reset(seed=0, options={"task": task})
    for _ in range(length):
        commands.append(env.random_command(rng))
        if any(env.step(commands[-1])[2:4]):
            break
    return Play(task, simplifications, commands)


@pytest.fixture(scope="module")
def plays() -> list[Play]:
    """For each task, the expert's first 40 steps in one variation (except for slow experts), and those of a
    random player in another."""
    found = []
    for task in (*part(MORE, "sciworld isolation"), *ALWAYS):  # an easy world, and after it one that is not
        number = TASKS.index(task)
        simplifications = "easy" if number % 3 == 1 else ""
        with closing(make(Play(task, simplifications, ()))) as env:
            env.reset(seed=0, options={"task": f"sciworld/{task}/0"})
            if task not in SLOW:
                found.append(Play(f"sciworld/{task}/0", simplifications, list(env.oracle())[:40]))
            found.append(random_play(env, f"sciworld/{task}/{number + 3}", simplifications))
    return found


@pytest.fixture(scope="module")
def alone(plays: list[Play]) -> list[Results]:
    """The results of each episode alone in its JVM."""
    results = []
    for play in plays:
        with closing(make(play)) as env:
            results.append(list(steps(env, play)))
    return results


def test_the_compared_episodes_are_varied(alone: list[Results]) -> None:
    assert min(len(results) for results in alone) > 3 and sum(len(results) for results in alone) > 40
    assert not any(step[-1] == "env_error" for results in alone for step in results)
    assert sum(results[-1][-1] == "success" for results in alone) >= 1


def test_interleaved_episodes_equal_single_ones(plays: list[Play], alone: list[Results]) -> None:
    assert in_turn(plays) == alone


def test_junk_loads_queries_and_plans_of_other_environments_change_nothing(
    plays: list[Play], alone: list[Results]
) -> None:
    rng, chosen = random.Random(0), range(1, len(plays), 2)
    with closing(SciWorldEnv(split=None, jvms=1, simplifications="easy")) as neighbour:
        neighbour.reset(seed=0)

        def disturb(number: int) -> None:
            if number % 5 == 0 or neighbour.status()["stop_reason"]:
                neighbour.reset(seed=number)
            if number == 7:
                neighbour.reset(seed=0, options={"task": "sciworld/find-plant/3"})
                assert list(neighbour.oracle())
            neighbour.step(rng.choice([neighbour.random_command(rng), "focus on", "reset task", "\U0001f600", "0", ""]))
            if number % 3 == 0:
                neighbour.world.look(), neighbour.world.inventory(), neighbour.world.object_tree()
                neighbour.world.available_actions()

        results = in_turn([plays[index] for index in chosen], disturb)
    assert results == [alone[index] for index in chosen]


@pytest.mark.rotating
def test_episodes_of_sixteen_threads_in_two_jvms_equal_single_ones(
    plays: list[Play], alone: list[Results], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "ENVIRONMENTS_PER_JVM", 8)
    pool.shut_down()
    both, expected = (4 * plays)[:16], (4 * alone)[:16]
    with ExitStack() as stack, ThreadPoolExecutor(16) as threads:
        envs = [stack.enter_context(closing(make(play, jvms=2))) for play in both]
        results = list(threads.map(lambda env, play: list(steps(env, play)), envs, both))
        assert sorted(env.world.jvm.environments for env in envs if env._world) == [8] * 16
    assert results == expected


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("program", [None, *list(java.javas())[1:]])
def test_episodes_are_equal_in_another_jvm_and_another_java(
    plays: list[Play], alone: list[Results], program: str | None
) -> None:
    """The episodes run in reverse order, so that the JVM has another history."""
    pool.shut_down()
    for play, expected in reversed(list(zip(plays, alone, strict=True))):
        with closing(make(play, java_path=program)) as env:
            assert list(steps(env, play)) == expected, play.task


def test_available_actions_do_not_depend_on_the_history_of_the_jvm(plays: list[Play]) -> None:
    def asked(env: SciWorldEnv) -> list[Any]:
        env.reset(seed=0, options={"task": "sciworld/boil/0"})
        return [env.world.available_actions(), env.world.object_tree(), env.world.possible_objects()]

    with closing(make(plays[0])) as env:
        late = asked(env)
    pool.shut_down()
    with closing(make(plays[0])) as env:
        assert asked(env) == late

"""Environments that share a machine are as if each were alone in it, and the same everywhere."""

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
"""Of these a run takes one."""
TASKS = ("boil", "find-animal", "power-component", *MORE[1:])
"""All; its place here decides how a task is played."""
SLOW = {"grow-plant", "mendelian-genetics-known-plant"}
"""Their experts take long."""
Told = list[tuple[Any, ...]]


class Play(NamedTuple):
    task: str
    simplifications: str
    commands: Sequence[str]


def make(play: Play, **options: Any) -> SciWorldEnv:
    return SciWorldEnv(**{"split": None, "jvms": 1, "simplifications": play.simplifications, **options})


def steps(env: SciWorldEnv, play: Play) -> Iterator[tuple[Any, ...]]:
    """What is told, step by step, up to the end of the episode; then the whole world with its numbers."""
    observation, info = env.reset(seed=0, options={"task": play.task})
    yield observation, info["stop_reason"]
    for command in play.commands:
        observation, reward, terminated, truncated, info = env.step(command)
        yield observation, reward, info["score"], info["moves"], info["stop_reason"]
        if terminated or truncated:
            break
    yield hashlib.sha256(env.world.object_tree().encode()).hexdigest(), info["stop_reason"]


def in_turn(plays: Sequence[Play], between: Callable[[int], object] = lambda number: None) -> list[Told]:
    """Played step by step in turn, in one machine; `between` is called after each round."""
    told: list[Told] = [[] for _ in plays]
    with ExitStack() as stack:
        running = {place: steps(stack.enter_context(closing(make(play))), play) for place, play in enumerate(plays)}
        for number in itertools.count():
            for place, play in list(running.items()):
                if (step := next(play, None)) is None:
                    del running[place]
                else:
                    told[place].append(step)
            if not running:
                break
            between(number)
    return told


def random_play(env: SciWorldEnv, task: str, simplifications: str, length: int = 20) -> Play:
    """What a seeded player does, who knows what is at hand."""
    rng, commands = random.Random(task), []
    env.reset(seed=0, options={"task": task})
    for _ in range(length):
        commands.append(env.random_command(rng))
        if any(env.step(commands[-1])[2:4]):
            break
    return Play(task, simplifications, commands)


@pytest.fixture(scope="module")
def plays() -> list[Play]:
    """Of each task the expert's first 40 steps in one variation (but for some whose expert takes long), and a
    random player's in another."""
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
def alone(plays: list[Play]) -> list[Told]:
    """What is told when nothing else is in the machine."""
    told = []
    for play in plays:
        with closing(make(play)) as env:
            told.append(list(steps(env, play)))
    return told


def test_plays_are_worth_comparing(alone: list[Told]) -> None:
    assert min(len(told) for told in alone) > 3 and sum(len(told) for told in alone) > 40
    assert not any(step[-1] == "env_error" for told in alone for step in told)
    assert sum(told[-1][-1] == "success" for told in alone) >= 1


def test_in_turn_as_alone(plays: list[Play], alone: list[Told]) -> None:
    assert in_turn(plays) == alone


def test_a_neighbours_junk_loads_questions_and_plans_change_nothing(plays: list[Play], alone: list[Told]) -> None:
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

        told = in_turn([plays[place] for place in chosen], disturb)
    assert told == [alone[place] for place in chosen]


def test_sixteen_threads_in_two_machines_as_alone(
    plays: list[Play], alone: list[Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "ENVIRONMENTS_PER_JVM", 8)
    pool.shut_down()
    both, expected = (4 * plays)[:16], (4 * alone)[:16]
    with ExitStack() as stack, ThreadPoolExecutor(16) as threads:
        envs = [stack.enter_context(closing(make(play, jvms=2))) for play in both]
        told = list(threads.map(lambda env, play: list(steps(env, play)), envs, both))
        assert sorted(env.world.jvm.environments for env in envs if env._world) == [8] * 16
    assert told == expected


@pytest.mark.parametrize("program", [None, *list(java.javas())[1:]])
def test_the_same_in_another_machine_and_in_another_java(
    plays: list[Play], alone: list[Told], program: str | None
) -> None:
    """In reverse order, so that what the machine went through before is another story."""
    pool.shut_down()
    for play, expected in reversed(list(zip(plays, alone, strict=True))):
        with closing(make(play, java_path=program)) as env:
            assert list(steps(env, play)) == expected, play.task


def test_what_can_be_done_does_not_depend_on_what_the_machine_went_through(plays: list[Play]) -> None:
    def asked(env: SciWorldEnv) -> list[Any]:
        env.reset(seed=0, options={"task": "sciworld/boil/0"})
        return [env.world.available_actions(), env.world.object_tree(), env.world.possible_objects()]

    with closing(make(plays[0])) as env:
        late = asked(env)
    pool.shut_down()
    with closing(make(plays[0])) as env:
        assert asked(env) == late

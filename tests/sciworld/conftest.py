"""SciWorld environments that share their Java machines with the other tests of a module."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentgym_envs.sciworld import pool
from agentgym_envs.sciworld.env import SciWorldEnv


@pytest.fixture(scope="module")
def make() -> Iterator[Callable[..., SciWorldEnv]]:
    """Makes an environment that is closed after the module's last test."""
    made: list[SciWorldEnv] = []

    def make_one(**options: Any) -> SciWorldEnv:
        made.append(SciWorldEnv(**{"split": None, "jvms": 1, **options}))
        return made[-1]

    yield make_one
    for env in made:
        env.close()


@pytest.fixture(scope="module")
def env(make: Callable[..., SciWorldEnv]) -> SciWorldEnv:
    return make()


@pytest.fixture
def no_machines() -> Iterator[None]:
    """None runs before the test, and none after it."""
    pool.shut_down()
    yield
    pool.shut_down()

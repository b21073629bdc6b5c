"""Fixtures: SciWorld environments that share JVMs with the other tests of a module."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentgym_envs.sciworld import pool
from agentgym_envs.sciworld.env import SciWorldEnv


@pytest.fixture(scope="module")
def make() -> Iterator[Callable[..., SciWorldEnv]]:
    """Return a function that creates environments, which are closed after the module's last test."""
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
def no_jvms() -> Iterator[None]:
    """Check that no JVM runs before or after the test."""
    pool.shut_down()
    yield
    pool.shut_down()

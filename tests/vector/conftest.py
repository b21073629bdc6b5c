"""What the tests of the vector environment share."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentgym_envs.vector import TextVectorEnv, make_vec
from tests.toy_envs import HERE, RELEASE

Make = Callable[..., TextVectorEnv]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes vector environments of toys and closes them; what hangs is let go at the end."""
    made = []

    def make(name: str = "Toy/Count-v0", num_envs: int = 3, **options: Any) -> TextVectorEnv:
        made.append(make_vec(HERE + name, num_envs, **options))
        return made[-1]

    RELEASE.clear()
    yield make
    for envs in made:
        envs.close()
    RELEASE.set()

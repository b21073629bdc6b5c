"""Shared fixtures of the vector tests."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentgym_envs.http.run import background_server
from agentgym_envs.vector import TextVectorEnv, make_vec
from tests.toy_envs import HERE, RELEASE

Make = Callable[..., TextVectorEnv]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A server with enough workers for each environment of a test, even while those of an earlier test are closing."""
    with background_server([HERE + "Toy/Count-v0", HERE + "Toy/Slow-v0"], workers=8) as url:
        yield url


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Make vector environments of toys and close them; calls that hang are released at the end."""
    made = []

    def make(name: str = "Toy/Count-v0", num_envs: int = 3, **options: Any) -> TextVectorEnv:
        if options.get("backend") == "remote":
            options["base_url"] = request.getfixturevalue("server")
        made.append(make_vec(HERE + name, num_envs, **options))
        return made[-1]

    RELEASE.clear()
    yield make
    for envs in made:
        envs.close()
    RELEASE.set()

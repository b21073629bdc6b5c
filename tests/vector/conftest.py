"""What the tests of the vector environment share."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentgym_envs.http.run import background_server
from agentgym_envs.vector import TextVectorEnv, make_vec
from tests.toy_envs import HERE, RELEASE

Make = Callable[..., TextVectorEnv]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Keeps what waits in worker processes: enough for each environment of a test to have its own, whatever an earlier
    test's environments that are still closing keep busy.
    """
    with background_server([HERE + "Toy/Count-v0", HERE + "Toy/Slow-v0"], workers=8) as url:
        yield url


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes vector environments of toys and closes them; what hangs is let go at the end."""
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

"""The contract of every environment, over WebArena's tasks on the stub sites."""

from collections.abc import Callable, Iterator
from functools import partial

import gymnasium as gym
import pytest

from tests import contract
from tests.webarena.stub_sites import Stubs
from tests.webarena.test_official_env import DATA

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sites() -> Iterator[Stubs]:
    yield Stubs()


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[contract.Make], None], sites: Stubs) -> None:
    tasks = DATA / "official_tasks.json"
    check(partial(gym.make, "AgentGym/WebArenaOfficial-v0", tasks=tasks, sites=sites.urls, login="none"))

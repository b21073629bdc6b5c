"""The contract of every environment, over WebArena's tasks on the stub sites."""

from collections.abc import Callable, Iterator
from functools import partial

import gymnasium as gym
import pytest
from hypothesis import settings

from agentgym_envs.webarena.official import env as official
from tests import contract
from tests.webarena.stub_sites import Stubs
from tests.webarena.test_official_env import DATA

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sites() -> Iterator[Stubs]:
    yield Stubs()


@pytest.fixture(scope="module", autouse=True)
def short_settle_time() -> Iterator[None]:
    """Settle sooner: the default waits a tenth of a second for remote sites, and these are local."""
    settings.register_profile("few", settings.get_profile("suite"), max_examples=20)
    settings.load_profile("few")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(official, "_QUIET", 0.03)
        yield
    settings.load_profile("suite")


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=check.__name__, marks=() if check in contract.DAILY_CHECKS else pytest.mark.rotating)
        for check in contract.CHECKS
    ],
)
def test_the_environment_keeps_the_contract(check: Callable[[contract.Make], None], sites: Stubs) -> None:
    tasks = DATA / "official_tasks.json"
    check(
        partial(
            gym.make, "AgentGym/WebArenaOfficial-v0", tasks=tasks, sites=sites.urls, login="none", groups=["shopping"]
        )
    )

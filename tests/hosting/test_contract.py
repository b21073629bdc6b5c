"""A twin on worker processes is the environment itself: the whole contract holds for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs import env_ids
from agentgym_envs.hosting import TwinEnv, WorkerPool
from tests import contract
from tests.waiting import until

pytestmark = pytest.mark.slow  # together with its neighbours more than daily use can wait for


# The others are kept in worker processes by the server of tests/test_contract.py.
IDS = [env_id for env_id in env_ids() if env_id not in contract.TAKES_LONG | contract.NEEDS_SITES]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    pool.close()


def make_twin(pool: WorkerPool, env_id: str, **options: Any) -> TwinEnv:
    twin = TwinEnv(env_id, pool, options)
    twin.spec = gym.make(env_id).spec  # so that Gymnasium's checker can make others like it
    return twin


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[contract.Make], None], env_id: str, pool: WorkerPool) -> None:
    check(partial(make_twin, pool, env_id))


@pytest.mark.parametrize("env_id", IDS)
def test_it_is_the_same_byte_for_byte(env_id: str, pool: WorkerPool) -> None:
    make = partial(gym.make, env_id)
    contract.twins_agree(make, partial(make_twin, pool, env_id), contract.transcript_hash(make))


def test_no_session_is_left(pool: WorkerPool) -> None:
    until(lambda: not any(worker.sessions for worker in pool.workers))  # a worker says when it has closed one

"""Remote environments in worker processes keep the whole contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs import env_ids
from agentgym_envs.core import text_env
from agentgym_envs.errors import UsageError
from agentgym_envs.hosting import RemoteEnv, WorkerPool
from agentgym_envs.hosting.remote_tasks import RemoteTasks
from agentgym_envs.task import TaskTable
from tests import contract
from tests.waiting import until

pytestmark = pytest.mark.slow  # together with its neighbours more than daily use can wait for


# The others are kept in worker processes by the server of tests/test_contract.py.
IDS = [env_id for env_id in env_ids() if env_id not in contract.SLOW_ENVS | contract.NEEDS_SITES]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    pool.close()


def make_twin(pool: WorkerPool, env_id: str, **options: Any) -> RemoteEnv:
    twin = RemoteEnv(env_id, pool, options)
    twin.spec = gym.make(env_id).spec  # so that Gymnasium's checker can make others like it
    return twin


@pytest.mark.parametrize("env_id", [IDS[0], *(pytest.param(env_id, marks=pytest.mark.rotating) for env_id in IDS[1:])])
@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[contract.Make], None], env_id: str, pool: WorkerPool) -> None:
    check(partial(make_twin, pool, env_id))


@pytest.mark.parametrize("env_id", IDS)
def test_it_is_the_same_byte_for_byte(env_id: str, pool: WorkerPool) -> None:
    make = partial(gym.make, env_id)
    contract.remote_agrees(make, partial(make_twin, pool, env_id), contract.transcript_hash(make))


def test_a_table_can_be_counted_and_listed(pool: WorkerPool) -> None:
    here = text_env(gym.make("AgentGym/TextCraft-v0")).tasks
    assert isinstance(here, TaskTable)
    twin = make_twin(pool, "AgentGym/TextCraft-v0")
    assert isinstance(twin.tasks, RemoteTasks)
    assert len(twin.tasks) == len(here) == 544
    assert list(twin.tasks) == list(here)
    counts = twin.tasks.counts()
    assert counts is not None
    counts["depth-1"]["train"] = 0
    assert twin.tasks.counts() == here.counts()
    twin.close()


def test_a_set_without_end_can_not(pool: WorkerPool) -> None:
    twin = make_twin(pool, "AgentGym/TextCraft-v0", worlds="invented")
    assert isinstance(twin.tasks, RemoteTasks)
    assert twin.tasks and twin.tasks.counts() is None
    with pytest.raises(TypeError, match=r"number of tasks .* unknown"):
        len(twin.tasks)
    with pytest.raises(UsageError):
        list(twin.tasks)
    twin.close()


def test_a_server_that_tells_no_counts_is_as_one_without_end() -> None:
    described = {"name": "old", "version": 1, "digest": "0" * 64, "groups": ["small"]}
    tasks = RemoteTasks(lambda method, arguments: pytest.fail("nothing is asked"), described)
    assert tasks.counts() is None
    assert tasks.groups == ("small",)


def test_no_session_is_left(pool: WorkerPool) -> None:
    until(lambda: not any(worker.sessions for worker in pool.workers))  # a worker says when it has closed one

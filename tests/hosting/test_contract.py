"""Remote environments in worker processes pass the whole contract of an environment."""

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
from agentgym_envs.hosting.remote_tasks import RemoteTaskSet
from agentgym_envs.task import TaskTable
from tests import contract
from tests.waiting import until

pytestmark = pytest.mark.slow  # too slow for the fast run


# tests/test_contract.py checks the others, in worker processes of a server.
IDS = [env_id for env_id in env_ids() if env_id not in contract.SLOW_ENVS | contract.NEEDS_SITES]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    pool.close()


def make_remote(pool: WorkerPool, env_id: str, **options: Any) -> RemoteEnv:
    remote = RemoteEnv(env_id, pool, options)
    remote.spec = gym.make(env_id).spec  # Gymnasium's checker makes more environments from it
    return remote


@pytest.mark.parametrize("env_id", [IDS[0], *(pytest.param(env_id, marks=pytest.mark.rotating) for env_id in IDS[1:])])
@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_remote_environments_keep_the_contract(
    check: Callable[[contract.Make], None], env_id: str, pool: WorkerPool
) -> None:
    check(partial(make_remote, pool, env_id))


@pytest.mark.parametrize("env_id", IDS)
def test_a_remote_environment_equals_a_local_one_byte_for_byte(env_id: str, pool: WorkerPool) -> None:
    make = partial(gym.make, env_id)
    contract.remote_agrees(make, partial(make_remote, pool, env_id), contract.transcript_hash(make))


def test_a_remote_task_table_can_be_counted_and_listed(pool: WorkerPool) -> None:
    here = text_env(gym.make("AgentGym/TextCraft-v0")).tasks
    assert isinstance(here, TaskTable)
    remote = make_remote(pool, "AgentGym/TextCraft-v0")
    assert isinstance(remote.tasks, RemoteTaskSet)
    assert len(remote.tasks) == len(here) == 544
    assert list(remote.tasks) == list(here)
    counts = remote.tasks.counts()
    assert counts is not None
    counts["depth-1"]["train"] = 0
    assert remote.tasks.counts() == here.counts()
    remote.close()


def test_an_endless_remote_task_set_cannot_be_counted_or_listed(pool: WorkerPool) -> None:
    remote = make_remote(pool, "AgentGym/TextCraft-v0", worlds="invented")
    assert isinstance(remote.tasks, RemoteTaskSet)
    assert remote.tasks and remote.tasks.counts() is None
    with pytest.raises(TypeError, match=r"number of tasks .* unknown"):
        len(remote.tasks)
    with pytest.raises(UsageError):
        list(remote.tasks)
    remote.close()


def test_a_description_without_counts_is_read_as_endless() -> None:
    described = {"name": "old", "version": 1, "digest": "0" * 64, "groups": ["small"]}
    tasks = RemoteTaskSet(lambda method, arguments: pytest.fail("nothing is asked"), described)
    assert tasks.counts() is None
    assert tasks.groups == ("small",)


def test_no_session_is_left(pool: WorkerPool) -> None:
    until(lambda: not any(worker.sessions for worker in pool.workers))  # a worker reports each closed session

"""`make_vec(provider=...)`: a place that several vector environments share, and that none of them closes."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from agentgym_envs import make_vec
from agentgym_envs.errors import UsageError
from agentgym_envs.hosting import WorkerPool
from tests.toy_envs import HERE

TRICKY = HERE + "Toy/Tricky-v0"


@pytest.mark.slow
def test_two_vector_environments_share_a_pool_and_leave_it_open() -> None:
    with closing(WorkerPool(1)) as pool:
        pids = set[str]()
        for _ in range(2):
            with closing(make_vec(TRICKY, 2, provider=pool)) as envs:
                envs.reset(seed=0)
                pids |= {seen.split()[0] for seen in envs.step(("who", "who"))[0]}
        assert pids == {str(worker.pid) for worker in pool.workers} and len(pids) == 1


@pytest.mark.parametrize("beside", [{"backend": "inline"}, {"num_workers": 1}, {"base_url": "http://127.0.0.1:1"}])
def test_nothing_else_says_where_they_run(beside: dict[str, Any]) -> None:
    with closing(WorkerPool(1)) as pool, pytest.raises(UsageError, match="no backend"):
        make_vec(TRICKY, 2, provider=pool, **beside)

"""`make_vec(provider=...)`: several vector environments share a provider, and none of them closes it."""

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
def test_two_vector_environments_share_a_pool_without_closing_it() -> None:
    with closing(WorkerPool(1)) as pool:
        pids = set[str]()
        for _ in range(2):
            with closing(make_vec(TRICKY, 2, provider=pool)) as envs:
                envs.reset(seed=0)
                pids |= {seen.split()[0] for seen in envs.step(("who", "who"))[0]}
        assert pids == {str(worker.pid) for worker in pool.workers} and len(pids) == 1


@pytest.mark.parametrize("beside", [{"backend": "inline"}, {"num_workers": 1}, {"base_url": "http://127.0.0.1:1"}])
def test_a_provider_excludes_other_backend_arguments(beside: dict[str, Any]) -> None:
    with closing(WorkerPool(1)) as pool, pytest.raises(UsageError, match="no backend"):
        make_vec(TRICKY, 2, provider=pool, **beside)

"""Run a coroutine on a virtual clock (`agentgym_envs.rollout.virtual_loop`)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from agentgym_envs.rollout.virtual_loop import VirtualLoop

_T = TypeVar("_T")


def run_virtual(coroutine: Coroutine[Any, Any, _T]) -> tuple[_T, float]:
    """Run a coroutine to its end; what it returns, and how many seconds it would have taken."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(coroutine)
        return result, runner.get_loop().time()

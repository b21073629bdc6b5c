"""Resets with a session that was prepared during the previous episode, and without one, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from agentgym_envs.webarena.base_env import WebEnv
from agentgym_envs.webarena.browser import loop

WAIT_SECONDS = 10.0
"""The longest time that an episode lasts here; agents take longer."""


def paired_resets(env: WebEnv, tasks: Sequence[str | None], repeats: int) -> dict[str, Any]:
    """Milliseconds of `env.reset` for the tasks in turn; None is the task of seed 0.

    The figures are those with a prepared session; "not prepared" has the others.
    """
    _reset(env, tasks[0])
    seconds: dict[str, list[float]] = {"prepared": [], "not prepared": []}
    for turn in range(repeats):
        order = ("prepared", "not prepared") if turn % 2 else ("not prepared", "prepared")
        for name in order:
            _play(env, prepare=name == "prepared")
            began = time.perf_counter()
            _reset(env, tasks[turn % len(tasks)])
            seconds[name].append(time.perf_counter() - began)
    return {**_figures(seconds["prepared"]), "not prepared": _figures(seconds["not prepared"])}


def _reset(env: WebEnv, task: str | None) -> None:
    env.reset(seed=0, options=None if task is None else {"task": task})


def _play(env: WebEnv, *, prepare: bool) -> None:
    """Wait as an agent does that thinks. Then remove the prepared session unless it is wanted."""
    spare, end = env.session._pool.spare, time.monotonic() + WAIT_SECONDS
    while spare.ready is None and time.monotonic() < end:
        time.sleep(0.02)
    if not prepare:
        loop.run(_drop(env))
        time.sleep(0.2)  # the session closes


async def _drop(env: WebEnv) -> None:
    env.session._pool.spare.drop()


def _figures(seconds: Sequence[float]) -> dict[str, Any]:
    samples = [round(1e3 * value, 1) for value in seconds]
    p90 = sorted(samples)[int(0.9 * (len(samples) - 1))]
    return {"median": statistics.median(samples), "min": min(samples), "p90": p90, "samples": samples}

"""Minimal episodes, for tests of metrics."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, Turn


def episode(
    task: str,
    success: float,
    *,
    group: str = "easy",
    env_id: str = "A-v0",
    seed: int = 0,
    turns: int = 2,
    invalid: int = 0,
    stop: str | None = None,
    tokens: int | None = None,
    **fields: Any,
) -> Trajectory:
    """An episode with score `success`, solved if that is 1; each turn has `tokens`."""
    counted = {} if tokens is None else {"tokens": tokens}
    infos: list[dict[str, Any]] = [
        {"invalid_action": "what?" if n < invalid else None, **counted} for n in range(turns)
    ]
    return Trajectory(
        env_id=env_id,
        task=Task(task, "test", group, "do it"),
        seed=seed,
        instructions="",
        turns=tuple(Turn("see", "act", 0.0, info) for info in infos),
        final_observation="end",
        score=float(success),
        success=success == 1,
        stop_reason=stop or ("success" if success == 1 else "turn_limit"),
        **fields,
    )


def several(task: str, *successes: float, **fields: Any) -> list[Trajectory]:
    """Episodes of one task, with seeds from 0."""
    return [episode(task, success, seed=seed, **fields) for seed, success in enumerate(successes)]


def without_times(lines: Iterable[str | bytes]) -> list[str]:
    """Records, given as lines, without their times, which differ in every run."""
    found = (Trajectory.from_json(line if isinstance(line, str) else line.decode()) for line in lines)
    return [replace(one, times=None).to_json() for one in found]

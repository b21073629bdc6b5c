"""One line for the episodes of a task that ended in `env_error` for good; the records are in the trajectory files."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agentgym_envs.rollout import TokenTrajectory

_LOGGER = logging.getLogger("agentgym_trl")
_TRLS = logging.getLogger("trl.trainer.grpo_trainer")
_MAX_REASON = 200


def report_failures(episodes: Sequence[TokenTrajectory]) -> None:
    """Warn of unusable episodes, with one line per task and reason."""
    failed = [episode.trajectory for episode in episodes if not episode.trajectory.usable]
    for (task, reason), count in Counter((each.task.id, _reason(each.error)) for each in failed).items():
        episodes_of = "an episode" if count == 1 else f"{count} episodes"
        _LOGGER.warning("task %s: %s failed for good, not trained on: %s", task, episodes_of, reason)


@contextmanager
def without_trls_dump() -> Iterator[None]:
    """Drop TRL's warning of rows without a reward, which prints all columns of a row."""
    _TRLS.addFilter(_is_no_dump)
    try:
        yield
    finally:
        _TRLS.removeFilter(_is_no_dump)


def _is_no_dump(record: logging.LogRecord) -> bool:
    return "All reward functions returned None" not in record.getMessage()


def _reason(error: str | None) -> str:
    """The first line of an error, shortened."""
    line = (error or "the episode has no turn").strip().split("\n")[0]
    return line if len(line) <= _MAX_REASON else f"{line[:_MAX_REASON]}..."

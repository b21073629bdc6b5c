"""The table of regret and mistakes, shared by all report formats."""

from __future__ import annotations

from typing import NamedTuple

from agentgym_envs.cli.reports.columns import NONE, share
from agentgym_envs.evaluate import Estimate, MistakeEvaluation, MistakeMetrics

TITLE = "Regret and mistakes"
HEADER = ("episodes", "regret  [95% CI]", "mistake", "first mistake", "recovered", "exact")
DEFINITIONS = [
    (
        "regret",
        "The mean over tasks of the turns that an episode lost: 1 + after − before, summed over its turns, for the "
        "turns to go before and after a turn. Episodes that put the goal out of reach are left out.",
    ),
    (
        "mistake, first mistake",
        "The fraction of episodes with a turn that has regret or puts the goal out of reach, and the number of the "
        "first such turn.",
    ),
    (
        "recovered",
        "The fraction of the episodes with a mistake that later come closer to the goal than they were before it.",
    ),
    (
        "exact",
        "The fraction of turns whose labels are proven. The others compare lengths of the oracle's plans, which need "
        "not be the shortest.",
    ),
]


class MistakeLine(NamedTuple):
    """A row: its name, its cells, and true for the total."""

    name: str
    cells: tuple[str, ...]
    total: bool


def mistake_lines(found: MistakeEvaluation) -> list[MistakeLine]:
    """The rows of the table: one per group, and the total."""
    several = len({row.env_id for row in found.groups}) > 1
    groups = [
        MistakeLine(f"{row.env_id} {row.group}" if several else str(row.group), _cells(row), False)
        for row in found.groups
    ]
    return [*groups, MistakeLine("all", _cells(found.overall), True)]


def mistake_notes(found: MistakeEvaluation) -> list[str]:
    """A note on usable episodes without labels, if there are any."""
    count = found.overall.unlabelled
    episodes = "1 usable episode has" if count == 1 else f"{count} usable episodes have"
    return [f"{episodes} no labels and count in no row of this table; see agentgym label."] if count else []


def _cells(row: MistakeMetrics) -> tuple[str, ...]:
    return (
        f"{row.episodes:,}",
        _count(row.regret, row.regret_estimate),
        share(None if row.mistake is None else row.mistake.mean),
        NONE if row.first_mistake is None else f"{row.first_mistake:.1f}",
        share(None if row.recovered is None else row.recovered.mean),
        share(row.exact),
    )


def _count(mean: float | None, estimate: Estimate | None) -> str:
    if mean is None:
        return NONE
    return f"{mean:.2f}" if estimate is None else f"{mean:.2f}  [{estimate.low:.2f}, {estimate.high:.2f}]"

"""The columns of the result tables, shared by all report formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentgym_envs.evaluate import Estimate, Evaluation, Metrics

NONE = "–"


class ReportColumn(NamedTuple):
    """A column: its `key` in code, its `title`, and the text of a cell."""

    key: str
    title: str
    text: Callable[[Metrics], str]


def columns(evaluation: Evaluation) -> list[ReportColumn]:
    """Choose the columns. The score is left out if it always equals success, tokens if they were not counted."""
    rows = (*evaluation.groups, evaluation.overall)
    k = evaluation.overall.common_k
    found = [
        ReportColumn("tasks", "tasks", lambda row: f"{row.tasks:,}"),
        ReportColumn("episodes", "episodes", lambda row: f"{row.episodes:,}"),
        ReportColumn("success", "success  [95% CI]", lambda row: percent(row.success)),
    ]
    if any(row.score != row.success for row in rows):
        found.append(ReportColumn("score", "score  [95% CI]", lambda row: number(row.score)))
    if k > 1:
        found += [
            ReportColumn("pass@k", f"pass@{k}", lambda row: bare_percent(row.pass_at_k.get(k))),
            ReportColumn("pass^k", f"pass^{k}", lambda row: bare_percent(row.pass_hat_k.get(k))),
        ]
    found.append(ReportColumn("turns", "turns", lambda row: NONE if row.turns is None else f"{row.turns:.1f}"))
    if any(row.tokens is not None for row in rows):
        found.append(ReportColumn("tokens", "tokens", lambda row: NONE if row.tokens is None else f"{row.tokens:,.0f}"))
    found.append(ReportColumn("invalid", "invalid", lambda row: share(row.invalid_actions)))
    return found


def row_name(row: Metrics, evaluation: Evaluation) -> str:
    """The name of a row: its group, its environment, or "all"."""
    if row.group is not None:
        return row.group
    return "all" if row is evaluation.overall or row.env_id is None else row.env_id


def blocks(evaluation: Evaluation) -> list[tuple[Metrics, Sequence[Metrics]]]:
    """The row of each environment, with the rows of its groups."""
    return [
        (environment, [row for row in evaluation.groups if row.env_id == environment.env_id])
        for environment in evaluation.environments
    ]


def ends(row: Metrics) -> str:
    """The stop reasons of the episodes with their counts."""
    return ", ".join(f"{reason} {count}" for reason, count in row.stop_reasons.items())


def percent(estimate: Estimate | None) -> str:
    """A rate with its interval, in percent."""
    if estimate is None:
        return NONE
    return f"{100 * estimate.mean:.1f}%  [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def bare_percent(estimate: Estimate | None) -> str:
    """A rate in percent, without its interval."""
    return share(None if estimate is None else estimate.mean)


def share(value: float | None) -> str:
    """A rate in percent."""
    return NONE if value is None else f"{100 * value:.1f}%"


def number(estimate: Estimate | None) -> str:
    """A mean in [0, 1] with its interval."""
    return NONE if estimate is None else f"{estimate.mean:.3f}  [{estimate.low:.3f}, {estimate.high:.3f}]"

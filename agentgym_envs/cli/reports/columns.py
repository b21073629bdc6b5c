"""The columns of the tables: what is shown of a row of metrics, in words that every form of report shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentgym_envs.evaluate import Estimate, Evaluation, Metrics

NONE = "–"


class Column(NamedTuple):
    """A column: `key` names it for code, `title` for people."""

    key: str
    title: str
    text: Callable[[Metrics], str]


def columns(evaluation: Evaluation) -> list[Column]:
    """The columns that say something here: no score that is always the success, no tokens that nobody counted."""
    rows = (*evaluation.groups, evaluation.overall)
    k = evaluation.overall.common_k
    found = [
        Column("tasks", "tasks", lambda row: f"{row.tasks:,}"),
        Column("episodes", "episodes", lambda row: f"{row.episodes:,}"),
        Column("success", "success  [95% CI]", lambda row: percent(row.success)),
    ]
    if any(row.score != row.success for row in rows):
        found.append(Column("score", "score  [95% CI]", lambda row: number(row.score)))
    if k > 1:
        found += [
            Column("pass@k", f"pass@{k}", lambda row: bare_percent(row.pass_at_k.get(k))),
            Column("pass^k", f"pass^{k}", lambda row: bare_percent(row.pass_hat_k.get(k))),
        ]
    found.append(Column("turns", "turns", lambda row: NONE if row.turns is None else f"{row.turns:.1f}"))
    if any(row.tokens is not None for row in rows):
        found.append(Column("tokens", "tokens", lambda row: NONE if row.tokens is None else f"{row.tokens:,.0f}"))
    found.append(Column("invalid", "invalid", lambda row: share(row.invalid_actions)))
    return found


def row_name(row: Metrics, evaluation: Evaluation) -> str:
    """What a row is called: its group, its environment, or "all"."""
    if row.group is not None:
        return row.group
    return "all" if row is evaluation.overall or row.env_id is None else row.env_id


def blocks(evaluation: Evaluation) -> list[tuple[Metrics, Sequence[Metrics]]]:
    """Each environment with its groups."""
    return [
        (environment, [row for row in evaluation.groups if row.env_id == environment.env_id])
        for environment in evaluation.environments
    ]


def ends(row: Metrics) -> str:
    """How the episodes ended, with counts."""
    return ", ".join(f"{reason} {count}" for reason, count in row.stop_reasons.items())


def percent(estimate: Estimate | None) -> str:
    """A share with its interval, in percent."""
    if estimate is None:
        return NONE
    return f"{100 * estimate.mean:.1f}%  [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def bare_percent(estimate: Estimate | None) -> str:
    """A share without its interval."""
    return share(None if estimate is None else estimate.mean)


def share(value: float | None) -> str:
    """A share in percent."""
    return NONE if value is None else f"{100 * value:.1f}%"


def number(estimate: Estimate | None) -> str:
    """A mean of 0 to 1 with its interval."""
    return NONE if estimate is None else f"{estimate.mean:.3f}  [{estimate.low:.3f}, {estimate.high:.3f}]"

"""Metrics as CSV with one row per value, which is easy to filter, pivot and join with another run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from agentgym_envs.cli.reports.contents import EvalReport
from agentgym_envs.evaluate import Estimate, Metrics, MistakeMetrics

HEADER = ("level", "env_id", "group", "metric", "value", "low", "high")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that a spreadsheet would evaluate as a formula."""
_Values = Iterator[tuple[str, object, object, object]]


def to_csv(report: EvalReport) -> str:
    """Format the metrics; `low` and `high` are the 95 % interval, empty if there is none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for name, values in _rows(report):
        writer.writerows((*map(_safe, name), *value) for value in values)
    return out.getvalue()


def _rows(report: EvalReport) -> Iterator[tuple[tuple[str, str, str], _Values]]:
    """The values of each level, environment and group, first of the episodes and then of their labels."""
    found, mistakes = report.evaluation, report.mistakes
    levels = {"overall": (found.overall,), "environment": found.environments, "group": found.groups}
    for level, rows in levels.items():
        for row in rows:
            yield (level, row.env_id or "", row.group or ""), _values(row)
    if mistakes is not None:
        yield ("overall", "", ""), _label_values(mistakes.overall)
        for labelled in mistakes.groups:
            yield ("group", labelled.env_id or "", labelled.group or ""), _label_values(labelled)


def _values(row: Metrics) -> _Values:
    for name in ("tasks", "episodes", "excluded"):
        yield name, getattr(row, name), "", ""
    yield from _estimate("success", row.success)
    yield from _estimate("score", row.score)
    yield from _estimate_or_value("turns", row.turns_estimate, row.turns)
    yield from _estimate_or_value("tokens", row.tokens_estimate, row.tokens)
    yield from _estimate_or_value("invalid_actions", row.invalid_actions_estimate, row.invalid_actions)
    for name, by_k in (("avg@", row.avg_at_k), ("pass@", row.pass_at_k), ("pass^", row.pass_hat_k)):
        for k, estimate in by_k.items():
            yield from _estimate(f"{name}{k}", estimate)
    for name, value in row.agentgym_rl.items():
        yield f"agentgym-rl:{name}", "" if value is None else value, "", ""
    for reason, count in row.stop_reasons.items():
        yield f"stop:{reason}", count, "", ""


def _label_values(row: MistakeMetrics) -> _Values:
    for name in ("episodes", "unlabelled", "exact"):
        yield f"labels:{name}", "" if (value := getattr(row, name)) is None else value, "", ""
    yield from _estimate_or_value("regret", row.regret_estimate, row.regret)
    yield from _estimate("mistake", row.mistake)
    yield from _estimate_or_value("first_mistake", row.first_mistake_estimate, row.first_mistake)
    yield from _estimate("recovered", row.recovered)


def _estimate(name: str, estimate: Estimate | None) -> _Values:
    if estimate is not None:
        yield name, estimate.mean, estimate.low, estimate.high


def _estimate_or_value(name: str, estimate: Estimate | None, value: float | None) -> _Values:
    if estimate is None and value is not None:
        yield name, value, "", ""
    yield from _estimate(name, estimate)


def _safe(text: str) -> str:
    """Quote a text that a spreadsheet would evaluate as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text

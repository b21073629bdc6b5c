"""Metrics as CSV with one row per value, which is easy to filter, pivot and join with another run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from agentgym_envs.cli.reports.contents import EvalReport
from agentgym_envs.evaluate import Estimate, Metrics

HEADER = ("level", "env_id", "group", "metric", "value", "low", "high")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that a spreadsheet would evaluate as a formula."""
_Values = Iterator[tuple[str, object, object, object]]


def to_csv(report: EvalReport) -> str:
    """Format the metrics; `low` and `high` are the 95 % interval, empty if there is none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    found = report.evaluation
    levels = {"overall": (found.overall,), "environment": found.environments, "group": found.groups}
    for level, rows in levels.items():
        for row in rows:
            name = (level, _safe(row.env_id or ""), _safe(row.group or ""))
            writer.writerows((*name, *values) for values in _values(row))
    return out.getvalue()


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

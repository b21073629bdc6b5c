"""The 27-task table as rows of text, shared by all report formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.cli.reports.columns import NONE, percent
from agentgym_envs.evaluate import REPORTED, AgentGymRLScenario, AgentGymRLTable, Estimate, Metrics, ReportedModel

HEADER = ("tasks", "success [95% CI]", "score")
MARK = "†"
"""Mark after the name of a row with stand-in tasks."""
ABOUT_REPORTED = (
    "Reported figures are those of the AgentGym-RL paper (arXiv 2509.08755), in percent, with ~ if read off a chart. "
    "They come from other episodes, prompts and limits, with one episode per task. Their standard errors, in points: "
)


class TableLine(NamedTuple):
    """A row: its name, its cells under `HEADER`, and the reported figures. `whole` marks a total."""

    name: str
    whole: bool
    cells: tuple[str, ...]
    reported: tuple[str, ...]


def table_lines(table: AgentGymRLTable, models: Sequence[ReportedModel] = REPORTED) -> list[TableLine]:
    """All rows in order: the tasks of each scenario, then the scenario; at the end the mean over scenarios."""
    lines = []
    for scenario in table.scenarios:
        for row in scenario.rows:
            reported = tuple(_figure(model.rows.get(row.name)) for model in models)
            name = _marked(row.name, row.stand_in)
            lines.append(TableLine(name, False, _cells(row.metrics), _only_webarena(scenario, reported)))
        stand_in = any(row.stand_in for row in scenario.rows)
        name = _marked(scenario.name, stand_in)
        lines.append(
            TableLine(name, True, _cells(scenario.metrics), tuple(_reported(model, scenario) for model in models))
        )
    total = (f"{table.played}/{len(table.scenarios)}", _percent(table.success), _score(table.score))
    return [*lines, TableLine("scenario mean", True, total, tuple("" for _ in models))]


def table_notes(table: AgentGymRLTable) -> list[str]:
    """Notes on the rows, and on episodes that belong to no row."""
    notes = []
    for scenario in table.scenarios:
        if scenario.note:
            mark = f"{MARK} " if any(row.stand_in for row in scenario.rows) else ""
            notes.append(f"{mark}{scenario.name}: {scenario.note}.")
    for env_id, count in table.outside.items():
        notes.append(f"{count} episodes of {env_id} belong to no row.")
    if table.left_out:
        notes.append(f"{table.left_out} episodes of stand-ins are left out: the run has episodes of the real tasks.")
    return [*notes, f"{ABOUT_REPORTED}{_standard_errors(REPORTED[0])}."]


def _standard_errors(model: ReportedModel) -> str:
    """The standard errors of the figures of a model; those of the other models are similar."""
    errors = ", ".join(f"{name} {model.standard_error(name):.1f}" for name in model.scenarios)
    return f"{errors} (of {model.model}; those of the others are similar)"


def _cells(row: Metrics | None) -> tuple[str, ...]:
    if row is None:
        return (NONE,) * len(HEADER)
    return f"{row.tasks:,}", _percent(row.success), _score(row.score)


def _percent(estimate: Estimate | None) -> str:
    return percent(estimate).replace("  ", " ")


def _score(score: Estimate | None) -> str:
    return NONE if score is None else f"{score.mean:.3f}"


def _marked(name: str, stand_in: bool) -> str:
    return f"{name}{MARK}" if stand_in else name


def _only_webarena(scenario: AgentGymRLScenario, figures: tuple[str, ...]) -> tuple[str, ...]:
    """Remove the figures of rows outside WebArena, as the paper reports single rows of WebArena only."""
    return figures if scenario.name == "WebArena" else tuple("" for _ in figures)


def _reported(model: ReportedModel, scenario: AgentGymRLScenario) -> str:
    return _figure(model.scenarios.get(scenario.name), "~" if scenario.name in model.read_off else "")


def _figure(value: float | None, before: str = "") -> str:
    return "" if value is None else f"{before}{value:.1f}"

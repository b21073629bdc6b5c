"""The 27-task table as rows of text, which every form of report lays out in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentgym_envs.cli.reports.columns import NONE, percent
from agentgym_envs.evaluate import REPORTED, Estimate, Metrics, Reported, SuiteScenario, SuiteTable

HEADER = ("tasks", "success [95% CI]", "score")
MARK = "†"
"""Follows the name of a row whose tasks stand in for others."""
ABOUT_REPORTED = (
    "Figures marked as reported are those of the AgentGym-RL paper (arXiv 2509.08755), in percent, ~ where read off a "
    "chart: other episodes, prompts and limits, and one sample a task, so that they have errors of their own, in "
    "points: "
)


class SuiteLine(NamedTuple):
    """A row: its name, whether it sums up others, its cells under `HEADER`, and the reported figures beside it."""

    name: str
    whole: bool
    cells: tuple[str, ...]
    reported: tuple[str, ...]


def suite_lines(table: SuiteTable, models: Sequence[Reported] = REPORTED) -> list[SuiteLine]:
    """All rows in order: each scenario's tasks and the scenario itself, and the mean over scenarios at the end."""
    lines = []
    for scenario in table.scenarios:
        for row in scenario.rows:
            beside = tuple(_figure(model.rows.get(row.name)) for model in models)
            lines.append(
                SuiteLine(_marked(row.name, row.stand_in), False, _cells(row.metrics), _of_web(scenario, beside))
            )
        stand_in = any(row.stand_in for row in scenario.rows)
        name = _marked(scenario.name, stand_in)
        lines.append(
            SuiteLine(name, True, _cells(scenario.metrics), tuple(_reported(model, scenario) for model in models))
        )
    total = (f"{table.played}/{len(table.scenarios)}", _percent(table.success), _score(table.score))
    return [*lines, SuiteLine("scenario mean", True, total, tuple("" for _ in models))]


def suite_notes(table: SuiteTable) -> list[str]:
    """What must be known of the rows, and of the episodes that are in none."""
    notes = []
    for scenario in table.scenarios:
        if scenario.note:
            mark = f"{MARK} " if any(row.stand_in for row in scenario.rows) else ""
            notes.append(f"{mark}{scenario.name}: {scenario.note}.")
    for env_id, count in table.outside.items():
        notes.append(f"{count} episodes of {env_id} belong to no row.")
    if table.left_out:
        notes.append(f"{table.left_out} episodes of stand-ins are left out, as there are some of the real tasks.")
    return [*notes, f"{ABOUT_REPORTED}{_noise(REPORTED[0])}."]


def _noise(model: Reported) -> str:
    """The standard errors of the figures of a model, which those of the others are close to."""
    errors = ", ".join(f"{name} {model.standard_error(name):.1f}" for name in model.scenarios)
    return f"{errors} (standard errors, of {model.model})"


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


def _of_web(scenario: SuiteScenario, figures: tuple[str, ...]) -> tuple[str, ...]:
    """Single tasks are reported of WebArena alone."""
    return figures if scenario.name == "WebArena" else tuple("" for _ in figures)


def _reported(model: Reported, scenario: SuiteScenario) -> str:
    return _figure(model.scenarios.get(scenario.name), "~" if scenario.name in model.read_off else "")


def _figure(value: float | None, before: str = "") -> str:
    return "" if value is None else f"{before}{value:.1f}"

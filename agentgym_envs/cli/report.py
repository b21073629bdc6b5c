"""Metrics as a table in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_envs.evaluate import Estimate, Evaluation, Metrics

if TYPE_CHECKING:
    from rich.console import Console

_NAME = 16
"""Columns for the name of a group."""


def print_evaluation(console: Console, evaluation: Evaluation) -> None:
    """A row a group, a row for everything, and how the episodes ended."""
    from rich import box
    from rich.table import Table

    shows_score = any(row.score != row.success for row in (*evaluation.groups, evaluation.overall))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    longest = max((len(row.group or "") for row in evaluation.groups), default=0)
    # A long name is broken, so that the numbers keep their room in a terminal of 80 columns.
    table.add_column("", no_wrap=longest <= _NAME, overflow="fold", min_width=min(longest, _NAME))
    for name in _columns(shows_score):
        table.add_column(name, justify="right", no_wrap=True)
    several = len(evaluation.environments) > 1
    for environment in evaluation.environments:
        groups = [row for row in evaluation.groups if row.env_id == environment.env_id]
        for row in groups:
            table.add_row(row.group, *_cells(row, shows_score))
        if several:
            table.add_row(environment.env_id, *_cells(environment, shows_score), style="bold", end_section=True)
        else:
            table.add_section()
    table.add_row("all", *_cells(evaluation.overall, shows_score), style="bold")
    console.print(table)
    _print_ends(console, evaluation.overall)


def percent(estimate: Estimate | None) -> str:
    """A share with its interval, in percent."""
    if estimate is None:
        return "–"
    return f"{100 * estimate.mean:.1f}%  [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _columns(shows_score: bool) -> list[str]:
    score = ["score"] if shows_score else []
    return ["tasks", "episodes", "success  [95% CI]", *score, "turns", "invalid"]


def _cells(row: Metrics, shows_score: bool) -> list[str]:
    score = ["–" if row.score is None else f"{row.score.mean:.3f}"] if shows_score else []
    turns = "–" if row.turns is None else f"{row.turns:.1f}"
    invalid = "–" if row.invalid_actions is None else f"{100 * row.invalid_actions:.1f}%"
    return [f"{row.tasks:,}", f"{row.episodes:,}", percent(row.success), *score, turns, invalid]


def _print_ends(console: Console, overall: Metrics) -> None:
    ends = ", ".join(f"{reason} {count}" for reason, count in overall.stop_reasons.items())
    console.print(f"[dim]ended by: {ends}[/]")
    if overall.excluded:
        console.print(
            f"[yellow]{overall.excluded} episodes say nothing of the policy (the environment failed, or no turn was "
            "taken) and are left out of every rate; --resume plays them again.[/]"
        )

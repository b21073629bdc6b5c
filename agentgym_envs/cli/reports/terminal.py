"""A report as a table in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentgym_envs.cli.reports.columns import NONE, Column, blocks, columns, ends, row_name
from agentgym_envs.cli.reports.contents import Report
from agentgym_envs.cli.reports.suite_rows import HEADER, suite_lines, suite_notes
from agentgym_envs.evaluate import REPORTED, Evaluation, Metrics, SuiteTable

if TYPE_CHECKING:
    from rich.console import Console

_NAME, _WHOLE = 16, 24
"""Columns for the name of a group: for a part of it, and for all of most."""
_GAP = 2
"""Between two columns, and at both edges together."""
_BESIDE = {
    "ScalingInter-7B": "Scaling-\nInter-7B",
    "Qwen2.5-7B": "Qwen2.5\n-7B",
    "GPT-4o": "GPT\n-4o",
}
"""The models whose reported figures have room in a terminal, and the heads of their columns."""
_ABOVE = "reported by the paper"
"""Stands over those columns, and is not as wide."""


def print_report(console: Console, report: Report) -> None:
    """A row a group, a row for everything, how the episodes ended, and what else must be known."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    evaluation = report.evaluation
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    several = len(evaluation.environments) > 1
    short = _short_names(evaluation)
    names = [*(row_name(row, evaluation) for row in evaluation.groups), *(short.values() if several else ())]
    longest = max(map(len, names), default=0)
    shown = _fitting(evaluation, console.width - _GAP, longest)
    # A long name is broken, so that the numbers keep their room in a terminal of 80 columns.
    room = max(console.width - _GAP - _width(shown, _rows(evaluation)), _NAME)
    table.add_column("", no_wrap=longest <= room, overflow="fold", min_width=min(longest, room))
    for column in shown:
        table.add_column(column.title, justify="right", no_wrap=True)
    for environment, groups in blocks(evaluation):
        for row in groups:
            table.add_row(escape(row.group or ""), *(column.text(row) for column in shown))
        if several:
            cells = [escape(short[str(environment.env_id)]), *(column.text(environment) for column in shown)]
            table.add_row(*cells, style="bold", end_section=True)
        else:
            table.add_section()
    table.add_row("all", *(column.text(evaluation.overall) for column in shown), style="bold")
    console.print(table)
    _print_remarks(console, report)


def print_suite(console: Console, table: SuiteTable) -> None:
    """The 27-task table, beside some of the figures that the paper reports."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    models = [model for model in REPORTED if model.model in _BESIDE]
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    shown.add_column("", overflow="fold")
    for name in HEADER:
        shown.add_column(name, justify="right", no_wrap=True)
    for model in models:
        shown.add_column(_BESIDE[model.model], justify="right", style="dim", header_style="dim", no_wrap=True)
    for line in suite_lines(table, models):
        style = "bold" if line.whole else None
        shown.add_row(line.name, *line.cells, *line.reported, style=style, end_section=line.whole)
    wide = console.measure(shown).maximum
    console.print(f"\n[dim]{_ABOVE:>{wide - 1}}[/]")
    console.print(shown)
    console.print()
    for note in suite_notes(table):
        console.print(f"[dim]{escape(note)}[/]")


def _print_remarks(console: Console, report: Report) -> None:
    from rich.markup import escape

    console.print(f"[dim]ended by: {ends(report.evaluation.overall)}[/]")
    for note in report.notes():
        console.print(f"[yellow]{escape(note)}[/]")
    if failures := report.failures:
        console.print("[yellow]one failure:[/]", escape(str(failures[0].error)), soft_wrap=True)


def _fitting(evaluation: Evaluation, room: int, longest: int) -> list[Column]:
    """All columns if there is room for them, else those that matter most."""
    choices = list(_choices(columns(evaluation), evaluation))
    wide = [(chosen, _width(chosen, _rows(evaluation))) for chosen in choices]
    whole = _NAME if evaluation.overall.samples > 1 else _WHOLE
    names = (min(longest, whole), min(longest, _NAME))  # a column goes before a name is broken, if not a very long one
    return next((chosen for name in names for chosen, width in wide if width + name <= room), choices[-1])


def _choices(found: list[Column], evaluation: Evaluation) -> Iterator[list[Column]]:
    """From all columns to fewer: without the score's interval, then without counts that say the least."""
    yield found
    found = [_without_interval(column) if column.key == "score" else column for column in found]
    yield found
    if all(row.tasks == row.episodes for row in _rows(evaluation)):
        found = [column for column in found if column.key != "episodes"]
        yield found
        yield [column for column in found if column.key != "invalid"]
    elif evaluation.overall.samples > 1:
        yield [column for column in found if column.key != "episodes"]
        yield [column for column in found if column.key not in ("episodes", "tokens", "tasks")]


def _short_names(evaluation: Evaluation) -> dict[str, str]:
    """The names of the environments without namespace and version; the ids where two would share one."""
    ids = [str(row.env_id) for row in evaluation.environments]
    short = [env_id.rpartition("/")[2].rpartition("-v")[0] or env_id for env_id in ids]
    return dict(zip(ids, short if len(set(short)) == len(ids) else ids, strict=True))


def _without_interval(column: Column) -> Column:
    return Column("score", "score", lambda row: NONE if row.score is None else f"{row.score.mean:.3f}")


def _rows(evaluation: Evaluation) -> list[Metrics]:
    return [*evaluation.groups, *evaluation.environments, evaluation.overall]


def _width(chosen: Sequence[Column], rows: Sequence[Metrics]) -> int:
    return sum(_GAP + max(len(column.title), *(len(column.text(row)) for row in rows)) for column in chosen)

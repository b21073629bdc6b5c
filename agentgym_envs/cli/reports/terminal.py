"""A report as a table on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentgym_envs.cli.reports.agentgym_rl_rows import HEADER, table_lines, table_notes
from agentgym_envs.cli.reports.columns import NONE, ReportColumn, blocks, columns, ends, row_name
from agentgym_envs.cli.reports.contents import EvalReport
from agentgym_envs.cli.reports.mistakes import HEADER as HEADINGS
from agentgym_envs.cli.reports.mistakes import mistake_lines, mistake_notes
from agentgym_envs.evaluate import REPORTED, AgentGymRLTable, Evaluation, Metrics, MistakeEvaluation

if TYPE_CHECKING:
    from rich.console import Console

_NAME, _WHOLE = 16, 24
"""Width of the names of groups, in characters: the minimum, and enough for most names."""
_GAP = 2
"""Spaces between two columns, and at both edges together."""
_REPORTED_HEADS = {
    "ScalingInter-7B": "Scaling-\nInter-7B",
    "Qwen2.5-7B": "Qwen2.5\n-7B",
    "GPT-4o": "GPT\n-4o",
}
"""The models whose reported figures fit on the terminal, and the heads of their columns."""
_REPORTED_TITLE = "reported by the paper"
"""The title above these columns; it is narrower than they are."""


def print_title(console: Console, report: EvalReport) -> None:
    """Print the policies and the environments."""
    console.print(report.title, style="bold", markup=False, soft_wrap=True)


def print_report(console: Console, report: EvalReport) -> None:
    """Print a row per group, the total, the stop reasons and the notes."""
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
    # Long names are wrapped, so that the numbers fit on a terminal with 80 columns.
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
    if report.mistakes is not None:
        _print_mistakes(console, report.mistakes)
    _print_notes(console, report)


def print_agentgym_rl_table(console: Console, table: AgentGymRLTable) -> None:
    """Print the 27-task table, next to some of the figures that the paper reports."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    models = [model for model in REPORTED if model.model in _REPORTED_HEADS]
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    shown.add_column("", overflow="fold")
    for name in HEADER:
        shown.add_column(name, justify="right", no_wrap=True)
    for model in models:
        shown.add_column(_REPORTED_HEADS[model.model], justify="right", style="dim", header_style="dim", no_wrap=True)
    for line in table_lines(table, models):
        style = "bold" if line.whole else None
        shown.add_row(line.name, *line.cells, *line.reported, style=style, end_section=line.whole)
    wide = console.measure(shown).maximum
    console.print(f"\n[dim]{_REPORTED_TITLE:>{wide - 1}}[/]")
    console.print(shown)
    console.print()
    for note in table_notes(table):
        console.print(f"[dim]{escape(note)}[/]")


def _print_mistakes(console: Console, mistakes: MistakeEvaluation) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("", overflow="fold")
    for title in HEADINGS:
        table.add_column(title.replace("  ", " ").replace(" ", "\n", 1), justify="right", no_wrap=True)
    for line in mistake_lines(mistakes):
        table.add_row(escape(line.name), *line.cells, style="bold" if line.total else None)
    console.print(table)
    console.print()
    for note in mistake_notes(mistakes):
        console.print(f"[dim]{escape(note)}[/]", soft_wrap=True)


def _print_notes(console: Console, report: EvalReport) -> None:
    from rich.markup import escape

    console.print(f"[dim]ended by: {ends(report.evaluation.overall)}[/]")
    for note in report.notes():
        console.print(f"[yellow]{escape(note)}[/]")
    if failures := report.failures:
        console.print("[yellow]first failure:[/]", escape(str(failures[0].error)), soft_wrap=True)


def _fitting(evaluation: Evaluation, room: int, longest: int) -> list[ReportColumn]:
    """All columns if they fit, else the most important ones."""
    choices = list(_choices(columns(evaluation), evaluation))
    wide = [(chosen, _width(chosen, _rows(evaluation))) for chosen in choices]
    whole = _NAME if evaluation.overall.max_k > 1 else _WHOLE
    names = (min(longest, whole), min(longest, _NAME))  # columns are dropped before names are wrapped
    return next((chosen for name in names for chosen, width in wide if width + name <= room), choices[-1])


def _choices(found: list[ReportColumn], evaluation: Evaluation) -> Iterator[list[ReportColumn]]:
    """Yield all columns, then fewer: without the interval of the score, then without the least important counts."""
    yield found
    found = [_without_interval(column) if column.key == "score" else column for column in found]
    yield found
    if all(row.tasks == row.episodes for row in _rows(evaluation)):
        found = [column for column in found if column.key != "episodes"]
        yield found
        yield [column for column in found if column.key != "invalid"]
    elif evaluation.overall.max_k > 1:
        yield [column for column in found if column.key != "episodes"]
        yield [column for column in found if column.key not in ("episodes", "tokens", "tasks")]


def _short_names(evaluation: Evaluation) -> dict[str, str]:
    """Names of the environments without namespace and version; full ids if two names would be the same."""
    ids = [str(row.env_id) for row in evaluation.environments]
    short = [env_id.rpartition("/")[2].rpartition("-v")[0] or env_id for env_id in ids]
    return dict(zip(ids, short if len(set(short)) == len(ids) else ids, strict=True))


def _without_interval(column: ReportColumn) -> ReportColumn:
    return ReportColumn("score", "score", lambda row: NONE if row.score is None else f"{row.score.mean:.3f}")


def _rows(evaluation: Evaluation) -> list[Metrics]:
    return [*evaluation.groups, *evaluation.environments, evaluation.overall]


def _width(chosen: Sequence[ReportColumn], rows: Sequence[Metrics]) -> int:
    return sum(_GAP + max(len(column.title), *(len(column.text(row)) for row in rows)) for column in chosen)

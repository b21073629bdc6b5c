"""A report as Markdown, for a README, an issue or a log."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from agentgym_envs.cli.reports.agentgym_rl_rows import HEADER, table_lines, table_notes
from agentgym_envs.cli.reports.columns import blocks, columns, ends, percent
from agentgym_envs.cli.reports.contents import EvalReport
from agentgym_envs.cli.reports.definitions import definitions
from agentgym_envs.cli.reports.markup import visible
from agentgym_envs.cli.reports.mistakes import HEADER as HEADINGS
from agentgym_envs.cli.reports.mistakes import TITLE as MISTAKES
from agentgym_envs.cli.reports.mistakes import mistake_lines, mistake_notes
from agentgym_envs.evaluate import REPORTED, Metrics

_SPECIAL = re.compile(r"([\\`*_\[\]#|~])")


def to_markdown(report: EvalReport) -> str:
    """Render the report."""
    overall = report.evaluation.overall
    lead = f"**{percent(overall.success)}** success on {overall.tasks:,} tasks, {overall.episodes:,} episodes."
    parts = [
        f"# {escape(report.title)}",
        lead,
        _results(report),
        _mistakes(report),
        _agentgym_rl_table(report),
        f"Ended by: {escape(ends(overall))}.",
        *(escape(note) for note in report.notes()),
        _settings(report),
        "## What the numbers mean",
        "\n".join(f"- **{escape(name)}**: {escape(text)}" for name, text in definitions(report)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table with a text column and columns of numbers. The cells are already Markdown."""
    lines = [header, [":--", *("--:" for _ in header[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape(text: str) -> str:
    """Escape Markdown and HTML and join the lines."""
    plain = html.escape(visible(" ".join(text.split())), quote=False)
    return _SPECIAL.sub(r"\\\1", plain)


def _results(report: EvalReport) -> str:
    evaluation = report.evaluation
    shown = columns(evaluation)

    def row(name: str, metrics: Metrics, strong: bool) -> list[str]:
        cells = [escape(name), *(escape(column.text(metrics)) for column in shown)]
        return [f"**{cell}**" for cell in cells] if strong else cells

    rows = []
    for environment, groups in blocks(evaluation):
        rows += [row(metrics.group or "", metrics, False) for metrics in groups]
        if len(evaluation.environments) > 1:
            rows.append(row(str(environment.env_id), environment, True))
    rows.append(row("all", evaluation.overall, True))
    return table(["group", *(escape(column.title) for column in shown)], rows)


def _mistakes(report: EvalReport) -> str:
    if report.mistakes is None:
        return ""
    rows = []
    for line in mistake_lines(report.mistakes):
        cells = [escape(cell) for cell in (line.name, *line.cells)]
        rows.append([f"**{cell}**" for cell in cells] if line.total else cells)
    notes = [escape(note) for note in mistake_notes(report.mistakes)]
    return "\n\n".join([f"## {MISTAKES}", table(["group", *map(escape, HEADINGS)], rows), *notes])


def _agentgym_rl_table(report: EvalReport) -> str:
    if report.agentgym_rl_table is None:
        return ""
    header = ["task", *map(escape, HEADER), *(f"*reported: {escape(model.model)}*" for model in REPORTED)]
    rows = []
    for line in table_lines(report.agentgym_rl_table):
        cells = [escape(cell) for cell in (line.name, *line.cells)]
        reported = [f"*{escape(figure)}*" if figure else "" for figure in line.reported]
        rows.append([*(f"**{cell}**" if line.whole else cell for cell in cells), *reported])
    notes = "\n".join(f"- {escape(note)}" for note in table_notes(report.agentgym_rl_table))
    return f"## The 27 tasks\n\n{table(header, rows)}\n\n{notes}"


def _settings(report: EvalReport) -> str:
    rows = [[escape(name), escape(value)] for name, value in report.setting_rows()]
    return "## Settings\n\n" + table(["setting", "value"], rows) if rows else ""

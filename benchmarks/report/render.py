"""Render the report page from the JSON files.

`docs/benchmarks.md` is written by hand except for its blocks between `<!-- report:NAME -->` and `<!-- /report -->`.
A block is a section, by name, or one of `TABLES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import text
from benchmarks.report.figures import Figure, figures
from benchmarks.report.freshness import stale
from benchmarks.report.plots import PLOTS
from benchmarks.report.runner import records
from benchmarks.report.sections import SECTIONS, Section
from benchmarks.report.tables import (
    cores_table,
    extras_table,
    growth_table,
    lockstep_table,
    overhead_table,
    scale_table,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"
PLOT_FOLDER = "benchmarks"
RESULTS = ROOT / "benchmarks" / "results"
"""The folder of the published figures."""
LOADED = "loaded"
"""Its folder of figures that were measured while other processes kept the machine busy."""
_BLOCK = re.compile(r"(<!-- report:([a-z-]+) -->\n).*?(<!-- /report -->)", re.DOTALL)


class Report:
    """The figures in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.records = folder, records(folder)
        self.results = {name: self._read(section) for name, section in SECTIONS.items()}

    def figures(self, name: str) -> list[Figure]:
        """The figures of a section that have values."""
        return [] if self.results[name] is None else figures(self.results[name], SECTIONS[name].rows)

    def stale(self, name: str) -> bool:
        """True if a section has figures of other code than today's."""
        return self.results[name] is not None and stale(name, self.records.get(name, {}))

    def _read(self, section: Section) -> Any:
        path = self.folder / section.file
        return section.read(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def render(page: str, report: Report) -> str:
    """Return the page with its blocks regenerated. Raises KeyError for an unknown block."""
    return _BLOCK.sub(lambda match: f"{match[1]}{block(match[2], report)}\n{match[3]}", page)


def block(name: str, report: Report) -> str:
    """The contents of a block."""
    return TABLES[name](report) if name in TABLES else section_block(SECTIONS[name], report)


def section_block(section: Section, report: Report) -> str:
    """A section: question, table, image, and how it was measured."""
    result, found = report.results[section.name], report.figures(section.name)
    parts = [f"**{section.question}**"]
    if report.stale(section.name):
        parts.append(text.STALE)
    parts.append(text.section_table(found) if found else text.NOT_RUN)
    if section.name in PLOTS and result is not None:
        parts.append(f"![{PLOTS[section.name].title}]({PLOT_FOLDER}/{section.name}.png)")
    parts.append(text.how(section, result, report.records.get(section.name, {})))
    return "\n\n".join(parts)


def headline(report: Report) -> str:
    """The headline figures of all sections."""
    lines = []
    for name, section in SECTIONS.items():
        by_row = {figure.row: figure for figure in report.figures(name)}
        rows = (section.rows[index] for index in section.headline)
        for figure in (by_row[row] for row in rows if row in by_row):
            what, ours, _, theirs, whose, speedup, target, met = text.cells(figure)
            lines.append((_link(section), what, ours, theirs, whose, speedup, target, met))
    return text.table(("section", "figure", "ours", "baseline value", "baseline", "speedup", "target", "met"), lines)


def loaded(report: Report) -> str:
    """The speedups of the overview that were also measured on a busy machine."""
    busy, lines = Report(report.folder / LOADED), []
    for name, section in SECTIONS.items():
        quiet, rows = (
            {figure.row: figure for figure in report.figures(name)},
            [section.rows[i] for i in section.headline],
        )
        load = busy.records.get(name, {}).get("machine", {}).get("load", "")
        for figure in busy.figures(name):
            if figure.speedup is not None and figure.row in rows and figure.row in quiet:
                both = text.speedup(quiet[figure.row]), text.speedup(figure)
                lines.append((_link(section), figure.row.name, figure.row.by, *both, str(load)))
    heads = ("section", "figure", "baseline", "speedup", "on a busy machine", "its load")
    return text.table(heads, lines) if lines else text.NOT_RUN


def _link(section: Section) -> str:
    return f"[{section.title}](#{anchor(section.title)})"


def readme(report: Report) -> str:
    """A short table for the README: figures with a baseline."""
    lines = []
    for name, section in SECTIONS.items():
        rows = [section.rows[index] for index in section.readme]
        for figure in (figure for figure in report.figures(name) if figure.row in rows):
            what, ours, _, theirs, whose, speedup, *_ = text.cells(figure)
            link = f"[{section.title}](docs/{PAGE.name}#{anchor(section.title)})" + " †" * report.stale(name)
            lines.append((f"{link}: {what}", ours, theirs, whose, speedup))
    shown = text.table(("", "ours", "baseline value", "baseline", "speedup"), lines)
    return f"{shown}\n\n{text.DAGGER}" if " †" in shown else shown


def anchor(title: str) -> str:
    """The anchor of a heading, as Markdown renderers make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def missed(report: Report) -> str:
    """The targets that were missed."""
    pairs = [(SECTIONS[name], figure) for name in SECTIONS for figure in report.figures(name)]
    aims = [pair for pair in pairs if pair[1].met is not None]
    lines = [_miss(section, figure) for section, figure in aims if figure.met is False]
    count = f"{len(aims) - len(lines)} of {len(aims)} targets are met."
    return "\n".join([count, "", *lines]) if lines else count


def _miss(section: Section, figure: Figure) -> str:
    aim = figure.speedup if figure.row.of_ratio else figure.ours
    shown = text.number(aim or 0.0) + " times" if figure.row.of_ratio else text.with_unit(aim or 0.0, figure.row.unit)
    return f"- {section.title}, {figure.row.name}: {shown}, target {text.target(figure)}"


def contents(report: Report) -> str:
    """Every section with its command and running time."""
    heads = ("section", "question", "command", "minutes")
    lines = [_line(section) for section in SECTIONS.values()]
    return text.table(heads, lines)


def _line(section: Section) -> tuple[str, ...]:
    command = f"`python -m benchmarks.report --only {section.name}`"
    return _link(section), section.question, command, f"{section.minutes:g}"


def with_result(name: str, make: Callable[[Any], str]) -> Callable[[Report], str]:
    """A table made from the figures of one section."""
    return lambda report: text.NOT_RUN if report.results[name] is None else make(report.results[name])


TABLES: Mapping[str, Callable[[Report], str]] = {
    "headline": headline,
    "loaded": loaded,
    "readme": readme,
    "missed": missed,
    "contents": contents,
    "scale-table": with_result("scale", scale_table),
    "cores-table": with_result("cores", cores_table),
    "growth-table": with_result("cores", growth_table),
    "extras-table": with_result("footprint", extras_table),
    "lockstep-table": with_result("lockstep", lockstep_table),
    "overhead-table": with_result("overhead", overhead_table),
}


def write(folder: Path, plots: bool = True) -> Path:
    """Write the page and its plots from a folder of figures, and return the path of the page.

    The published figures, and those of a busy machine, make docs/benchmarks.md and the README's table; those of any
    other folder, a page there.
    """
    published = folder.resolve() in (RESULTS, RESULTS / LOADED)
    folder = RESULTS if published else folder
    report, page = Report(folder), PAGE if published else folder / PAGE.name
    source = page if page.exists() else PAGE
    page.write_text(render(source.read_text(encoding="utf-8"), report), encoding="utf-8")
    if published:
        README.write_text(render(README.read_text(encoding="utf-8"), report), encoding="utf-8")
    if plots:
        (page.parent / PLOT_FOLDER).mkdir(exist_ok=True)
        for name, plot in PLOTS.items():
            if name == "headline" or report.results[name] is not None:
                plot.draw(page.parent / PLOT_FOLDER / f"{name}.png", report)
    return page

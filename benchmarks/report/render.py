"""The page of the book, made from the JSON files only.

`docs/benchmarks.md` is written by hand but for its blocks, which stand between `<!-- book:NAME -->` and
`<!-- /book -->`. A block is a chapter, by its name, or one of `TABLES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import text
from benchmarks.report.figures import Figure, figures
from benchmarks.report.plots import PLOTS
from benchmarks.report.runner import records
from benchmarks.report.sections import CHAPTERS, Chapter
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
PICTURES = "benchmarks"
_BLOCK = re.compile(r"(<!-- book:([a-z-]+) -->\n).*?(<!-- /book -->)", re.DOTALL)


class Book:
    """The figures in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.records = folder, records(folder)
        self.results = {name: self._read(chapter) for name, chapter in CHAPTERS.items()}

    def figures(self, name: str) -> list[Figure]:
        """Those of a chapter that there are."""
        return [] if self.results[name] is None else figures(self.results[name], CHAPTERS[name].rows)

    def _read(self, chapter: Chapter) -> Any:
        path = self.folder / chapter.file
        return chapter.read(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def render(page: str, book: Book) -> str:
    """The page with its blocks written anew. Raises KeyError for a block that nobody knows."""
    return _BLOCK.sub(lambda found: f"{found[1]}{block(found[2], book)}\n{found[3]}", page)


def block(name: str, book: Book) -> str:
    """The inside of a block."""
    return TABLES[name](book) if name in TABLES else chapter_block(CHAPTERS[name], book)


def chapter_block(chapter: Chapter, book: Book) -> str:
    """Question, table, picture, and how it was measured."""
    result, told = book.results[chapter.name], book.figures(chapter.name)
    parts = [f"**{chapter.question}**"]
    parts.append(text.chapter_table(told) if told else text.NOT_RUN)
    if chapter.name in PLOTS and result is not None:
        parts.append(f"![{PLOTS[chapter.name].title}]({PICTURES}/{chapter.name}.png)")
    parts.append(text.how(chapter, result, book.records.get(chapter.name, {})))
    return "\n\n".join(parts)


def headline(book: Book) -> str:
    """The most telling figures of all chapters."""
    lines = []
    for name, chapter in CHAPTERS.items():
        by_row = {told.row: told for told in book.figures(name)}
        for told in (by_row[chapter.rows[place]] for place in chapter.headline if chapter.rows[place] in by_row):
            what, ours, _, theirs, whose, times, target, met = text.cells(told)
            lines.append(
                (f"[{chapter.title}](#{anchor(chapter.title)})", what, ours, theirs, whose, times, target, met)
            )
    return text.table(("chapter", "figure", "ours", "beside it", "whose", "times better", "target", "met"), lines)


def readme(book: Book) -> str:
    """Some figures that have something beside them, for those who only look."""
    lines = []
    for name, chapter in CHAPTERS.items():
        rows = [chapter.rows[place] for place in chapter.readme]
        for told in (told for told in book.figures(name) if told.row in rows):
            what, ours, _, theirs, whose, times, *_ = text.cells(told)
            link = f"[{chapter.title}](docs/{PAGE.name}#{anchor(chapter.title)})"
            lines.append((f"{link}: {what}", ours, theirs, whose, times))
    return text.table(("", "ours", "beside it", "whose", "times better"), lines)


def anchor(title: str) -> str:
    """The address of a heading, as Markdown pages have it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def missed(book: Book) -> str:
    """Every target that was not reached."""
    told = [(CHAPTERS[name], figure) for name in CHAPTERS for figure in book.figures(name)]
    aims = [pair for pair in told if pair[1].met is not None]
    lines = [_miss(chapter, figure) for chapter, figure in aims if figure.met is False]
    count = f"{len(aims) - len(lines)} of {len(aims)} targets are met."
    return "\n".join([count, "", *lines]) if lines else count


def _miss(chapter: Chapter, figure: Figure) -> str:
    aim = figure.times if figure.row.of_ratio else figure.ours
    shown = text.number(aim or 0.0) + " times" if figure.row.of_ratio else text.with_unit(aim or 0.0, figure.row.unit)
    return f"- {chapter.title}, {figure.row.name}: {shown}, target {text.target(figure)}"


def contents(book: Book) -> str:
    """Every chapter, with what it takes to run it."""
    heads = ("chapter", "question", "command", "minutes")
    lines = [_line(chapter) for chapter in CHAPTERS.values()]
    return text.table(heads, lines)


def _line(chapter: Chapter) -> tuple[str, ...]:
    command = f"`python -m benchmarks.report --only {chapter.name}`"
    return f"[{chapter.title}](#{anchor(chapter.title)})", chapter.question, command, f"{chapter.minutes:g}"


def with_result(name: str, make: Callable[[Any], str]) -> Callable[[Book], str]:
    """A table that needs the figures of a chapter."""
    return lambda book: text.NOT_RUN if book.results[name] is None else make(book.results[name])


TABLES: Mapping[str, Callable[[Book], str]] = {
    "headline": headline,
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


def write(folder: Path, pictures: bool = True) -> Path:
    """Write the page, and its pictures, into a folder of figures; where it lies. With docs/, the README's table too."""
    book, page = Book(folder), folder / PAGE.name
    source = page if page.exists() else PAGE
    page.write_text(render(source.read_text(encoding="utf-8"), book), encoding="utf-8")
    if folder.resolve() == PAGE.parent:
        README.write_text(render(README.read_text(encoding="utf-8"), book), encoding="utf-8")
    if pictures:
        (folder / PICTURES).mkdir(exist_ok=True)
        for name, plot in PLOTS.items():
            if name == "headline" or book.results[name] is not None:
                plot.draw(folder / PICTURES / f"{name}.png", book)
    return page

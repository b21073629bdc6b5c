"""Plots as SVG: intervals, histograms, counts and curves. Colours and fonts come from the CSS of the page.

All plots are 420 units wide, so that their text is readable side by side on a desktop and alone on a phone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from agentgym_envs.cli.reports.markup import Markup, el, join

WIDTH = 420.0
_LETTER, _ROW, _NAMES = 6.6, 22.0, 24
"""Width of a letter and height of a row, in units, and the maximum number of letters in a label."""
_BASE, _PLOT = 26.0, 150.0
"""Space below the axis for its labels, and height of a plot with a vertical axis, in units."""
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_BANDS = 2
"""The most curves with interval bands; the bands of more curves would hide each other."""
_Project = Callable[[float, float], tuple[float, float]]


class IntervalRow(NamedTuple):
    """A labelled fraction in [0, 1] with its interval; `whole` marks a total."""

    label: str
    mean: float
    low: float
    high: float
    whole: bool = False


class Bin(NamedTuple):
    """Counts of solved and other episodes in a bin, its label on the axis ("" for none), and its description."""

    label: str
    solved: int
    others: int
    text: str


class Point(NamedTuple):
    """A point of a curve: a whole number, and a fraction in [0, 1] with its interval."""

    x: int
    y: float
    low: float
    high: float


class Curve(NamedTuple):
    """A named curve."""

    name: str
    points: Sequence[Point]


def intervals(name: str, title: str, rows: Sequence[IntervalRow]) -> Markup:
    """Draw a dot and its interval per row, over an axis from 0 to 100 %."""
    left, right = _label_room([row.label for row in rows]), WIDTH - 62
    height = _ROW * len(rows) + _BASE
    ticks = join(*(_vertical_tick(left + share * (right - left), height - _BASE, share) for share in _QUARTERS))
    drawn = join(*(_interval(index, row, left, right) for index, row in enumerate(rows)))
    text = "; ".join(f"{row.label}: {_percent(row.mean)} ({_percent(row.low)} to {_percent(row.high)})" for row in rows)
    return _svg(name, title, text, height, ticks, drawn)


def histogram(name: str, title: str, x_label: str, bins: Sequence[Bin]) -> Markup:
    """Draw bars of counts, with solved episodes below the others."""
    top, left, right = _round_up(max((b.solved + b.others for b in bins), default=0)), 36.0, WIDTH - 6
    height, step = _PLOT + _BASE + 16, (right - left) / max(len(bins), 1)
    grid = join(*(_count_tick(_PLOT * (1 - share) + 6, left, right, round(top * share)) for share in (0, 0.5, 1)))
    bars = join(*(_bar(left + index * step, step, b, top) for index, b in enumerate(bins)))
    text = "; ".join(f"{b.text}: {b.solved} solved, {b.others} not" for b in bins if b.solved + b.others)
    return _svg(name, title, text, height, grid, bars, _caption(x_label, (left + right) / 2, height - 4))


def counts(name: str, title: str, rows: Sequence[tuple[str, int]]) -> Markup:
    """Draw a bar per count, with its percentage of the total."""
    left, right, total = _label_room([label for label, _ in rows]), WIDTH - 104, sum(count for _, count in rows) or 1
    maximum = max((count for _, count in rows), default=0) or 1
    parts = []
    for index, (label, count) in enumerate(rows):
        middle, long = _ROW * index + _ROW / 2, (right - left) * count / maximum
        text = f"{count:,} ({100 * count / total:.1f}%)"
        parts += [
            _label(label, left, middle),
            el("rect", x=left, y=middle - 6, width=max(long, 1.0), height=12, class_="bar"),
            el("text", text, x=left + long + 6, y=middle + 4, class_="num"),
        ]
    description = "; ".join(f"{label}: {count}" for label, count in rows)
    return _svg(name, title, description, _ROW * len(rows) + 4, *parts)


def curves(name: str, title: str, x_label: str, lines: Sequence[Curve], *, steps: bool) -> Markup:
    """Draw curves of fractions over whole numbers, with bands for the intervals of up to `MOST_BANDS` curves.

    Several curves get a legend below. With `steps`, a value holds until the next number.
    """
    xs = [point.x for line in lines for point in line.points]
    first, last, left, right = min(xs), max(xs), 36.0, WIDTH - 12
    height = _PLOT + _BASE + 16 + (18 * len(lines) if len(lines) > 1 else 0)

    def project(x: float, y: float) -> tuple[float, float]:
        return left + (right - left) * (x - first) / max(last - first, 1), 6 + _PLOT * (1 - y)

    grid = join(*(_share_tick(project(first, share)[1], left, right, share) for share in _QUARTERS))
    marks = join(*(_x_tick(project(x, 0)[0], x) for x in _whole_ticks(first, last)))
    drawn = join(*(_curve(n, line, project, steps, len(lines) <= MOST_BANDS) for n, line in enumerate(lines, 1)))
    legend = join(*(_legend(number, line, height) for number, line in enumerate(lines))) if len(lines) > 1 else None
    text = "; ".join(f"{line.name}: {_percent(line.points[-1].y)} at {line.points[-1].x}" for line in lines)
    caption = _caption(x_label, (left + right) / 2, _PLOT + _BASE + 12)
    return _svg(name, title, text, height, grid, marks, drawn, caption, legend)


def _svg(name: str, title: str, description: str, height: float, *children: Markup | None) -> Markup:
    texts = join(el("title", title, id=f"{name}-t"), el("desc", description, id=f"{name}-d"))
    return el(
        "svg",
        texts,
        *children,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
        xmlns="http://www.w3.org/2000/svg",
    )


def _interval(index: int, row: IntervalRow, left: float, right: float) -> Markup:
    middle, wide = _ROW * index + _ROW / 2, right - left
    low, mean, high = (left + wide * value for value in (row.low, row.mean, row.high))
    kind = "whole" if row.whole else "part"
    return el(
        "g",
        _label(row.label, left, middle),
        el("rect", x=low, y=middle - 4, width=max(high - low, 1.0), height=8, rx=4, class_="band"),
        el("circle", cx=mean, cy=middle, r=4.5, class_="dot"),
        el("text", _percent(row.mean), x=WIDTH - 2, y=middle + 4, class_="num end"),
        class_=kind,
    )


def _bar(x: float, step: float, b: Bin, top: int) -> Markup:
    wide = max(step - (2 if step > 6 else 0.5), 0.5)
    tall, above = _PLOT * b.solved / top, _PLOT * b.others / top
    base = _PLOT + 6
    return join(
        el("rect", x=x, y=base - tall, width=wide, height=tall, class_="solved") if b.solved else None,
        el("rect", x=x, y=base - tall - above, width=wide, height=above, class_="others") if b.others else None,
        el("text", b.label, x=x + wide / 2, y=base + 15, class_="tick mid") if b.label else None,
    )


def _curve(number: int, line: Curve, project: _Project, steps: bool, banded: bool) -> Markup:
    points = list(line.points)
    if steps:
        held = [before._replace(x=after.x) for before, after in pairwise(points)]
        points = [point for pair in zip(points, [*held, points[-1]], strict=True) for point in pair]
    band = [project(p.x, p.high) for p in points] + [project(p.x, p.low) for p in reversed(points)]
    return join(
        el("polygon", points=_pairs(band), class_=f"area c{number}") if banded else None,
        el("polyline", points=_pairs([project(p.x, p.y) for p in points]), class_=f"line c{number}"),
    )


def _pairs(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _legend(number: int, line: Curve, height: float) -> Markup:
    y = _PLOT + _BASE + 30 + 18 * number
    text = f"{line.name}: {_percent(line.points[-1].y)}"
    return join(
        el("line", x1=36, x2=60, y1=y - 4, y2=y - 4, class_=f"line c{number + 1}"),
        el("text", text, x=68, y=min(y, height - 2), class_="num"),
    )


def _label_room(labels: Sequence[str]) -> float:
    return 8 + _LETTER * min(max(map(len, labels), default=0), _NAMES)


def _label(text: str, left: float, middle: float) -> Markup:
    short = text if len(text) <= _NAMES else text[: _NAMES - 1] + "…"
    return el("text", short, x=left - 8, y=middle + 4, class_="label end")


def _vertical_tick(x: float, bottom: float, share: float) -> Markup:
    return join(
        el("line", x1=x, x2=x, y1=0, y2=bottom, class_="grid"),
        el("text", f"{100 * share:.0f}%", x=x, y=bottom + 16, class_="tick mid"),
    )


def _count_tick(y: float, left: float, right: float, count: int) -> Markup:
    return join(
        el("line", x1=left, x2=right, y1=y, y2=y, class_="grid"),
        el("text", f"{count:,}", x=left - 6, y=y + 4, class_="tick end"),
    )


def _share_tick(y: float, left: float, right: float, share: float) -> Markup:
    return join(
        el("line", x1=left, x2=right, y1=y, y2=y, class_="grid"),
        el("text", f"{100 * share:.0f}%", x=left - 6, y=y + 4, class_="tick end"),
    )


def _x_tick(x: float, number: int) -> Markup:
    return el("text", number, x=x, y=_PLOT + 21, class_="tick mid")


def _caption(text: str, x: float, y: float) -> Markup:
    return el("text", text, x=x, y=y, class_="tick mid")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _round_up(count: int) -> int:
    """The next 2, 4, 6 or 10 times a power of ten."""
    power = int(10 ** (len(str(count)) - 1))
    return next(lead * power for lead in (2, 4, 6, 10) if lead * power >= count)


def _whole_ticks(first: int, last: int) -> list[int]:
    """At most nine whole numbers in the range, with steps of 1, 2 or 5 times a power of ten."""
    span = max(last - first, 1)
    step = next(s * 10**power for power in range(9) for s in (1, 2, 5) if span / (s * 10**power) <= 8)
    return [x for x in range(first, last + 1) if x % step == 0]

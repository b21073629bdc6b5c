"""Draws the flow charts of the pages as SVG, so that the site needs no script from another host.

It reads the part of Mermaid's language that the pages use: `flowchart BT` (from the bottom to the top), boxes
(`name["text"]`), and arrows between two boxes (`a --> b["text"]`).
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

_BOX = r'(\w+)(?:\["([^"]+)"\])?'
_ARROW = re.compile(rf"^\s*{_BOX}\s*-->\s*{_BOX}\s*$")
_CHAR, _HEIGHT, _GAP, _ROW = 6.7, 30, 16, 62
"""The width of a letter, the height of a box, the space between boxes, and the height of a row, in pixels."""
_Boxes = dict[str, tuple[float, float, float]]
"""The centre, the upper edge and the width of each box."""


def draw(source: str, *_: Any, **__: Any) -> str:
    """Draw a chart. The arguments after the source are those of pymdownx.superfences, which have no use here.

    Raises ValueError for a line in another language.
    """
    texts, arrows = _read(source)
    rows = _rows(list(texts), arrows)
    boxes, width, height = _place(rows, texts)
    lines = "".join(_line(boxes[start], boxes[end]) for start, end in arrows)
    drawn = "".join(_box(boxes[name], text) for name, text in texts.items())
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
    head = f'<svg class="flowchart" xmlns="http://www.w3.org/2000/svg" {size}'
    return f'{head} role="img" aria-label="{escape(_spoken(texts, arrows))}"><path d="{lines}"/>{drawn}</svg>'


def _read(source: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The texts of the boxes, and the arrows."""
    texts, arrows = dict[str, str](), list[tuple[str, str]]()
    head, *lines = source.strip().splitlines()
    if head.strip() != "flowchart BT":
        raise ValueError(f"only `flowchart BT` is drawn, got {head!r}")
    for line in lines:
        found = _ARROW.match(line)
        if found is None:
            raise ValueError(f"a line of a flow chart is an arrow between two boxes, got {line!r}")
        for name, text in ((found[1], found[2]), (found[3], found[4])):
            texts[name] = text or texts.get(name, name)
        arrows.append((found[1], found[3]))
    return texts, arrows


def _rows(names: list[str], arrows: list[tuple[str, str]]) -> list[list[str]]:
    """The names by level from the bottom: each is above all that point to it."""
    level = dict.fromkeys(names, 0)
    for _ in names:
        for start, end in arrows:
            level[end] = max(level[end], level[start] + 1)
    return [[name for name in names if level[name] == number] for number in range(max(level.values()) + 1)]


def _place(rows: list[list[str]], texts: dict[str, str]) -> tuple[_Boxes, float, float]:
    """The boxes, and the width and the height of the whole."""
    sizes = {name: len(text) * _CHAR + 20 for name, text in texts.items()}
    widths = [sum(sizes[name] + _GAP for name in row) - _GAP for row in rows]
    whole, height = max(widths) + 4, len(rows) * _ROW - (_ROW - _HEIGHT) + 4
    boxes: _Boxes = {}
    for number, (row, width) in enumerate(zip(rows, widths, strict=True)):
        left = (whole - width) / 2
        for name in row:
            boxes[name] = (left + sizes[name] / 2, height - 2 - _HEIGHT - number * _ROW, sizes[name])
            left += sizes[name] + _GAP
    return boxes, whole, height


def _line(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    """A line from the upper edge of a box to the lower edge of another, with a head."""
    (x, y, _), (to_x, to_y, _) = start, end
    to_y += _HEIGHT
    return f"M{x:.0f} {y:.0f}L{to_x:.0f} {to_y:.0f}m-4 6l4-6 4 6"


def _box(box: tuple[float, float, float], text: str) -> str:
    x, y, width = box
    place = f'x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_HEIGHT}" rx="5"'
    written = f'<text x="{x:.0f}" y="{y + 19:.0f}" font-size="11" text-anchor="middle">{escape(text)}</text>'
    return f"<rect {place}/>{written}"


def _spoken(texts: dict[str, str], arrows: list[tuple[str, str]]) -> str:
    return "; ".join(f"{texts[start]} to {texts[end]}" for start, end in arrows)

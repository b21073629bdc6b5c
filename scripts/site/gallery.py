"""Draws an episode as an animated SVG: a picture a turn, text as text, and no script."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 480, 320
_SECONDS, _LAST_SECONDS = 2.4, 4.5
_FONT, _LINE = 12.5, 16.5
"""The size of a letter, and the height of a line."""
_LEFT, _TOP, _BOTTOM = 14, 56, HEIGHT - 12
_BESIDE = 246
"""The left edge of the text next to an image."""
_CHAR = 0.605 * _FONT
_PAPER, _BAR, _TEXT, _DIM, _ACTION, _GOAL = "#10191c", "#12323a", "#c3d0d0", "#8fa3a5", "#6fcfc6", "#ffb454"
_PROMPT = "› "


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture of a turn.

    Attributes:
        text: the conversation so far, in which actions are lines that begin with the prompt.
        image: an element of SVG on the left, or above the text; empty without one.
        score: the score so far.
        solved: the episode ended with success.
    """

    text: str
    score: float
    image: str = ""
    solved: bool = False


def animation(title: str, goal: str, pictures: Sequence[Picture], *, wide: bool = False) -> str:
    """The SVG of an episode. `wide` images take the width, so that only the last action is written below them."""
    total = _SECONDS * (len(pictures) - 1) + _LAST_SECONDS
    styles = "".join(_style(number, len(pictures), total) for number in range(len(pictures)))
    frames = "".join(_frame(number, len(pictures) - 1, picture, wide) for number, picture in enumerate(pictures))
    still = f"@media(prefers-reduced-motion:reduce){{.f{{animation:none!important}}.f{len(pictures) - 1}{{opacity:1}}}}"
    mono = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
    goal_line = textwrap.shorten(goal, 58, placeholder=" …")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(f"{title}: {goal}")}">\n'
        f"<style>text{{font:{_FONT}px {mono};fill:{_TEXT};white-space:pre}}.f{{opacity:0}}{styles}{still}</style>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="{_PAPER}"/>'
        f'<path d="M0 30V10A10 10 0 0 1 10 0H{WIDTH - 10}A10 10 0 0 1 {WIDTH} 10V30z" fill="{_BAR}"/>\n'
        f"{_written(_LEFT, 20, title, '#f6f1e4')}{_written(_LEFT, 50, goal_line, _GOAL)}\n{frames}</svg>\n"
    )


def transcript(observations: Sequence[str], actions: Sequence[str]) -> str:
    """The conversation up to an observation."""
    parts = []
    for number, observation in enumerate(observations):
        parts += [observation.strip("\n")]
        parts += [f"{_PROMPT}{' '.join(actions[number].split())}"] if number < len(actions) else []
    return "\n".join(parts)


def placed(svg: str, x: float, y: float, size: float) -> str:
    """A document of SVG as an element of another, in a square."""
    return re.sub(
        r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>",
        rf'<svg x="{x}" y="{y}" width="{size}" height="{size}" \1>',
        svg,
        count=1,
    )


def _style(number: int, count: int, total: float) -> str:
    """The rule of a frame: it is seen in its part of the time."""
    start, end = (100 * _SECONDS * one / total for one in (number, number + 1))
    hidden = f"{end:.2f}%{{opacity:0}}" if number < count - 1 else ""
    first = "" if number == 0 else "0%{opacity:0}"
    rule = f"@keyframes k{number}{{{first}{start:.2f}%{{opacity:1}}{hidden}}}"
    return f"{rule}.f{number}{{animation:k{number} {total:g}s step-end infinite}}"


def _frame(number: int, last: int, picture: Picture, wide: bool) -> str:
    beside = bool(picture.image) and not wide
    left = _BESIDE if beside else _LEFT
    lines = _wrapped(picture.text, int((WIDTH - left - _LEFT) / _CHAR))
    room = 1 if wide else int((_BOTTOM - _TOP) / _LINE)
    shown = lines[-room:]
    top = _BOTTOM + 4 if wide else _TOP + _LINE
    written = "".join(_written(left, top + _LINE * row, text, color) for row, (text, color) in enumerate(shown))
    end = "solved, score " if picture.solved else "score "
    count = f"turn {number}/{last} · {end}{picture.score:.2f}"
    counter = f'<text x="{WIDTH - _LEFT}" y="20" text-anchor="end" style="fill:{_DIM}">{count}</text>'
    return f'<g class="f f{number}">{counter}{picture.image}{written}</g>\n'


def _wrapped(text: str, columns: int) -> list[tuple[str, str]]:
    """The lines with their colours; long ones are wrapped."""
    found = []
    for line in text.expandtabs(4).splitlines():
        color = _ACTION if line.startswith(_PROMPT) else _TEXT
        parts = textwrap.wrap(line, columns, subsequent_indent="  ", drop_whitespace=True) or [""]
        found += [(part, color) for part in parts]
    return found


def _written(x: float, y: float, text: str, color: str) -> str:
    return f'<text x="{x}" y="{y:g}" style="fill:{color}">{escape(text, quote=False)}</text>' if text else ""

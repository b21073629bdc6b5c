"""The drawing of an animation's frames with Pillow: a header, a picture or a text, and the action below it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 960, 720
_MARGIN, _HEAD, _FOOT = 24, 76, 112
_BODY = (_MARGIN, _HEAD, WIDTH - _MARGIN, HEIGHT - _FOOT)
_PAPER, _INK, _DIM, _LINE, _SOFT = "#ffffff", "#1b1f24", "#667080", "#d5dae1", "#f4f6f8"
_ACTION, _GOOD, _BAD, _BOX = "#0b57d0", "#15803d", "#b42318", "#e5006d"
_TEXT_SIZE, _MAX_CHARS = 15, 20_000
_SANS, _BOLD, _MONO = "DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf"


@dataclass(frozen=True, slots=True)
class Frame:
    """The contents of a frame.

    Attributes:
        title: the name of the environment.
        goal: the goal of the task.
        text: the observation, shown if there is no picture, below the end of `before`.
        before: earlier observations and actions, each action as a line that begins with "› ".
        picture: an image, with `box` (x, y, width, height) around the target of the action.
        action: the action, or the outcome in the last frame.
        thought: the text before the action.
        turn: the number of the turn, of `turns`.
        score: the score so far.
        outcome: True or False for the success in the last frame, None before it.
    """

    title: str
    goal: str
    text: str
    action: str
    turn: int
    turns: int
    score: float
    thought: str = ""
    before: str = ""
    picture: Image.Image | None = None
    box: Sequence[float] | None = None
    outcome: bool | None = None


def draw_frame(frame: Frame) -> Image.Image:
    """Draw one frame."""
    image = Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
    drawing = ImageDraw.Draw(image)
    _draw_head(drawing, frame)
    if frame.picture is None:
        _draw_text(drawing, frame.text, frame.before)
    else:
        _draw_picture(image, drawing, frame.picture, frame.box)
    _draw_foot(drawing, frame)
    return image


def _draw_head(drawing: ImageDraw.ImageDraw, frame: Frame) -> None:
    count = f"turn {frame.turn} of {frame.turns}" if frame.outcome is None else "the end"
    drawing.text((_MARGIN, 16), _fitted(frame.title, _font(_BOLD, 15), WIDTH // 2), _DIM, _font(_BOLD, 15))
    drawing.text((WIDTH - _MARGIN, 16), count, _DIM, _font(_SANS, 15), anchor="ra")
    goal = _fitted(" ".join(frame.goal.split()), _font(_SANS, 19), WIDTH - 2 * _MARGIN)
    drawing.text((_MARGIN, 40), goal, _INK, _font(_SANS, 19))


def _draw_picture(
    image: Image.Image, drawing: ImageDraw.ImageDraw, picture: Image.Image, box: Sequence[float] | None
) -> None:
    left, top, right, bottom = _BODY
    scale = min((right - left) / picture.width, (bottom - top) / picture.height)
    size = (round(picture.width * scale), round(picture.height * scale))
    shown = picture.resize(size, Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.NEAREST)
    x, y = (left + right - size[0]) // 2, (top + bottom - size[1]) // 2
    image.paste(shown, (x, y))
    drawing.rectangle((x - 1, y - 1, x + size[0], y + size[1]), outline=_LINE)
    if box is not None:
        edges = (x + box[0] * scale, y + box[1] * scale, x + (box[0] + box[2]) * scale, y + (box[1] + box[3]) * scale)
        _frame_around(drawing, edges, (x, y, x + size[0], y + size[1]))


def _frame_around(drawing: ImageDraw.ImageDraw, edges: Sequence[float], within: Sequence[float]) -> None:
    """Draw a colored frame with a white edge a little outside of a box."""
    for gap, color, width in ((6, _PAPER, 5), (5, _BOX, 3)):
        left, top = max(edges[0] - gap, within[0]), max(edges[1] - gap, within[1])
        right, bottom = min(edges[2] + gap, within[2]), min(edges[3] + gap, within[3])
        if left < right and top < bottom:
            drawing.rounded_rectangle((left, top, right, bottom), 6, outline=color, width=width)


def _draw_text(drawing: ImageDraw.ImageDraw, text: str, before: str) -> None:
    """Draw an observation and the end of what was before it; of one that is too long, the beginning and the end."""
    drawing.rounded_rectangle(_BODY, 10, fill=_SOFT, outline=_LINE)
    font, left, top = _font(_MONO, _TEXT_SIZE), _BODY[0] + 18, _BODY[1] + 14
    height, width = _TEXT_SIZE + 6, _BODY[2] - left - 18
    rows = int(_BODY[3] - top - 12) // height
    lines = _wrapped(text[:_MAX_CHARS], font, width)
    if len(lines) > rows:
        first = rows // 2
        lines = [*lines[:first], "…", *lines[len(lines) - (rows - first - 1) :]]
    earlier = _wrapped(before[-_MAX_CHARS:], font, width) if before else []
    earlier = earlier[max(0, len(earlier) - (rows - len(lines))) :]
    for number, line in enumerate([*earlier, *lines]):
        past = _ACTION if line.startswith("› ") else _DIM
        drawing.text((left, top + number * height), line, past if number < len(earlier) else _INK, font)


def _draw_foot(drawing: ImageDraw.ImageDraw, frame: Frame) -> None:
    top = HEIGHT - _FOOT + 14
    color = {None: _ACTION, True: _GOOD, False: _BAD}[frame.outcome]
    if frame.thought:
        thought = _fitted(" ".join(frame.thought.split()), _font(_SANS, 14), WIDTH - 2 * _MARGIN)
        drawing.text((_MARGIN, top), thought, _DIM, _font(_SANS, 14))
    font = _font(_MONO, 18)
    sign = "› " if frame.outcome is None else ""
    drawing.text((_MARGIN, top + 26), _fitted(sign + frame.action, font, WIDTH - 2 * _MARGIN - 130), color, font)
    drawing.text((WIDTH - _MARGIN, top + 28), f"score {frame.score:.2f}", _DIM, _font(_SANS, 15), anchor="ra")
    done = frame.turn / max(frame.turns, 1) if frame.outcome is None else 1.0
    drawing.rectangle((0, HEIGHT - 6, WIDTH, HEIGHT), fill=_SOFT)
    drawing.rectangle((0, HEIGHT - 6, WIDTH * done, HEIGHT), fill=color)


def _fitted(text: str, font: Any, width: float) -> str:
    """A text on one line, with an ellipsis if it is longer."""
    line = _plain(text[:500].replace("\n", " ↵ "))
    if font.getlength(line) <= width:
        return line
    while line and font.getlength(line + "…") > width:
        line = line[: -max(1, len(line) // 40)]
    return line + "…"


def _wrapped(text: str, font: Any, width: float) -> list[str]:
    """The lines of a text in a font of fixed width; long lines are broken at spaces, and continued further in."""
    columns = max(8, int(width / font.getlength("0")))
    lines = list[str]()
    for line in _plain(text.replace("\t", "  ")).split("\n"):
        indent = " " * min(len(line) - len(line.lstrip()) + 2, columns // 2)
        rest = line
        while len(rest) > columns:
            cut = rest.rfind(" ", len(indent) + 1, columns + 1)
            cut = cut if cut > 0 else columns
            lines.append(rest[:cut])
            rest = indent + rest[cut:].lstrip()
        lines.append(rest)
    return lines


def _plain(text: str) -> str:
    """A text without control characters, which have no glyph."""
    return "".join(c for c in text if c == "\n" or unicodedata.category(c)[0] != "C")


@cache
def _font(name: str, size: int) -> Any:
    """A font of the system if it is there, else the one that comes with Pillow."""
    try:
        return ImageFont.truetype(name, size)
    except OSError:
        return ImageFont.load_default(size)

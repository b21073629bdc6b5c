"""Set-of-marks: a screenshot with a numbered box around each element that an action can name.

Source: Yang et al., Set-of-Mark prompting (arXiv 2310.11441); Koh et al., VisualWebArena (arXiv 2401.13649) for pages.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from agentgym_envs.webarena.browser.tab import JPEG_QUALITY, ImageFormat
from agentgym_envs.webarena.browser.view import Element, ElementBox, PageView, elements

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

MAX_MARKS = 200
_PNG_LEVEL = 1  # a higher level takes longer and saves little
_ROLES = frozenset(
    " ".join(
        (
            "button checkbox ColorWell combobox Date DateTime DisclosureTriangle InputTime link listbox menuitem",
            "menuitemcheckbox menuitemradio option radio scrollbar searchbox slider spinbutton switch tab textbox",
            "treeitem",
        )
    ).split()
)
_COLORS = ("#c2185b", "#1565c0", "#2e7d32", "#6a1b9a", "#bf360c", "#00695c", "#4e342e", "#283593")
"""Dark colors, on which white numbers can be read. Neighbours in the tree get different ones."""
_FONT_SIZE, _PAD, _LINE = 13, 2, 2


def marked(view: PageView) -> list[Element]:
    """The elements of a page that get a mark: those that take actions and can be seen in the window."""
    shown = (one for one in elements(view.tree) if one.id in view.boxes and _takes_actions(one))
    return [one for one, _ in zip(shown, range(MAX_MARKS), strict=False)]


def _takes_actions(element: Element) -> bool:
    return element.role in _ROLES or element.properties.get("clickable") == "True"


def draw_marks(screenshot: bytes, boxes: Mapping[int, ElementBox], image_format: ImageFormat) -> bytes:
    """Draw numbered boxes on a screenshot, in the order of `boxes`."""
    from PIL import Image, ImageDraw

    with Image.open(io.BytesIO(screenshot)) as opened:
        image = opened.convert("RGB")
    drawing = ImageDraw.Draw(image)
    taken: list[tuple[float, float, float, float]] = []
    for index, box in enumerate(boxes.values()):
        drawing.rectangle(_edges(box), outline=_COLORS[index % len(_COLORS)], width=_LINE)
    for index, (number, box) in enumerate(boxes.items()):
        _label(drawing, str(number), box, _COLORS[index % len(_COLORS)], taken, image.size)
    written = io.BytesIO()
    options: dict[str, Any] = {"compress_level": _PNG_LEVEL} if image_format == "png" else {"quality": JPEG_QUALITY}
    image.save(written, image_format, **options)
    return written.getvalue()


def _edges(box: ElementBox) -> tuple[int, int, int, int]:
    return box.x, box.y, box.x + box.width - 1, box.y + box.height - 1


def _label(
    drawing: ImageDraw,
    text: str,
    box: ElementBox,
    color: str,
    taken: list[tuple[float, float, float, float]],
    size: tuple[int, int],
) -> None:
    """Write a number at the first corner of its box where it covers no other number."""
    font = _font()
    width, height = font.getlength(text) + 2 * _PAD, _FONT_SIZE + 2 * _PAD
    places = [_inside(place, width, height, size) for place in _corners(box, width, height)]
    place = next((one for one in places if not any(_overlap(one, other) for other in taken)), places[0])
    taken.append(place)
    drawing.rectangle(place, fill=color)
    drawing.text((place[0] + _PAD, place[1] + _PAD - 1), text, fill="white", font=font)


def _corners(box: ElementBox, width: float, height: float) -> Iterator[tuple[float, float]]:
    """The places of a label: above the box, inside it, to its sides, and below it."""
    right, bottom = box.x + box.width - width, box.y + box.height
    yield from ((box.x, box.y - height), (right, box.y - height))
    yield from ((box.x, box.y), (right, box.y))
    yield from ((box.x - width, box.y), (box.x + box.width, box.y))
    yield from ((box.x, bottom), (right, bottom))


def _inside(
    place: tuple[float, float], width: float, height: float, size: tuple[int, int]
) -> tuple[float, float, float, float]:
    """The rectangle of a label, moved into the image."""
    x = max(0.0, min(place[0], size[0] - width))
    y = max(0.0, min(place[1], size[1] - height))
    return x, y, x + width - 1, y + height - 1


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


@cache
def _font() -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(_FONT_SIZE)

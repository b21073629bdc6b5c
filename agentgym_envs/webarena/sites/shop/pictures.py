"""Pictures of products: one drawing per shelf, in colours that vary by product.

A line of `pictures.txt` has the slug of a shelf and a drawing on a square of 100; A, B and C are placeholders for
colours.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

_PALETTES = (
    ("#2f6f73", "#1c3f42", "#d9ead3", "#eef5f2"),
    ("#c8553d", "#5b2a21", "#f6d9b8", "#fbf2e9"),
    ("#5b6c9d", "#2b3557", "#d8def0", "#f0f2f9"),
    ("#d9a441", "#6b4a12", "#fbeecb", "#fdf8ea"),
    ("#7a8f52", "#3b4a22", "#e6edcf", "#f5f8ec"),
    ("#8c5a7c", "#45263c", "#f0dcea", "#faf2f8"),
    ("#4a4a4f", "#1e1e22", "#d7d7db", "#f3f3f5"),
    ("#b98b6b", "#5a3d29", "#f2e3d6", "#faf5f0"),
    ("#3f88a8", "#1b4557", "#d3e9f2", "#eef7fb"),
    ("#b34a66", "#561d2d", "#f7d8e0", "#fcf1f4"),
)
_OTHER = '<path fill="A" d="M20 34h60v50H20z"/><path fill="B" d="M20 34l10-16h40l10 16z"/>'
"""A box, for shelves that were added during an episode."""


def picture(product: int, shelf: str, name: str = "") -> Markup:
    """Return the drawing of a product. Without a name it is hidden from assistive technology."""
    from markupsafe import Markup

    a, b, c, ground = _PALETTES[(7 * product + product // 10) % len(_PALETTES)]
    colours = {"A": a, "B": b, "C": c}
    drawing = re.sub(r'"([ABC])"', lambda match: f'"{colours[match[1]]}"', _drawings().get(shelf, _OTHER))
    mirrored = ' transform="matrix(-1 0 0 1 100 0)"' if product % 3 == 0 else ""
    label = Markup(' role="img" aria-label="{}"').format(name) if name else Markup(' aria-hidden="true"')
    head = Markup(f'<svg class="picture" viewBox="0 0 100 100" style="background: {ground}"')
    return head + label + Markup(f"><g{mirrored}>{drawing}</g></svg>")


@lru_cache(maxsize=1)
def _drawings() -> dict[str, str]:
    """Return the drawings by slug of the shelf."""
    lines = files(__package__).joinpath("pictures.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines)

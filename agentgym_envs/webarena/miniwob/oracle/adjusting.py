"""Oracles of the pages with sliders, spinners and a scrolled text."""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_envs.webarena.actions import Action, Press, Scroll
from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, number


def slide(handle: Element, state: Sequence[int], wanted: int) -> Press | None:
    """Return the next key for a slider, or None if it has the wanted value.

    `state` is the value, the minimum and the maximum. jQuery UI's page keys move by a fifth of the range.
    """
    value, low, high = state
    distance, page_step = wanted - value, max(1, (high - low) // 5)
    if distance == 0:
        return None
    keys = ("PageUp", "ArrowRight") if distance > 0 else ("PageDown", "ArrowLeft")
    return Press(keys[0] if abs(distance) >= page_step > 1 else keys[1], handle.id)


def slider(page: WidgetReader) -> Action:
    """Set one slider. Peeks at its range, which the text does not show."""
    (wanted,) = page.asks(r"Select (-?\d+) with")
    return slide(page.one("slider"), page.peek[0], int(wanted)) or click(page.one("button", "Submit"))


def sliders(page: WidgetReader) -> Action:
    """Set three sliders."""
    (text,) = page.asks(r"combination \[(.+)\]")
    wanted = map(int, text.split(","))
    moves = (slide(*each) for each in zip(page.all("slider"), page.peek, wanted, strict=True))
    return next(filter(None, moves), None) or click(page.one("button", "Submit"))


def spinner(page: WidgetReader) -> Action:
    """Set a field that takes only arrow keys."""
    (wanted,) = page.asks(r"Select (-?\d+) with")
    field = page.fields[0]
    distance = int(wanted) - number(field.properties.get("value", "0"))
    return (
        Press("ArrowUp" if distance > 0 else "ArrowDown", field.id) if distance else click(page.one("button", "Submit"))
    )


def scrolled_text(page: WidgetReader) -> Action:
    """Scroll a text to an end. Peeks at the position, which an agent reads from the observation after scrolling."""
    down = "bottom" in page.goal
    top, most = page.peek
    there = top >= most - 1 if down else top <= 0
    return click(page.one("button", "Submit")) if there else Scroll("down" if down else "up")


def _sliders(selector: str) -> str:
    ends = "['value', 'min', 'max'].map(what => $(each).slider('option', what))"
    return f"$('{selector}').toArray().map(each => {ends})"


_TEXT = "document.getElementById('text-area')"
SOLVERS: dict[str, Solver] = {
    "scroll-text-2": scrolled_text,
    "use-slider": slider,
    "use-slider-2": sliders,
    "use-spinner": spinner,
}
PEEKS = {
    "scroll-text-2": f"[{_TEXT}.scrollTop, {_TEXT}.scrollHeight - {_TEXT}.clientHeight]",
    "use-slider": _sliders("#slider"),
    "use-slider-2": _sliders("#slider-1, #slider-2, #slider-3"),
}

"""Oracles of the pages where something is found and clicked."""

from __future__ import annotations

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, number, on


def quoted_button(sight: WidgetReader) -> Action:
    """The button whose label is quoted."""
    (label,) = sight.asks('"(.+)"')
    return click(sight.one("button", label))


def only_button(sight: WidgetReader) -> Action:
    """The button that there is."""
    return click(sight.one("button"))


def named_button(sight: WidgetReader) -> Action:
    """Button ONE or TWO."""
    (label,) = sight.asks(r"button (\w+)\.")
    return click(sight.one("button", label))


def one_then_two(sight: WidgetReader) -> Action:
    """Button ONE, which then has the focus, and button TWO."""
    one, two = sight.one("button", "ONE"), sight.one("button", "TWO")
    if on(two, "focused"):
        raise NoOracle("button TWO was clicked first")
    return click(two if on(one, "focused") else one)


def link(sight: WidgetReader) -> Action:
    """The link whose text is quoted."""
    (text,) = sight.asks('"(.+)"')
    return click(sight.one("link", text))


def widget(sight: WidgetReader) -> Action:
    """A form's element of a kind."""
    (kind,) = sight.asks('"(.+)"')
    return click(sight.one("textbox", kind) if kind.startswith("text") else sight.one(kind))


def textbox(sight: WidgetReader) -> Action:
    """The text box that there is, or the one of a number."""
    place = number(sight.goal) if "1st" in sight.goal or "2nd" in sight.goal or "3rd" in sight.goal else 1
    return click(sight.all("textbox")[place - 1])


SOLVERS: dict[str, Solver] = {
    "click-button": quoted_button,
    "click-button-sequence": one_then_two,
    "click-dialog": quoted_button,
    "click-dialog-2": quoted_button,
    "click-link": link,
    "click-test": only_button,
    "click-test-2": named_button,
    "click-test-transfer": named_button,
    "click-widget": widget,
    "focus-text": textbox,
    "focus-text-2": textbox,
    "unicode-test": quoted_button,
}

"""Oracles of the pages with one element to click."""

from __future__ import annotations

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, number, on


def quoted_button(page: WidgetReader) -> Action:
    """Click the button whose label is quoted."""
    (label,) = page.asks('"(.+)"')
    return click(page.one("button", label))


def only_button(page: WidgetReader) -> Action:
    """Click the only button."""
    return click(page.one("button"))


def named_button(page: WidgetReader) -> Action:
    """Click button ONE or TWO."""
    (label,) = page.asks(r"button (\w+)\.")
    return click(page.one("button", label))


def one_then_two(page: WidgetReader) -> Action:
    """Click button ONE, which then has the focus, and then button TWO."""
    one, two = page.one("button", "ONE"), page.one("button", "TWO")
    if on(two, "focused"):
        raise NoOracle("button TWO was clicked first")
    return click(two if on(one, "focused") else one)


def link(page: WidgetReader) -> Action:
    """Click the link whose text is quoted."""
    (text,) = page.asks('"(.+)"')
    return click(page.one("link", text))


def widget(page: WidgetReader) -> Action:
    """Click the widget of the quoted kind."""
    (kind,) = page.asks('"(.+)"')
    return click(page.one("textbox", kind) if kind.startswith("text") else page.one(kind))


def textbox(page: WidgetReader) -> Action:
    """Click the only text box, or the one with the number in the objective."""
    position = number(page.goal) if "1st" in page.goal or "2nd" in page.goal or "3rd" in page.goal else 1
    return click(page.all("textbox")[position - 1])


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

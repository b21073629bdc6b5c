"""Oracles of the pages with a form of several fields."""

from __future__ import annotations

from itertools import pairwise

from agentgym_envs.webarena.actions import Action, Scroll
from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.miniwob.oracle.adjusting import slide
from agentgym_envs.webarena.miniwob.oracle.page_reader import FIELDS, Solver, WidgetReader, click, fill, on


def login(sight: WidgetReader) -> Action:
    """User and password; what pops up is sent away."""
    cancel = sight.find("button", "Cancel")
    if cancel is not None:
        return click(cancel)
    user, password = sight.asks('username "(.+?)" and the password "(.+?)"')
    fields = sight.fields
    return fill([(fields[0], user), (fields[1], password)], sight.all("button")[-1])


def film(sight: WidgetReader) -> Action:
    """A form in any layout: labels stand before their fields, or behind them."""
    genre, director, year = sight.asks("for (.+) movies directed by (.+) from year (.+)[.]")
    wanted = {"genre": genre, "director": director, "year": year, "release": year}
    pairs = [
        (field, next(wanted[word] for word in wanted if word in label.lower())) for field, label in _labelled(sight)
    ]
    return fill(pairs, sight.all("button")[-1])


def _labelled(sight: WidgetReader) -> list[tuple[Element, str]]:
    body = [e for e in sight.body if e.role in FIELDS or e.role in ("StaticText", "columnheader", "rowheader")]
    if body[0].role in FIELDS:
        return [(field, label.name) for field, label in pairwise(body) if field.role in FIELDS]
    return [(field, label.name) for label, field in pairwise(body) if field.role in FIELDS]


def slider_and_box(sight: WidgetReader) -> Action:
    """A slider, a checkbox and the button."""
    wanted, place = sight.asks(r"Select (-?\d+) with the slider, click the (\d)")
    move = slide(sight.one("slider"), sight.peek[0], int(wanted))
    boxes = enumerate(sight.all("checkbox"), 1)
    wrong = next((box for number, box in boxes if on(box, "checked") != (number == int(place))), None)
    return move or click(wrong or sight.one("button", "Submit"))


def radio_and_text(sight: WidgetReader) -> Action:
    """A radio button, a text field and the button."""
    radio, text, field = sight.asks(r'the (\d).. radio button and enter the number "(-?\d+)" into the (\d)')
    button = sight.all("radio")[int(radio) - 1]
    if not on(button, "checked"):
        return click(button)
    texts = [text if number == int(field) else "" for number in (1, 2, 3)]
    return fill(zip(sight.fields, texts, strict=True), sight.one("button", "Submit"))


def list_and_button(sight: WidgetReader) -> Action:
    """A drop-down list made of other elements, and one of three buttons."""
    name, label = sight.asks('Choose (.+) from the dropdown, then click the button labeled "(.+)"')
    if any(element.role == "StaticText" and element.name == name for element in sight.body):
        return click(sight.one("button", label))
    return click(sight.find("option", name) or sight.one("combobox", "dropdown"))


def agreement(sight: WidgetReader) -> Action:
    """A name can be written once the text was scrolled to its end."""
    if "Click the cancel button" in sight.goal:
        return click(sight.one("button", "Cancel"))
    name, label = sight.asks('enter the name "(.+)" then press "(.+)"')
    field = sight.one("textbox", "Name")
    return Scroll("down") if on(field, "disabled") else fill([(field, name)], sight.one("button", label))


SOLVERS: dict[str, Solver] = {
    "form-sequence": slider_and_box,
    "form-sequence-2": radio_and_text,
    "form-sequence-3": list_and_button,
    "login-user": login,
    "login-user-popup": login,
    "multi-layouts": film,
    "multi-orderings": film,
    "sign-agreement": agreement,
}
PEEKS = {
    "form-sequence": "[['value', 'min', 'max'].map(what => $('#slider').slider('option', what))]",
}

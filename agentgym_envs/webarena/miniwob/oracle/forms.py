"""Oracles of the pages with a form of several fields."""

from __future__ import annotations

from itertools import pairwise

from agentgym_envs.webarena.actions import Action, Scroll
from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.miniwob.oracle.adjusting import slide
from agentgym_envs.webarena.miniwob.oracle.page_reader import FIELDS, Solver, WidgetReader, click, fill, on


def login(page: WidgetReader) -> Action:
    """Log in with user name and password; cancel the pop-up."""
    cancel = page.find("button", "Cancel")
    if cancel is not None:
        return click(cancel)
    user, password = page.asks('username "(.+?)" and the password "(.+?)"')
    fields = page.fields
    return fill([(fields[0], user), (fields[1], password)], page.all("button")[-1])


def film(page: WidgetReader) -> Action:
    """Fill in a form in any layout, with labels before or after their fields."""
    genre, director, year = page.asks("for (.+) movies directed by (.+) from year (.+)[.]")
    wanted = {"genre": genre, "director": director, "year": year, "release": year}
    pairs = [
        (field, next(wanted[word] for word in wanted if word in label.lower())) for field, label in _labelled(page)
    ]
    return fill(pairs, page.all("button")[-1])


def _labelled(page: WidgetReader) -> list[tuple[Element, str]]:
    body = [e for e in page.body if e.role in FIELDS or e.role in ("StaticText", "columnheader", "rowheader")]
    if body[0].role in FIELDS:
        return [(field, label.name) for field, label in pairwise(body) if field.role in FIELDS]
    return [(field, label.name) for label, field in pairwise(body) if field.role in FIELDS]


def slider_and_box(page: WidgetReader) -> Action:
    """Set a slider and a checkbox, then submit."""
    wanted, position = page.asks(r"Select (-?\d+) with the slider, click the (\d)")
    move = slide(page.one("slider"), page.peek[0], int(wanted))
    boxes = enumerate(page.all("checkbox"), 1)
    wrong = next((box for number, box in boxes if on(box, "checked") != (number == int(position))), None)
    return move or click(wrong or page.one("button", "Submit"))


def radio_and_text(page: WidgetReader) -> Action:
    """Choose a radio button and fill in a field, then submit."""
    radio, text, field = page.asks(r'the (\d).. radio button and enter the number "(-?\d+)" into the (\d)')
    button = page.all("radio")[int(radio) - 1]
    if not on(button, "checked"):
        return click(button)
    texts = [text if number == int(field) else "" for number in (1, 2, 3)]
    return fill(zip(page.fields, texts, strict=True), page.one("button", "Submit"))


def list_and_button(page: WidgetReader) -> Action:
    """Choose from a custom drop-down list, then click one of three buttons."""
    name, label = page.asks('Choose (.+) from the dropdown, then click the button labeled "(.+)"')
    if any(element.role == "StaticText" and element.name == name for element in page.body):
        return click(page.one("button", label))
    return click(page.find("option", name) or page.one("combobox", "dropdown"))


def agreement(page: WidgetReader) -> Action:
    """Scroll the text to its end, which enables the name field, and sign; or cancel."""
    if "Click the cancel button" in page.goal:
        return click(page.one("button", "Cancel"))
    name, label = page.asks('enter the name "(.+)" then press "(.+)"')
    field = page.one("textbox", "Name")
    return Scroll("down") if on(field, "disabled") else fill([(field, name)], page.one("button", label))


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

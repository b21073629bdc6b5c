"""Oracles of the pages with options, checkboxes or dishes to choose."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from typing import NamedTuple

from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, number, on


def tick(boxes: Iterable[Element], wanted: Iterable[str], state: str, button: Element) -> Action:
    """Toggle the first box with a wrong state; click the button if all are right."""
    names = set(wanted)
    return click(next((box for box in boxes if on(box, state) != (box.name in names)), button))


def option(page: WidgetReader) -> Action:
    """Choose one option of a drop-down list."""
    (name,) = page.asks("Select (.+) from the list and click Submit")
    chosen = page.one("option", name)
    return click(page.one("button", "Submit") if on(chosen, "selected") else chosen)


def options(page: WidgetReader) -> Action:
    """Choose one or two options of a longer list; names may contain commas."""
    (text,) = page.asks("Select (.+) from the scroll list and click Submit")
    rows = page.all("option")
    sets = (names for size in (1, 2) for names in permutations([row.name for row in rows], size))
    wanted = next(names for names in sets if ", ".join(names) == text)
    return tick(rows, wanted, "selected", page.one("button", "Submit"))


def radio(page: WidgetReader) -> Action:
    """Choose one radio button."""
    (name,) = page.asks("Select (.+) and click Submit")
    return tick([page.one("radio", name)], [name], "checked", page.one("button", "Submit"))


def checkboxes(page: WidgetReader) -> Action:
    """Check the listed boxes, if any."""
    (text,) = page.asks("Select (.+) and click Submit")
    return tick(page.all("checkbox"), text.split(", "), "checked", page.one("button", "Submit"))


def similar_words(page: WidgetReader) -> Action:
    """Check the synonyms of the listed words. Peeks at the page's own table of synonyms."""
    (text,) = page.asks("Select words similar to (.+) and click Submit")
    listed = set(text.split(", "))
    wanted = {word for synonyms in page.peek if listed & set(synonyms) for word in synonyms}
    return tick(page.all("checkbox"), wanted, "checked", page.one("button", "Submit"))


def odd_or_even(page: WidgetReader) -> Action:
    """Choose Odd or Even for each number, which is between its two buttons."""
    body = page.body
    for left, middle, right in zip(body, body[1:], body[2:], strict=False):
        if left.name == "Odd" and right.name == "Even":
            chosen = left if number(middle.name) % 2 else right
            if not on(chosen, "pressed"):
                return click(chosen)
    return click(page.one("button", "Submit"))


class _Dish(NamedTuple):
    name: str
    kinds: list[str]
    ordered: int
    remove: Element
    add: Element


def food(page: WidgetReader) -> Action:
    """Order two dishes by name, or several of one kind."""
    dishes = _menu(page)
    if "one of each" in page.goal:
        (text,) = page.asks("each item: (.+)")
        wanted = {dish.name: int(dish.name in text.split(", ")) for dish in dishes}
    else:
        count, kind = page.asks(r"Order (\d+) items that are (.+)")
        first = next(dish for dish in dishes if kind in dish.kinds)
        wanted = {dish.name: int(count) * (dish is first) for dish in dishes}
    wrong = next((dish for dish in dishes if dish.ordered != wanted[dish.name]), None)
    if wrong is None:
        return click(page.one("button", "Order!"))
    return click(wrong.add if wrong.ordered < wanted[wrong.name] else wrong.remove)


def _menu(page: WidgetReader) -> list[_Dish]:
    dishes, parts = list[_Dish](), list[Element]()
    for element in page.body:
        parts.append(element)
        if element.role == "button" and element.name == "+":
            dishes.append(_dish(parts))
            parts = []
    return dishes


def _dish(parts: list[Element]) -> _Dish:
    """Read a dish: its name, images of its kinds, a minus button, an optional number, and a plus button."""
    name, *ordered = [part.name for part in parts if part.role == "StaticText"]
    kinds = [part.name for part in parts if part.role == "img"]
    remove, add = (part for part in parts if part.role == "button")
    return _Dish(name, kinds, int(ordered[0]) if ordered else 0, remove, add)


SOLVERS: dict[str, Solver] = {
    "choose-list": option,
    "click-checkboxes": checkboxes,
    "click-checkboxes-large": checkboxes,
    "click-checkboxes-soft": similar_words,
    "click-checkboxes-transfer": checkboxes,
    "click-option": radio,
    "click-scroll-list": options,
    "odd-or-even": odd_or_even,
    "order-food": food,
}
PEEKS = {"click-checkboxes-soft": "SYNONYMS"}

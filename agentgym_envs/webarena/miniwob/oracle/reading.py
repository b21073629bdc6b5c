"""Oracles of the pages with something to read, find or calculate."""

from __future__ import annotations

import re

from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, fill, number


def ticket(page: WidgetReader) -> Action:
    """Choose the cheapest, most expensive, shortest or longest ticket."""
    texts, buttons = page.texts, page.all("button")
    minutes = [_minutes(text) for text in texts if re.fullmatch(r"\d+h \d+m", text)]
    if "cost" in page.goal:
        minutes = [number(button.name) for button in buttons]
    best = min(minutes) if "cheapest" in page.goal or "shortest" in page.goal else max(minutes)
    return click(buttons[minutes.index(best)])


def _minutes(text: str) -> int:
    hours, minutes = re.findall(r"\d+", text)
    return 60 * int(hours) + int(minutes)


def card(page: WidgetReader) -> Action:
    """Choose the card with the greatest number. Peeks instead of turning over all cards."""
    greatest = max(page.peek)
    shown = page.all("button")[page.peek.index(greatest)]
    return click(page.one("button", "Submit") if shown.name == str(greatest) else shown)


def word(page: WidgetReader) -> Action:
    """Type the n-th word of a paragraph."""
    text = " ".join(element.name for element in page.body if element.role == "StaticText")
    found = re.sub("[^a-zA-Z]", "", text.split()[number(page.goal) - 1])
    return fill([(page.fields[0], found)], page.one("button", "Submit"))


def cell(page: WidgetReader) -> Action:
    """Type the value of a key in a table."""
    (key,) = page.asks("the value of (.+) into")
    return fill([(page.fields[0], _value(page, key))], page.one("button", "Submit"))


def cells(page: WidgetReader) -> Action:
    """Type the values of two keys, which are written before their fields."""
    keys = [text.removesuffix(":") for text in page.texts if text.endswith(":")]
    values = [_value(page, key) for key in keys]
    return fill(list(zip(page.fields, values, strict=True)), page.one("button", "Submit"))


def _value(page: WidgetReader, key: str) -> str:
    texts = page.texts
    return texts[texts.index(key) + 1]


def last_word(page: WidgetReader) -> Action:
    """Type the last word of a text."""
    text, answer = page.fields
    found = re.sub("[^a-zA-Z0-9]", "", text.properties["value"].split()[-1])
    return fill([(answer, found)], page.one("button", "Submit"))


def algebra(page: WidgetReader) -> Action:
    """Solve an equation such as `x + 2 = 43`."""
    left, sign, right, total = _sum(page, r"(x|\d+) ([+-]) (x|\d+) = (\d+)")
    if sign == "+":
        answer = int(total) - int(right if left == "x" else left)
    else:
        answer = int(total) + int(right) if left == "x" else int(left) - int(total)
    return fill([(page.fields[0], str(answer))], page.one("button", "Submit"))


def arithmetic(page: WidgetReader) -> Action:
    """Calculate a term such as `2 x 4 =`."""
    left, sign, right = _sum(page, r"(\d+) ([+x-]) (\d+) =")
    one, two = int(left), int(right)
    answer = {"+": one + two, "-": one - two, "x": one * two}[sign]
    return fill([(page.fields[0], str(answer))], page.one("button", "Submit"))


def _sum(page: WidgetReader, pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, " ".join(page.texts))
    assert found is not None
    return found.groups()


SOLVERS: dict[str, Solver] = {
    "buy-ticket": ticket,
    "find-greatest": card,
    "find-word": word,
    "read-table": cell,
    "read-table-2": cells,
    "scroll-text": last_word,
    "simple-algebra": algebra,
    "simple-arithmetic": arithmetic,
}
PEEKS = {"find-greatest": "[...document.querySelectorAll('.card-value')].map(card => Number(card.textContent))"}

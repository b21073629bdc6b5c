"""Oracles of the pages where something is read, found or worked out."""

from __future__ import annotations

import re

from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, fill, number


def ticket(sight: WidgetReader) -> Action:
    """The cheapest, dearest, shortest or longest of some."""
    texts, buttons = sight.texts, sight.all("button")
    minutes = [_minutes(text) for text in texts if re.fullmatch(r"\d+h \d+m", text)]
    if "cost" in sight.goal:
        minutes = [number(button.name) for button in buttons]
    best = min(minutes) if "cheapest" in sight.goal or "shortest" in sight.goal else max(minutes)
    return click(buttons[minutes.index(best)])


def _minutes(text: str) -> int:
    hours, minutes = re.findall(r"\d+", text)
    return 60 * int(hours) + int(minutes)


def card(sight: WidgetReader) -> Action:
    """The card of the greatest number. Peeks instead of turning them all over and remembering."""
    greatest = max(sight.peek)
    shown = sight.all("button")[sight.peek.index(greatest)]
    return click(sight.one("button", "Submit") if shown.name == str(greatest) else shown)


def word(sight: WidgetReader) -> Action:
    """The word of a number in a paragraph."""
    text = " ".join(element.name for element in sight.body if element.role == "StaticText")
    found = re.sub("[^a-zA-Z]", "", text.split()[number(sight.goal) - 1])
    return fill([(sight.fields[0], found)], sight.one("button", "Submit"))


def cell(sight: WidgetReader) -> Action:
    """The value of a key in a table."""
    (key,) = sight.asks("the value of (.+) into")
    return fill([(sight.fields[0], _value(sight, key))], sight.one("button", "Submit"))


def cells(sight: WidgetReader) -> Action:
    """The values of two keys, which stand before their fields."""
    keys = [text.removesuffix(":") for text in sight.texts if text.endswith(":")]
    values = [_value(sight, key) for key in keys]
    return fill(list(zip(sight.fields, values, strict=True)), sight.one("button", "Submit"))


def _value(sight: WidgetReader, key: str) -> str:
    texts = sight.texts
    return texts[texts.index(key) + 1]


def last_word(sight: WidgetReader) -> Action:
    """The last word of a text."""
    text, answer = sight.fields
    found = re.sub("[^a-zA-Z0-9]", "", text.properties["value"].split()[-1])
    return fill([(answer, found)], sight.one("button", "Submit"))


def algebra(sight: WidgetReader) -> Action:
    """`x + 2 = 43` and the like."""
    left, sign, right, total = _sum(sight, r"(x|\d+) ([+-]) (x|\d+) = (\d+)")
    if sign == "+":
        answer = int(total) - int(right if left == "x" else left)
    else:
        answer = int(total) + int(right) if left == "x" else int(left) - int(total)
    return fill([(sight.fields[0], str(answer))], sight.one("button", "Submit"))


def arithmetic(sight: WidgetReader) -> Action:
    """`2 x 4 =` and the like."""
    left, sign, right = _sum(sight, r"(\d+) ([+x-]) (\d+) =")
    one, two = int(left), int(right)
    answer = {"+": one + two, "-": one - two, "x": one * two}[sign]
    return fill([(sight.fields[0], str(answer))], sight.one("button", "Submit"))


def _sum(sight: WidgetReader, pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, " ".join(sight.texts))
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

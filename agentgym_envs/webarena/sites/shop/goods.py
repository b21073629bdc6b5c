"""The goods of the shops: shelves, products, their attributes and options, and opinions for reviews.

Format of `goods_*.txt`: "# " starts a department, followed by a line that describes it; "## " starts a shelf.
"*Capacity: " is an attribute that is part of the product's name and affects its price. "choose Size: " is an option. "+
" is praise and "- " a complaint. An entry may end with "@ Word Word", for products with one of these words in their
name, or with "@! Word", for products without them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

_FILES = ("goods_home.txt", "goods_wear.txt", "goods_things.txt")


class GoodsText(NamedTuple):
    """A text, and the products to which it applies."""

    text: str
    words: tuple[str, ...] = ()
    without: bool = False

    def suits(self, thing: str) -> bool:
        """Return True if the text applies to a product."""
        return not self.words or any(word in thing for word in self.words) != self.without

    def is_specific_to(self, thing: str) -> bool:
        """Return True if the text names the product or its material."""
        named = self.words and not self.without
        return self.suits(thing) if named else bool(set(self.text.split()) & set(thing.split()))


@dataclass(frozen=True, slots=True)
class ValueList:
    """An attribute or an option. If `key` is true, its value is part of the name and the price grows with it."""

    name: GoodsText
    values: tuple[GoodsText, ...]
    key: bool

    def of(self, thing: str) -> list[str]:
        """Return the values for a product: the specific ones if there are any, otherwise all that apply."""
        specific = [value.text for value in self.values if value.is_specific_to(thing)]
        return specific or [value.text for value in self.values if value.suits(thing)]


@dataclass(slots=True)
class Shelf:
    """A category of the second level. Prices are in dollars, weights in grams."""

    name: str
    things: list[str] = field(default_factory=list)
    price: tuple[int, int] = (1, 1)
    weight: tuple[int, int] = (1, 1)
    attributes: list[ValueList] = field(default_factory=list)
    options: list[ValueList] = field(default_factory=list)
    uses: list[GoodsText] = field(default_factory=list)
    facts: list[GoodsText] = field(default_factory=list)
    good: list[GoodsText] = field(default_factory=list)
    bad: list[GoodsText] = field(default_factory=list)


@dataclass(slots=True)
class Department:
    """A category of the first level."""

    name: str
    about: str
    shelves: list[Shelf] = field(default_factory=list)


def texts_for(entries: Iterable[GoodsText], thing: str) -> list[str]:
    """Return the texts that apply to a product."""
    return [entry.text for entry in entries if entry.suits(thing)]


def first_for(lists: Sequence[ValueList], thing: str) -> list[ValueList]:
    """Return the attributes or options of a product: for each name, the first that applies, and at most one key."""
    parsed: dict[str, ValueList] = {}
    for values in lists:
        if values.name.suits(thing):
            parsed.setdefault("" if values.key else values.name.text, values)
    return list(parsed.values())


def pick_some(rng: random.Random, texts: Sequence[str], count: int) -> list[str]:
    """Draw `count` different texts, or all if there are fewer."""
    return rng.sample(texts, min(count, len(texts)))


@lru_cache(maxsize=1)
def departments() -> tuple[Department, ...]:
    """Return all departments."""
    parsed: list[Department] = []
    for name in _FILES:
        lines = files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
        for line in filter(None, lines):
            _read(parsed, line)
    return tuple(parsed)


def _read(parsed: list[Department], line: str) -> None:
    mark, _, rest = line.partition(" ")
    if mark == "#":
        parsed.append(Department(rest, ""))
    elif mark == "##":
        parsed[-1].shelves.append(Shelf(rest))
    elif not parsed[-1].shelves:
        parsed[-1].about = line
    elif mark in ("+", "-"):
        shelf = parsed[-1].shelves[-1]
        (shelf.good if mark == "+" else shelf.bad).extend(_texts(rest))
    else:
        name, _, values = line.partition(": ")
        _read_field(parsed[-1].shelves[-1], name, values)


def _read_field(shelf: Shelf, name: str, values: str) -> None:
    match name:
        case "things":
            shelf.things = values.split("; ")
        case "price":
            shelf.price = _range(values)
        case "weight":
            shelf.weight = _range(values)
        case "use":
            shelf.uses += _texts(values)
        case "fact":
            shelf.facts.append(_text(values))
        case _ if name.startswith("choose "):
            shelf.options.append(ValueList(_text(name.removeprefix("choose ")), _texts(values), key=False))
        case _:
            shelf.attributes.append(ValueList(_text(name.removeprefix("*")), _texts(values), key=name[0] == "*"))


def _range(values: str) -> tuple[int, int]:
    low, high = values.split("-")
    return int(low), int(high)


def _texts(values: str) -> tuple[GoodsText, ...]:
    return tuple(map(_text, values.split("; ")))


def _text(text: str) -> GoodsText:
    text, _, words = text.partition(" @")
    without, words = words.startswith("!"), words.removeprefix("!")
    return GoodsText(text, tuple(words.split()), without)

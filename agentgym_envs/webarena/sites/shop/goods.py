"""What shops sell: shelves with their things, what these are made of, and what people say of them.

`goods_*.txt` are read as follows. "# " begins a department, whose next line describes it, "## " a shelf. "*Capacity: "
is an attribute that names tell and prices follow, "choose Size: " an option, "+ " praise and "- " complaint. Any entry
may end in "@ Word Word", for things with one of these words in their name, or "@! Word", for those without.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

_FILES = ("goods_home.txt", "goods_wear.txt", "goods_things.txt")


class Entry(NamedTuple):
    """A text, and of which things it may be said."""

    text: str
    words: tuple[str, ...] = ()
    without: bool = False

    def suits(self, thing: str) -> bool:
        """Whether it may be said of a thing."""
        return not self.words or any(word in thing for word in self.words) != self.without

    def meant(self, thing: str) -> bool:
        """Whether it names the thing, or what it is made of."""
        named = self.words and not self.without
        return self.suits(thing) if named else bool(set(self.text.split()) & set(thing.split()))


@dataclass(frozen=True, slots=True)
class Values:
    """An attribute or an option. `key` ones stand in the product's name, and the price grows with them."""

    name: Entry
    values: tuple[Entry, ...]
    key: bool

    def of(self, thing: str) -> list[str]:
        """The values that a thing may have: those meant for it, if there are any."""
        meant = [value.text for value in self.values if value.meant(thing)]
        return meant or [value.text for value in self.values if value.suits(thing)]


@dataclass(slots=True)
class Shelf:
    """A category of the second level. Prices are in dollars, weights in grams."""

    name: str
    things: list[str] = field(default_factory=list)
    price: tuple[int, int] = (1, 1)
    weight: tuple[int, int] = (1, 1)
    attributes: list[Values] = field(default_factory=list)
    options: list[Values] = field(default_factory=list)
    uses: list[Entry] = field(default_factory=list)
    facts: list[Entry] = field(default_factory=list)
    good: list[Entry] = field(default_factory=list)
    bad: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class Department:
    """A category of the first level."""

    name: str
    about: str
    shelves: list[Shelf] = field(default_factory=list)


def said(entries: Iterable[Entry], thing: str) -> list[str]:
    """The texts that may be said of a thing."""
    return [entry.text for entry in entries if entry.suits(thing)]


def first_for(lists: Sequence[Values], thing: str) -> list[Values]:
    """The attributes or options that a thing has: the first of each name that suits it, and of those with a key."""
    found: dict[str, Values] = {}
    for values in lists:
        if values.name.suits(thing):
            found.setdefault("" if values.key else values.name.text, values)
    return list(found.values())


def pick_some(rng: random.Random, texts: Sequence[str], count: int) -> list[str]:
    """As many different texts as asked for, or as there are."""
    return rng.sample(texts, min(count, len(texts)))


@lru_cache(maxsize=1)
def departments() -> tuple[Department, ...]:
    """Everything that is sold."""
    found: list[Department] = []
    for name in _FILES:
        lines = files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
        for line in filter(None, lines):
            _read(found, line)
    return tuple(found)


def _read(found: list[Department], line: str) -> None:
    mark, _, rest = line.partition(" ")
    if mark == "#":
        found.append(Department(rest, ""))
    elif mark == "##":
        found[-1].shelves.append(Shelf(rest))
    elif not found[-1].shelves:
        found[-1].about = line
    elif mark in ("+", "-"):
        shelf = found[-1].shelves[-1]
        (shelf.good if mark == "+" else shelf.bad).extend(_entries(rest))
    else:
        name, _, values = line.partition(": ")
        _read_field(found[-1].shelves[-1], name, values)


def _read_field(shelf: Shelf, name: str, values: str) -> None:
    match name:
        case "things":
            shelf.things = values.split("; ")
        case "price":
            shelf.price = _range(values)
        case "weight":
            shelf.weight = _range(values)
        case "use":
            shelf.uses += _entries(values)
        case "fact":
            shelf.facts.append(_entry(values))
        case _ if name.startswith("choose "):
            shelf.options.append(Values(_entry(name.removeprefix("choose ")), _entries(values), key=False))
        case _:
            shelf.attributes.append(Values(_entry(name.removeprefix("*")), _entries(values), key=name[0] == "*"))


def _range(values: str) -> tuple[int, int]:
    low, high = values.split("-")
    return int(low), int(high)


def _entries(values: str) -> tuple[Entry, ...]:
    return tuple(map(_entry, values.split("; ")))


def _entry(text: str) -> Entry:
    text, _, words = text.partition(" @")
    without, words = words.startswith("!"), words.removeprefix("!")
    return Entry(text, tuple(words.split()), without)

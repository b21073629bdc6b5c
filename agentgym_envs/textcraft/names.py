"""What the items of a recipe book are called: by their real names, by each other's, or by invented ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from agentgym_envs.textcraft.recipes import RecipeBook

Worlds = Literal["real", "fictional", "invented"]
WORLDS: tuple[Worlds, ...] = get_args(Worlds)

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]
_SYLLABLE_VALUES = {syllable: value for value, syllable in enumerate(_SYLLABLES)}
_BASE = len(_SYLLABLES)
_INVENTABLE = _BASE**3


class Names(ABC):
    """A one-to-one naming of every item and tag of a book; spoken, that is with spaces."""

    def __init__(self, book: RecipeBook, world: int) -> None:
        self.book, self.world = book, world

    @abstractmethod
    def say(self, ref: int) -> str:
        """The name of an item or tag."""

    @abstractmethod
    def find(self, text: str) -> int | None:
        """The item of that name (lower case, single spaces; singular or plural where only one fits), if any."""

    def line(self, number: int) -> str:
        """A recipe as the command that crafts it, tags by their names."""
        item, count, parts = self.book.recipes[number]
        say = self.say
        return f"craft {count} {say(item)} using " + ", ".join([f"{amount} {say(ref)}" for ref, amount in parts])

    def explain(self, tag: int) -> str:
        """A tag and every item that carries it."""
        return f"{self.say(tag)}: {', '.join([self.say(member) for member in self.book.members[tag]])}"


class RealNames(Names):
    """The names of the table."""

    def __init__(self, book: RecipeBook) -> None:
        super().__init__(book, 0)
        self.spoken = [name.replace("_", " ") for name in (*book.items, *book.tags)]
        self._refs = {name: ref for ref, name in enumerate(self.spoken[: book.size])}
        self._variants = _variants(self._refs)
        self._lines = [super(RealNames, self).line(number) for number in range(len(book.recipes))]

    def __reduce__(self) -> tuple[Any, ...]:
        return real_names, (self.book,)

    def say(self, ref: int) -> str:
        """The name in the table, with spaces."""
        return self.spoken[ref]

    def find(self, text: str) -> int | None:
        """The item of that name, or the only one that it is the naive singular or plural of."""
        ref = self._refs.get(text)
        return self._variants.get(text) if ref is None else ref

    def line(self, number: int) -> str:
        """The recipe, from a list made once."""
        return self._lines[number]


class ShuffledNames(Names):
    """Every item is called by the name of another, every tag by that of another tag.

    World `w` is decided by the raw output of NumPy's PCG64 seeded with (0, w), a stream that NumPy keeps for ever.
    """

    def __init__(self, book: RecipeBook, world: int) -> None:
        super().__init__(book, world)
        self._real = real_names(book)
        raw = np.random.PCG64([0, world]).random_raw(len(book.ways))
        items, tags = raw[: book.size].argsort(kind="stable"), raw[book.size :].argsort(kind="stable")
        meant = np.empty_like(items)
        meant[items] = np.arange(book.size)
        self._shown: list[int] = [*items.tolist(), *(tags + book.size).tolist()]
        self._meant: list[int] = meant.tolist()

    def __reduce__(self) -> tuple[Any, ...]:
        return ShuffledNames, (self.book, self.world)

    def say(self, ref: int) -> str:
        """The name that this world gives it."""
        return self._real.spoken[self._shown[ref]]

    def find(self, text: str) -> int | None:
        """The item that goes by that name here."""
        shown = self._real.find(text)
        return None if shown is None else self._meant[shown]


class InventedNames(Names):
    """Every item and tag has a made-up word of three syllables, another one in each world.

    The word of a reference r spells (a r + b) modulo 70³ in syllables; world `w` draws a and b from the raw output of
    PCG64 seeded with (1, w). The map can be inverted, so no list of names is ever made.
    """

    def __init__(self, book: RecipeBook, world: int) -> None:
        super().__init__(book, world)
        raw = [int(value) for value in np.random.PCG64([1, world]).random_raw(2)]
        # Multiplying by a is one-to-one if a shares no prime with 70**3, whose primes are 2, 5 and 7.
        self._factor = next(a for a in range(raw[0] % _INVENTABLE, 2 * _INVENTABLE) if a % 2 and a % 5 and a % 7)
        self._shift = raw[1] % _INVENTABLE
        self._inverse: int = pow(self._factor, -1, _INVENTABLE)

    def __reduce__(self) -> tuple[Any, ...]:
        return InventedNames, (self.book, self.world)

    def say(self, ref: int) -> str:
        """The invented word."""
        rest, last = divmod((ref * self._factor + self._shift) % _INVENTABLE, _BASE)
        first, middle = divmod(rest, _BASE)
        return _SYLLABLES[first] + _SYLLABLES[middle] + _SYLLABLES[last]

    def find(self, text: str) -> int | None:
        """The item whose word this is, or its naive plural."""
        word = text.removesuffix("s")
        values = [_SYLLABLE_VALUES.get(word[place : place + 2]) for place in (0, 2, 4)]
        if len(word) != 6 or None in values:
            return None
        number = 0
        for value in values:
            number = number * _BASE + (value or 0)
        ref = (number - self._shift) * self._inverse % _INVENTABLE
        return ref if ref < self.book.size else None


@lru_cache(maxsize=8)
def real_names(book: RecipeBook) -> RealNames:
    """The real names of a book; made once."""
    return RealNames(book)


@lru_cache(maxsize=256)
def make_names(book: RecipeBook, worlds: Worlds, world: int) -> Names:
    """The names in a world: `world` is a seed, without meaning for the real one. The latest 256 are kept."""
    if worlds == "real":
        return real_names(book)
    return ShuffledNames(book, world) if worlds == "fictional" else InventedNames(book, world)


def _variants(refs: dict[str, int]) -> dict[str, int]:
    found: dict[str, set[int]] = {}
    for name, ref in refs.items():
        for variant in _number_forms(name):
            found.setdefault(variant, set()).add(ref)
    return {text: min(which) for text, which in found.items() if len(which) == 1 and text not in refs}


def _number_forms(name: str) -> Iterator[str]:
    if name.endswith("s") and not name.endswith("ss"):
        yield name[:-1]
        return
    yield name + "s"
    yield name + "es"
    if name.endswith("y"):
        yield name[:-1] + "ies"

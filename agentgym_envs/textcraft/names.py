"""Names for the items of a recipe book: the real ones, the real ones shuffled, or invented ones."""

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


class ItemNames(ABC):
    """A one-to-one naming of all items and tags of a recipe book; names are written with spaces."""

    def __init__(self, recipe_book: RecipeBook, world: int) -> None:
        self.recipe_book, self.world = recipe_book, world

    @abstractmethod
    def name_of(self, ref: int) -> str:
        """Return the name of an item or tag."""

    @abstractmethod
    def find(self, text: str) -> int | None:
        """Return the item of that name (lower case, single spaces), or None.

        An unambiguous singular or plural is accepted.
        """

    def line(self, number: int) -> str:
        """Write a recipe as its craft command, with the names of tags."""
        item, count, parts = self.recipe_book.recipes[number]
        name_of = self.name_of
        return f"craft {count} {name_of(item)} using " + ", ".join(
            [f"{amount} {name_of(ref)}" for ref, amount in parts]
        )

    def explain(self, tag: int) -> str:
        """Write a tag and all its members."""
        return f"{self.name_of(tag)}: {', '.join([self.name_of(member) for member in self.recipe_book.members[tag]])}"


class RealNames(ItemNames):
    """The names of the table."""

    def __init__(self, recipe_book: RecipeBook) -> None:
        super().__init__(recipe_book, 0)
        self.spoken = [name.replace("_", " ") for name in (*recipe_book.items, *recipe_book.tags)]
        self._refs = {name: ref for ref, name in enumerate(self.spoken[: recipe_book.size])}
        self._variants = _variants(self._refs)
        self._lines = [super(RealNames, self).line(number) for number in range(len(recipe_book.recipes))]

    def __reduce__(self) -> tuple[Any, ...]:
        return real_names, (self.recipe_book,)

    def name_of(self, ref: int) -> str:
        """Return the name in the table, with spaces."""
        return self.spoken[ref]

    def find(self, text: str) -> int | None:
        """Return the item of that name, or the only one whose naive singular or plural it is."""
        ref = self._refs.get(text)
        return self._variants.get(text) if ref is None else ref

    def line(self, number: int) -> str:
        """Return the recipe from a precomputed list."""
        return self._lines[number]


class ShuffledNames(ItemNames):
    """Shuffles the names of the items, and the names of the tags. A few keep their own name.

    World `w` is determined by the raw output of NumPy's PCG64 seeded with (0, w), a stream that NumPy guarantees.
    """

    def __init__(self, recipe_book: RecipeBook, world: int) -> None:
        super().__init__(recipe_book, world)
        self._real = real_names(recipe_book)
        raw = np.random.PCG64([0, world]).random_raw(len(recipe_book.recipes_for))
        items, tags = raw[: recipe_book.size].argsort(kind="stable"), raw[recipe_book.size :].argsort(kind="stable")
        meant = np.empty_like(items)
        meant[items] = np.arange(recipe_book.size)
        self._shown: list[int] = [*items.tolist(), *(tags + recipe_book.size).tolist()]
        self._meant: list[int] = meant.tolist()

    def __reduce__(self) -> tuple[Any, ...]:
        return ShuffledNames, (self.recipe_book, self.world)

    def name_of(self, ref: int) -> str:
        """Return the name in this world."""
        return self._real.spoken[self._shown[ref]]

    def find(self, text: str) -> int | None:
        """Return the item with that name in this world."""
        shown = self._real.find(text)
        return None if shown is None else self._meant[shown]


class InventedNames(ItemNames):
    """Gives every item and tag a made-up word of three syllables, which differs from world to world.

    The word of a reference r spells (a r + b) modulo 70³ in syllables. World `w` draws a and b from the raw output of
    PCG64 seeded with (1, w). The map is invertible, so no list of names is needed.
    """

    def __init__(self, recipe_book: RecipeBook, world: int) -> None:
        super().__init__(recipe_book, world)
        raw = [int(value) for value in np.random.PCG64([1, world]).random_raw(2)]
        # Multiplying by a is one-to-one if a shares no prime with 70**3, whose primes are 2, 5 and 7.
        self._factor = next(a for a in range(raw[0] % _INVENTABLE, 2 * _INVENTABLE) if a % 2 and a % 5 and a % 7)
        self._shift = raw[1] % _INVENTABLE
        self._inverse: int = pow(self._factor, -1, _INVENTABLE)

    def __reduce__(self) -> tuple[Any, ...]:
        return InventedNames, (self.recipe_book, self.world)

    def name_of(self, ref: int) -> str:
        """Return the invented word."""
        rest, last = divmod((ref * self._factor + self._shift) % _INVENTABLE, _BASE)
        first, middle = divmod(rest, _BASE)
        return _SYLLABLES[first] + _SYLLABLES[middle] + _SYLLABLES[last]

    def find(self, text: str) -> int | None:
        """Return the item with this word, or with its naive singular, as its name."""
        word = text.removesuffix("s")
        values = [_SYLLABLE_VALUES.get(word[start : start + 2]) for start in (0, 2, 4)]
        if len(word) != 6 or None in values:
            return None
        number = 0
        for value in values:
            number = number * _BASE + (value or 0)
        ref = (number - self._shift) * self._inverse % _INVENTABLE
        return ref if ref < self.recipe_book.size else None


@lru_cache(maxsize=8)
def real_names(recipe_book: RecipeBook) -> RealNames:
    """Return the real names of a recipe book; cached."""
    return RealNames(recipe_book)


@lru_cache(maxsize=256)
def make_names(recipe_book: RecipeBook, worlds: Worlds, world: int) -> ItemNames:
    """Return the names in a world; the real world ignores `world`. The latest 256 are cached."""
    if worlds == "real":
        return real_names(recipe_book)
    return ShuffledNames(recipe_book, world) if worlds == "fictional" else InventedNames(recipe_book, world)


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

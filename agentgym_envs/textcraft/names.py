"""Names for the items of a recipe book: the real ones, the real ones shuffled, or invented ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.seeding import pcg64
from agentgym_envs.textcraft.recipes import RecipeBook

Worlds = Literal["real", "fictional", "invented"]
WORLDS: tuple[Worlds, ...] = get_args(Worlds)

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]
_PAIRS = [first + second for first in _SYLLABLES for second in _SYLLABLES]
_SYLLABLE_VALUES = {syllable: value for value, syllable in enumerate(_SYLLABLES)}
_BASE = len(_SYLLABLES)
_INVENTABLE = _BASE**3
_ONE = np.array(1, np.uint64)  # NumPy takes arrays faster than scalars, also those without a dimension

Spoken = Sequence[str] | Mapping[int, str]
"""The names by reference."""


class _RecipeTexts(NamedTuple):
    """The recipes of a book, by number, with places for the names, which differ between worlds.

    `refs` are the item and its ingredients, in the order of the line. `described` has the item, the amount made, and
    the ingredients: reference, amount, and whether it is a tag. `tags` has the recipes that use tags.
    """

    lines: list[str]
    refs: list[tuple[int, ...]]
    described: list[tuple[int, int, list[tuple[int, int, bool]]]]
    tags: dict[int, list[int]]


class ItemNames(ABC):
    """A one-to-one naming of all items and tags of a recipe book; names are written with spaces."""

    spoken: Spoken

    def __init__(self, recipe_book: RecipeBook, world: int) -> None:
        self.recipe_book, self.world = recipe_book, world
        self._texts = _recipe_texts(recipe_book)

    @abstractmethod
    def find(self, text: str) -> int | None:
        """Return the item of that name (lower case, single spaces), or None.

        An unambiguous singular or plural is accepted.
        """

    def name_of(self, ref: int) -> str:
        """Return the name of an item or tag."""
        return self.spoken[ref]

    def lines(self, numbers: Sequence[int]) -> str:
        """Write recipes as craft commands, with the names of tags, one per line."""
        lines, refs_of = self._texts.lines, self._texts.refs
        names = self._speak([ref for number in numbers for ref in refs_of[number]])
        return "\n".join([lines[number] for number in numbers]) % tuple(names)

    def line(self, number: int) -> str:
        """Write a recipe as its craft command."""
        return self.lines((number,))

    def describe(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Return recipes as JSON: `item`, `count` and `ingredients`, lists of name, amount and whether it is a tag."""
        spoken, texts, described = self.spoken, self._texts.described, []
        for number in numbers:
            item, makes, parts = texts[number]
            ingredients = []
            for ref, amount, is_tag in parts:  # a comprehension would cost a call for each recipe
                ingredients.append([spoken[ref], amount, is_tag])
            described.append({"item": spoken[item], "count": makes, "ingredients": ingredients})
        return described

    def explain(self, tag: int) -> str:
        """Write a tag and all its members."""
        return f"{self.name_of(tag)}: {', '.join(self._speak(self.recipe_book.members[tag]))}"

    def tags(self, numbers: Sequence[int]) -> Iterable[int]:
        """Return the tags that recipes use, in the order of first use."""
        tags = self._texts.tags
        return dict.fromkeys([tag for number in numbers if number in tags for tag in tags[number]])

    def _speak(self, refs: Sequence[int]) -> list[str]:
        """Return several names."""
        spoken = self.spoken
        return [spoken[ref] for ref in refs]


class RealNames(ItemNames):
    """The names of the table."""

    def __init__(self, recipe_book: RecipeBook) -> None:
        super().__init__(recipe_book, 0)
        self.spoken: list[str] = [name.replace("_", " ") for name in (*recipe_book.items, *recipe_book.tags)]
        self._refs = {name: ref for ref, name in enumerate(self.spoken[: recipe_book.size])}
        self._variants = _variants(self._refs)
        self._lines = super().lines(range(len(recipe_book.recipes))).split("\n")
        self._indexes = np.arange(len(self.spoken), dtype=np.uint64)
        self._index_bits = np.array((1 << len(self.spoken).bit_length()) - 1, np.uint64)
        self._largest_index = int(self._index_bits)
        self._number_bits = np.array(~self._index_bits)
        self._indexes[recipe_book.size :] |= np.uint64(1 << 63)

    def __reduce__(self) -> tuple[Any, ...]:
        return real_names, (self.recipe_book,)

    def find(self, text: str) -> int | None:
        """Return the item of that name, or the only one whose naive singular or plural it is."""
        ref = self._refs.get(text)
        return self._variants.get(text) if ref is None else ref

    def lines(self, numbers: Sequence[int]) -> str:
        """Return the recipes from a precomputed list."""
        return "\n".join([self._lines[number] for number in numbers])

    def shuffle(self, numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Sort the items by their random numbers, and the tags by theirs, like two stable `argsort`s.

        NumPy sorts numbers several times faster than indexes. So the low bits of each number are replaced by its index,
        and the highest bit is set for tags. If the other bits of two numbers may be equal, `argsort` decides.
        """
        keys = numbers >> _ONE
        keys &= self._number_bits
        keys |= self._indexes
        keys.sort()
        gaps = keys[1:] - keys[:-1]
        if gaps.item(gaps.argmin()) <= self._largest_index:
            size = self.recipe_book.size
            items, tags = numbers[:size].argsort(kind="stable"), numbers[size:].argsort(kind="stable") + size
            return np.concatenate((items, tags)).astype(np.int64)
        keys &= self._index_bits
        return keys.view(np.int64)


class ShuffledNames(ItemNames):
    """Shuffles the names of the items, and the names of the tags. A few keep their own name.

    World `w` is determined by the raw output of NumPy's PCG64 seeded with (0, w), a stream that NumPy guarantees.
    """

    spoken: _OtherWords

    def __init__(self, recipe_book: RecipeBook, world: int) -> None:
        super().__init__(recipe_book, world)
        self._real = real_names(recipe_book)
        self._order = self._real.shuffle(_world_stream(0, world).random_raw(len(recipe_book.recipes_for)))
        self.spoken = _OtherWords(self._real.spoken, self._order)

    def __reduce__(self) -> tuple[Any, ...]:
        return ShuffledNames, (self.recipe_book, self.world)

    def _speak(self, refs: Sequence[int]) -> list[str]:
        return self.spoken.learn(refs)

    def find(self, text: str) -> int | None:
        """Return the item with that name in this world."""
        shown = self._real.find(text)
        return None if shown is None else self._meant[shown]

    @cached_property
    def _meant(self) -> list[int]:
        """The item that the name of each item means in this world."""
        return [int(ref) for ref in self._order[: self.recipe_book.size].argsort().tolist()]


class InventedNames(ItemNames):
    """Gives every item and tag a made-up word of three syllables, which differs from world to world.

    The word of a reference r spells (a r + b) modulo 70³ in syllables. World `w` draws a and b from the raw output of
    PCG64 seeded with (1, w). The map is invertible, so no list of names is needed.
    """

    def __init__(self, recipe_book: RecipeBook, world: int) -> None:
        super().__init__(recipe_book, world)
        stream = _world_stream(1, world)
        factor, shift = stream.random_raw() % _INVENTABLE, stream.random_raw() % _INVENTABLE
        while not (factor % 2 and factor % 5 and factor % 7):
            factor += 1  # multiplying is one-to-one if the factor shares no prime with 70**3, whose primes are 2, 5, 7
        self._factor, self._shift = factor, shift
        self.spoken = _Words(factor, shift)

    def __reduce__(self) -> tuple[Any, ...]:
        return InventedNames, (self.recipe_book, self.world)

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

    @cached_property
    def _inverse(self) -> int:
        return int(pow(self._factor, -1, _INVENTABLE))


class _OtherWords(dict[int, str]):
    """The shuffled words of a world by reference. Few of them are needed, so they are looked up on demand."""

    __slots__ = ("_order", "_words")

    def __init__(self, words: Sequence[str], order: NDArray[np.int64]) -> None:
        self._words, self._order = words, order.data  # a memoryview is several times faster than an array here

    def learn(self, refs: Sequence[int]) -> list[str]:
        """Look up several words: faster than one at a time."""
        words, order, found = self._words, self._order, []
        for ref in refs:
            self[ref] = word = words[order[ref]]
            found.append(word)
        return found

    def __missing__(self, ref: int) -> str:
        self[ref] = word = self._words[self._order[ref]]
        return word


class _Words(dict[int, str]):
    """The invented words of a world by reference. Few of them are needed, so they are made on demand."""

    __slots__ = ("_factor", "_shift")

    def __init__(self, factor: int, shift: int) -> None:
        self._factor, self._shift = factor, shift

    def __missing__(self, ref: int) -> str:
        number = (ref * self._factor + self._shift) % _INVENTABLE
        self[ref] = word = _PAIRS[number // _BASE] + _SYLLABLES[number % _BASE]
        return word


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


@lru_cache(maxsize=8)
def _recipe_texts(recipe_book: RecipeBook) -> _RecipeTexts:
    texts = _RecipeTexts([], [], [], {})
    for number, (item, makes, parts) in enumerate(recipe_book.recipes):
        texts.lines.append(f"craft {makes} %s using " + ", ".join([f"{amount} %s" for _, amount in parts]))
        texts.refs.append((item, *[ref for ref, _ in parts]))
        texts.described.append((item, makes, [(ref, amount, ref >= recipe_book.size) for ref, amount in parts]))
        if tags := [ref for ref, _ in parts if ref >= recipe_book.size]:
            texts.tags[number] = tags
    return texts


def _world_stream(kind: int, world: int) -> np.random.PCG64:
    """Return PCG64 seeded with (kind, world). NumPy reads a number as its words of 32 bits, faster than a list."""
    return pcg64(kind + (world << 32))


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

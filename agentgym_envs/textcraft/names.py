"""Names for the items of a recipe book: the real ones, the real ones shuffled, or invented ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
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
_ONE = np.uint64(1)

Spoken = Sequence[str] | Mapping[int, str]
"""The names by reference."""


class _RecipeText(NamedTuple):
    """A recipe with places for names.

    `refs` are the item and its ingredients. `parts` has the reference of each ingredient, how many are needed, and
    whether it is a tag; `tags` are the references of those that are.
    """

    line: str
    refs: tuple[int, ...]
    makes: int
    parts: tuple[tuple[int, int, bool], ...]
    tags: tuple[int, ...]


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
        texts = [self._texts[number] for number in numbers]
        refs = chain.from_iterable([text.refs for text in texts])
        return "\n".join([text.line for text in texts]) % tuple(map(self.spoken.__getitem__, refs))

    def line(self, number: int) -> str:
        """Write a recipe as its craft command."""
        return self.lines((number,))

    def describe(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Return recipes as JSON: `item`, `count` and `ingredients`, lists of name, amount and whether it is a tag."""
        spoken = self.spoken
        return [
            {"item": spoken[refs[0]], "count": makes, "ingredients": [[spoken[ref], n, kind] for ref, n, kind in parts]}
            for _, refs, makes, parts, _ in [self._texts[number] for number in numbers]
        ]

    def explain(self, tag: int) -> str:
        """Write a tag and all its members."""
        return f"{self.name_of(tag)}: {', '.join(map(self.spoken.__getitem__, self.recipe_book.members[tag]))}"

    def tags(self, numbers: Sequence[int]) -> Iterable[int]:
        """Return the tags that recipes use, in the order of first use."""
        return dict.fromkeys(chain.from_iterable([self._texts[number].tags for number in numbers]))


class RealNames(ItemNames):
    """The names of the table."""

    def __init__(self, recipe_book: RecipeBook) -> None:
        super().__init__(recipe_book, 0)
        self.spoken: list[str] = [name.replace("_", " ") for name in (*recipe_book.items, *recipe_book.tags)]
        self._refs = {name: ref for ref, name in enumerate(self.spoken[: recipe_book.size])}
        self._variants = _variants(self._refs)
        self._lines = super().lines(range(len(recipe_book.recipes))).split("\n")
        self._indexes = np.arange(len(self.spoken), dtype=np.uint64)
        self._index_bits = np.uint64((1 << len(self.spoken).bit_length()) - 1)
        self._number_bits = ~self._index_bits
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
        if np.minimum.reduce(keys[1:] - keys[:-1]) <= self._index_bits:
            size = self.recipe_book.size
            items, tags = numbers[:size].argsort(kind="stable"), numbers[size:].argsort(kind="stable") + size
            return np.concatenate((items, tags)).astype(np.int64)
        keys &= self._index_bits
        return keys.view(np.int64)


class ShuffledNames(ItemNames):
    """Shuffles the names of the items, and the names of the tags. A few keep their own name.

    World `w` is determined by the raw output of NumPy's PCG64 seeded with (0, w), a stream that NumPy guarantees.
    """

    def __init__(self, recipe_book: RecipeBook, world: int) -> None:
        super().__init__(recipe_book, world)
        self._real = real_names(recipe_book)
        self._order = self._real.shuffle(_world_stream(0, world).random_raw(len(recipe_book.recipes_for)))
        self.spoken = _OtherWords(self._real.spoken, self._order)

    def __reduce__(self) -> tuple[Any, ...]:
        return ShuffledNames, (self.recipe_book, self.world)

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
    """The shuffled words of a world by reference; each is found when it is first looked up, as few are."""

    __slots__ = ("_index_of", "_words")

    def __init__(self, words: Sequence[str], order: NDArray[np.int64]) -> None:
        self._words, self._index_of = words, order.item

    def __missing__(self, ref: int) -> str:
        self[ref] = word = self._words[self._index_of(ref)]
        return word


class _Words(dict[int, str]):
    """The invented words of a world by reference; each is made when it is first looked up."""

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
def _recipe_texts(recipe_book: RecipeBook) -> list[_RecipeText]:
    """Write the recipes of a book without their names, which differ between worlds."""
    texts = []
    for item, makes, parts in recipe_book.recipes:
        line = f"craft {makes} %s using " + ", ".join([f"{amount} %s" for _, amount in parts])
        described = tuple((ref, amount, ref >= recipe_book.size) for ref, amount in parts)
        refs, tags = [ref for ref, _ in parts], tuple(ref for ref, _, is_tag in described if is_tag)
        texts.append(_RecipeText(line, (item, *refs), makes, described, tags))
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

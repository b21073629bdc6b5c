"""Who of a team knows which recipe and can take which item, so that nobody can do without the others.

The pieces of a task are the items under its goal. Holding a piece that is crafted is to know every recipe for it;
holding a piece that is not is to be the only one that can take it. A cut is a set of pieces without which the goal
cannot be crafted. Three things hold for every deal to two or more agents, and `make_allocation` deals until they do:

1. The agent that must craft the goal holds no recipe for it, so it has to be told, or to guess.
2. What that agent can take does not suffice for the goal by any recipes, so it has to be given something.
3. Each of the others holds a whole cut, so the goal cannot be had without what it knows and takes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from agentgym_envs.errors import UsageError
from agentgym_envs.textcraft.recipes import RecipeBook

_T = TypeVar("_T")
_SHUFFLES = 4
"""How many orders of the pieces are tried to find many disjoint cuts."""


class Holdings(NamedTuple):
    """What one agent holds: numbers of recipes, and the base items that it alone can take."""

    recipes: tuple[int, ...]
    takes: tuple[int, ...]


class Allocation(NamedTuple):
    """A hand for each agent, and the place of the agent that must craft the goal."""

    crafter: int
    hands: tuple[Holdings, ...]

    def knower(self, number: int) -> int:
        """The place of the agent that knows a recipe."""
        return next(place for place, hand in enumerate(self.hands) if number in hand.recipes)

    def taker(self, ref: int) -> int:
        """The place of the agent that can take a base item."""
        return next(place for place, hand in enumerate(self.hands) if ref in hand.takes)


def can_make(book: RecipeBook, goal: int, recipes: Collection[int], bases: Collection[int]) -> bool:
    """Whether the goal can be crafted by these recipes out of these base items, in any amounts."""
    have, left, grown = set(bases), set(recipes), True
    while grown and goal not in have:
        ready = {n for n in left if all(_has(book, have, ref) for ref, _ in book.recipes[n].parts)}
        have.update(book.recipes[n].item for n in ready)
        left -= ready
        grown = bool(ready)
    return goal in have


def is_blocking_set(book: RecipeBook, goal: int, pieces: Collection[int]) -> bool:
    """Whether the goal cannot be crafted without these pieces."""
    recipes = [n for n in book.needed(goal) if book.recipes[n].item not in pieces]
    return not can_make(book, goal, recipes, base_pieces(book, goal) - set(pieces))


@lru_cache(maxsize=1024)
def base_pieces(book: RecipeBook, goal: int) -> frozenset[int]:
    """The base items that the recipes under a goal use."""
    parts = {ref for number in book.needed(goal) for ref, _ in book.recipes[number].parts}
    items = {member for ref in parts for member in book.members.get(ref, (ref,))}
    return frozenset(ref for ref in items if book.base[ref])


@lru_cache(maxsize=1024)
def find_blocking_sets(book: RecipeBook, goal: int) -> tuple[tuple[int, ...], ...]:
    """Disjoint cuts of a goal, none with a piece too many: the goal's own recipes first, then as many as were found."""
    made = {book.recipes[number].item for number in book.needed(goal)}
    pieces = sorted((made | base_pieces(book, goal)) - {goal})
    found = [_split(book, goal, _shuffled(pieces, 2, book.goals.index(goal), n)) for n in range(_SHUFFLES)]
    return (goal,), *max(found, key=len)


def max_agents(book: RecipeBook, goal: int) -> int:
    """How many agents a goal can be dealt to: each but the one that crafts it holds a cut."""
    return len(find_blocking_sets(book, goal)) + 1


@lru_cache(maxsize=2048)
def make_allocation(book: RecipeBook, goal: int, agents: int, world: int) -> Allocation:
    """The deal of a task: the same for ever, another one in each world. Raises UsageError for too many agents.

    Shuffles come from the raw output of NumPy's PCG64, a stream that NumPy keeps for ever.
    """
    if not 2 <= agents <= max_agents(book, goal):
        raise UsageError(
            f"{book.items[goal]!r} cannot be dealt to {agents} agents, but to 2 to {max_agents(book, goal)}"
        )
    seed = (3, agents, book.goals.index(goal), world)
    crafter, *helpers = _shuffled(range(agents), *seed, 0)
    own, *cuts = find_blocking_sets(book, goal)
    chosen = [own, *_shuffled(cuts, *seed, 1)[: agents - 2]]
    held: list[set[int]] = [set() for _ in range(agents)]
    for helper, cut in zip(helpers, chosen, strict=True):
        held[helper].update(cut)
    made = {book.recipes[number].item for number in book.needed(goal)}
    rest = sorted((made | base_pieces(book, goal)).difference(*held))
    for piece in _shuffled(rest, *seed, 2):
        fewest = sorted(range(agents), key=lambda place: len(held[place]))
        place = next(p for p in fewest if p != crafter or not _suffices(book, goal, {*held[p], piece}))
        held[place].add(piece)
    return Allocation(crafter, tuple(_hand(book, goal, pieces) for pieces in held))


def add_distractors(book: RecipeBook, deal: Allocation, shown: Sequence[int]) -> Allocation:
    """The deal with every recipe of `shown` in a hand, in that order, and every base item that those recipes use.

    What no hand held goes to the shortest. It cannot help: what makes an item under the goal was dealt already.
    """
    recipes, takes = [set(hand.recipes) for hand in deal.hands], [list(hand.takes) for hand in deal.hands]
    known, taken = set().union(*recipes), {ref for held in takes for ref in held}
    for number in shown:
        if number not in known:
            min(recipes, key=len).add(number)
        for part, _ in book.recipes[number].parts:
            for ref in book.members.get(part, (part,)):
                if book.base[ref] and ref not in taken:
                    taken.add(ref)
                    min(takes, key=len).append(ref)
    hands = zip(recipes, takes, strict=True)
    return Allocation(
        deal.crafter, tuple(Holdings(tuple(n for n in shown if n in known), tuple(sorted(t))) for known, t in hands)
    )


def _has(book: RecipeBook, have: Collection[int], ref: int) -> bool:
    return ref in have or any(member in have for member in book.members.get(ref, ()))


def _suffices(book: RecipeBook, goal: int, pieces: set[int]) -> bool:
    return can_make(book, goal, book.needed(goal), [ref for ref in pieces if book.base[ref]])


def _hand(book: RecipeBook, goal: int, pieces: set[int]) -> Holdings:
    recipes = tuple(number for number in book.needed(goal) if book.recipes[number].item in pieces)
    return Holdings(recipes, tuple(sorted(ref for ref in pieces if book.base[ref])))


def _split(book: RecipeBook, goal: int, pieces: list[int]) -> list[tuple[int, ...]]:
    """Disjoint cuts out of the pieces: as long as what is left is a cut, take away what it can spare."""
    cuts = []
    while pieces and is_blocking_set(book, goal, pieces):
        cut = list(pieces)
        for piece in pieces:
            smaller = [other for other in cut if other != piece]
            if is_blocking_set(book, goal, smaller):
                cut = smaller
        cuts.append(tuple(cut))
        pieces = [piece for piece in pieces if piece not in cut]
    return cuts


def _shuffled(things: Sequence[_T], *seed: int) -> list[_T]:
    keys = np.random.PCG64(seed).random_raw(len(things) + 1)[1:]
    return [things[place] for place in keys.argsort(kind="stable").tolist()]

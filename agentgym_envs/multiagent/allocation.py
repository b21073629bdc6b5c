"""The allocation of recipes and items to the agents of a team, such that every agent is needed.

The pieces of a task are the items under its goal. The holder of a crafted piece knows all recipes for it; the holder of
a base piece is the only agent that can take it. A blocking set is a set of pieces without which the goal cannot be
crafted. Every allocation to two or more agents has three properties:

1. The agent that must craft the goal (the crafter) holds no recipe for it: it must get the recipe, or guess.
2. The items that the crafter can take do not suffice for the goal by any recipes: it must be given something.
3. Each other agent holds a whole blocking set: the goal cannot be reached without its recipes and items.
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
"""The number of orders of the pieces in which disjoint blocking sets are searched."""


class Holdings(NamedTuple):
    """The holdings of one agent: recipe numbers, and the base items that only it can take."""

    recipes: tuple[int, ...]
    takes: tuple[int, ...]


class Allocation(NamedTuple):
    """The holdings of each agent, and the index of the agent that must craft the goal."""

    crafter: int
    holdings: tuple[Holdings, ...]

    def recipe_holder(self, number: int) -> int:
        """The index of the agent that knows a recipe."""
        return next(index for index, own in enumerate(self.holdings) if number in own.recipes)

    def item_holder(self, ref: int) -> int:
        """The index of the agent that can take a base item."""
        return next(index for index, own in enumerate(self.holdings) if ref in own.takes)


def can_make(book: RecipeBook, goal: int, recipes: Collection[int], bases: Collection[int]) -> bool:
    """True if these recipes and base items, in any amounts, suffice for the goal."""
    have, left, progress = set(bases), set(recipes), True
    while progress and goal not in have:
        ready = {n for n in left if all(_has(book, have, ref) for ref, _ in book.recipes[n].parts)}
        have.update(book.recipes[n].item for n in ready)
        left -= ready
        progress = bool(ready)
    return goal in have


def is_blocking_set(book: RecipeBook, goal: int, pieces: Collection[int]) -> bool:
    """True if the goal cannot be crafted without these pieces."""
    recipes = [n for n in book.needed(goal) if book.recipes[n].item not in pieces]
    return not can_make(book, goal, recipes, base_pieces(book, goal) - set(pieces))


@lru_cache(maxsize=1024)
def base_pieces(book: RecipeBook, goal: int) -> frozenset[int]:
    """The base items used by the recipes under a goal."""
    parts = {ref for number in book.needed(goal) for ref, _ in book.recipes[number].parts}
    items = {member for ref in parts for member in book.members.get(ref, (ref,))}
    return frozenset(ref for ref in items if book.base[ref])


@lru_cache(maxsize=1024)
def find_blocking_sets(book: RecipeBook, goal: int) -> tuple[tuple[int, ...], ...]:
    """Disjoint minimal blocking sets of a goal: first the goal's own recipes, then all others that were found."""
    made = {book.recipes[number].item for number in book.needed(goal)}
    pieces = sorted((made | base_pieces(book, goal)) - {goal})
    found = [_split(book, goal, _shuffled(pieces, 2, book.goals.index(goal), n)) for n in range(_SHUFFLES)]
    return (goal,), *max(found, key=len)


def max_agents(book: RecipeBook, goal: int) -> int:
    """The maximum team size for a goal: each agent but the crafter needs a blocking set."""
    return len(find_blocking_sets(book, goal)) + 1


@lru_cache(maxsize=2048)
def make_allocation(book: RecipeBook, goal: int, agents: int, world: int) -> Allocation:
    """The allocation of a task: fixed forever, and different in each world. Raises UsageError for too many agents.

    Shuffles use the raw output of NumPy's PCG64, which NumPy guarantees to keep stable.
    """
    if not 2 <= agents <= max_agents(book, goal):
        raise UsageError(
            f"{book.items[goal]!r} cannot be allocated to {agents} agents, only to 2 to {max_agents(book, goal)}"
        )
    seed = (3, agents, book.goals.index(goal), world)
    crafter, *helpers = _shuffled(range(agents), *seed, 0)
    own, *others = find_blocking_sets(book, goal)
    chosen = [own, *_shuffled(others, *seed, 1)[: agents - 2]]
    held: list[set[int]] = [set() for _ in range(agents)]
    for helper, blocking in zip(helpers, chosen, strict=True):
        held[helper].update(blocking)
    made = {book.recipes[number].item for number in book.needed(goal)}
    rest = sorted((made | base_pieces(book, goal)).difference(*held))
    for piece in _shuffled(rest, *seed, 2):
        fewest = sorted(range(agents), key=lambda agent: len(held[agent]))
        receiver = next(a for a in fewest if a != crafter or not _suffices(book, goal, {*held[a], piece}))
        held[receiver].add(piece)
    return Allocation(crafter, tuple(_holdings(book, goal, pieces) for pieces in held))


def add_distractors(book: RecipeBook, allocation: Allocation, shown: Sequence[int]) -> Allocation:
    """Allocate all recipes of `shown`, in that order, and all base items that they use.

    Each new recipe or item goes to the agent that has the fewest. It does not help to reach the goal, since everything
    that makes an item under the goal is allocated already.
    """
    recipes = [set(own.recipes) for own in allocation.holdings]
    takes = [list(own.takes) for own in allocation.holdings]
    known, taken = set().union(*recipes), {ref for held in takes for ref in held}
    for number in shown:
        if number not in known:
            min(recipes, key=len).add(number)
        for part, _ in book.recipes[number].parts:
            for ref in book.members.get(part, (part,)):
                if book.base[ref] and ref not in taken:
                    taken.add(ref)
                    min(takes, key=len).append(ref)
    pairs = zip(recipes, takes, strict=True)
    holdings = tuple(Holdings(tuple(n for n in shown if n in known), tuple(sorted(own))) for known, own in pairs)
    return Allocation(allocation.crafter, holdings)


def _has(book: RecipeBook, have: Collection[int], ref: int) -> bool:
    return ref in have or any(member in have for member in book.members.get(ref, ()))


def _suffices(book: RecipeBook, goal: int, pieces: set[int]) -> bool:
    return can_make(book, goal, book.needed(goal), [ref for ref in pieces if book.base[ref]])


def _holdings(book: RecipeBook, goal: int, pieces: set[int]) -> Holdings:
    recipes = tuple(number for number in book.needed(goal) if book.recipes[number].item in pieces)
    return Holdings(recipes, tuple(sorted(ref for ref in pieces if book.base[ref])))


def _split(book: RecipeBook, goal: int, pieces: list[int]) -> list[tuple[int, ...]]:
    """Split the pieces into disjoint blocking sets, each reduced to a minimal one."""
    found = []
    while pieces and is_blocking_set(book, goal, pieces):
        blocking = list(pieces)
        for piece in pieces:
            smaller = [other for other in blocking if other != piece]
            if is_blocking_set(book, goal, smaller):
                blocking = smaller
        found.append(tuple(blocking))
        pieces = [piece for piece in pieces if piece not in blocking]
    return found


def _shuffled(items: Sequence[_T], *seed: int) -> list[_T]:
    keys = np.random.PCG64(seed).random_raw(len(items) + 1)[1:]
    return [items[index] for index in keys.argsort(kind="stable").tolist()]

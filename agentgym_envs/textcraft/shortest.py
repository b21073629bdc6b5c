"""Shortest plans with a proof: branch and bound over recipes and members of tags.

A plan is fixed by how often each recipe is used and how the demand for each tag is split between its members, as the
recipes have no cycles. Refs are decided from products to ingredients, so the demand for a ref is known when its turn
comes. The bound is the oracle's plan; a branch ends as soon as it cannot be shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from agentgym_envs.textcraft.oracle import CraftPlan, make_plan
from agentgym_envs.textcraft.recipes import MAX_AMOUNT, RecipeBook

MAX_BRANCHES = 4_000
"""Branches after which the search gives up its proof. TextCraft's own goals need a few hundred at most."""


class ShortestCraftPlan(NamedTuple):
    """A plan, and true if no plan is shorter."""

    plan: CraftPlan
    proven: bool


def shortest_plan(
    recipe_book: RecipeBook, goal: int, inventory: Mapping[int, int], max_branches: int = MAX_BRANCHES
) -> ShortestCraftPlan:
    """Search for the shortest plan that crafts `goal` once. It is unproven after `max_branches` branches."""
    search = _Search(recipe_book, inventory, make_plan(recipe_book, goal, inventory), max_branches)
    try:
        search.run(_Partial({goal: inventory.get(goal, 0) + 1}, 0, ()))
    except _TooManyBranches:
        return ShortestCraftPlan(search.best, False)
    return ShortestCraftPlan(search.best, not _is_ambiguous(recipe_book))


class _TooManyBranches(Exception):
    """Raised when the budget of branches is spent."""


class _Partial(NamedTuple):
    """A plan so far: the demand for undecided refs, the turns of the decided ones, and the decisions.

    A decision is a ref and its amount to get, its times per recipe number, or its shares per member.
    """

    demand: dict[int, int]
    turns: int
    decisions: tuple[Any, ...]


class _Search:
    """Depth-first search for a plan that is shorter than the best one so far."""

    def __init__(self, recipe_book: RecipeBook, inventory: Mapping[int, int], best: CraftPlan, budget: int) -> None:
        self.recipe_book, self.inventory, self.best, self.budget = recipe_book, inventory, best, budget
        self.turns = len(best)

    def run(self, partial: _Partial) -> None:
        """Decide the remaining refs in all ways that may give a shorter plan. Raises _TooManyBranches."""
        self.budget -= 1
        if self.budget < 0:
            raise _TooManyBranches
        demand = {ref: amount for ref, amount in partial.demand.items() if amount > self._held(ref)}
        if partial.turns + sum(self._least_turns(ref, amount) for ref, amount in demand.items()) >= self.turns:
            return
        if not demand:
            self.best, self.turns = self._write(partial.decisions), partial.turns
            return
        ref = max(demand, key=self.recipe_book.order.__getitem__)
        amount = demand.pop(ref)
        for child in self._decide(ref, amount, _Partial(demand, partial.turns, partial.decisions), partial.demand):
            self.run(child)

    def _decide(self, ref: int, amount: int, rest: _Partial, before: Mapping[int, int]) -> Iterator[_Partial]:
        """Yield the plans after a decision on one ref. `before` has the demands that the inventory meets, too."""
        demand, turns, decisions = rest
        demand = {other: wanted for other, wanted in before.items() if other != ref} | demand
        if ref >= self.recipe_book.size:
            for shares in self._splits(ref, amount, demand):
                yield _Partial(_plus(demand, shares), turns, (*decisions, (ref, shares)))
            return
        short = amount - self._held(ref)
        if self.recipe_book.base[ref]:
            yield _Partial(demand, turns - (-short // MAX_AMOUNT), (*decisions, (ref, short)))
            return
        for times in _covers(
            short, [(n, self.recipe_book.recipes[n].makes) for n in self.recipe_book.recipes_for[ref]]
        ):
            wanted = dict(demand)
            for number, count in times.items():
                wanted = _plus(wanted, {part: n * count for part, n in self.recipe_book.recipes[number].parts})
            yield _Partial(wanted, turns + sum(times.values()), (*decisions, (ref, times)))

    def _held(self, ref: int) -> int:
        return 0 if ref >= self.recipe_book.size else self.inventory.get(ref, 0)

    def _least_turns(self, ref: int, amount: int) -> int:
        """The turns that this ref itself needs, without its ingredients."""
        if ref >= self.recipe_book.size:
            return 0
        if self.recipe_book.base[ref]:
            return -(-(amount - self._held(ref)) // MAX_AMOUNT)
        return -(-(amount - self._held(ref)) // _most_made(self.recipe_book)[ref])

    def _splits(self, tag: int, amount: int, demand: Mapping[int, int]) -> Iterator[dict[int, int]]:
        """Yield the ways to split the demand for a tag between its members, those that use the inventory first."""
        members = self._members(tag, demand)
        spare = {m: max(0, self._held(m) - demand.get(m, 0)) for m in members}
        yield from _shares(amount, sorted(members, key=lambda m: -spare[m]), spare)

    def _members(self, tag: int, demand: Mapping[int, int]) -> list[int]:
        """The members of a tag, without those that differ from an earlier one only in the names of untouched items."""
        touched = {ref for ref, held in self.inventory.items() if held}
        for ref in demand:
            touched |= _under(self.recipe_book, ref)
        return list({_shape(self.recipe_book, m, touched): m for m in reversed(self.recipe_book.members[tag])}.values())

    def _write(self, decisions: tuple[Any, ...]) -> CraftPlan:
        plan = CraftPlan()
        for ref, choice in decisions:
            if ref >= self.recipe_book.size:
                plan.stand_ins[ref] = choice
            elif self.recipe_book.base[ref]:
                plan.gets[ref] = choice
            else:
                plan.crafts += [(self.recipe_book.recipes[number], times) for number, times in choice.items()]
        return plan


def _plus(demand: Mapping[int, int], more: Mapping[int, int]) -> dict[int, int]:
    total = dict(demand)
    for ref, amount in more.items():
        total[ref] = total.get(ref, 0) + amount
    return total


def _covers(short: int, recipes: list[tuple[int, int]]) -> Iterator[dict[int, int]]:
    """Yield the times per recipe that make enough, and would not without any one of the crafts."""
    (number, makes), rest = recipes[0], recipes[1:]
    most = -(-short // makes)
    for times in range(most, -1 if rest else most - 1, -1):
        left = short - times * makes
        used = {number: times} if times else {}
        if left <= 0:
            yield used
        elif rest:
            yield from (used | others for others in _covers(left, rest))


def _shares(amount: int, members: list[int], spare: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """Yield the ways to write `amount` as a sum over members. The first share tried is what the inventory spares."""
    member, rest = members[0], members[1:]
    if not rest:
        yield {member: amount} if amount else {}
        return
    first = min(amount, spare[member])
    for share in [first, *(other for other in range(amount, -1, -1) if other != first)]:
        used = {member: share} if share else {}
        yield from (used | others for others in _shares(amount - share, rest, spare))


@lru_cache(maxsize=4096)
def _under(recipe_book: RecipeBook, ref: int) -> frozenset[int]:
    """All refs that a ref can be made of, and the ref."""
    found = {ref}
    parts = {part for n in recipe_book.recipes_for[ref] for part, _ in recipe_book.recipes[n].parts}
    for part in parts | set(recipe_book.members.get(ref, ())):
        found |= _under(recipe_book, part)
    return frozenset(found)


def _shape(recipe_book: RecipeBook, ref: int, touched: set[int]) -> Any:
    """A value that is equal for members of a tag whose recipes differ only in the names of untouched items."""
    if touched.isdisjoint(_under(recipe_book, ref)):
        return _untouched_shape(recipe_book, ref)
    return ref, recipe_book.order[ref]


@lru_cache(maxsize=4096)
def _untouched_shape(recipe_book: RecipeBook, ref: int) -> str:
    """The recipes under a ref, with items numbered in the order in which they occur."""
    numbers: dict[int, int] = {}

    def write(item: int) -> str:
        if item in numbers:
            return str(numbers[item])
        numbers[item] = len(numbers)
        recipes = (recipe_book.recipes[n] for n in recipe_book.recipes_for[item] if item < recipe_book.size)
        lines = [f"{r.makes}=" + "+".join(f"{n}*{write(part)}" for part, n in r.parts) for r in recipes]
        members = ",".join(map(write, recipe_book.members.get(item, ())))
        return f"{numbers[item]}({';'.join(lines)}|{members})"

    return write(ref)


@lru_cache(maxsize=8)
def _most_made(recipe_book: RecipeBook) -> list[int]:
    """The largest amount that one craft makes of each item."""
    made = [1] * recipe_book.size
    for recipe in recipe_book.recipes:
        made[recipe.item] = max(made[recipe.item], recipe.makes)
    return made


@lru_cache(maxsize=8)
def _is_ambiguous(recipe_book: RecipeBook) -> bool:
    """True if the same ingredients may fit two recipes that make different amounts, so that a craft may surprise."""
    seen: dict[tuple[int, Any], int] = {}
    for recipe in recipe_book.recipes:
        totals: dict[int, int] = {}
        for part, amount in recipe.parts:
            kind = part if part >= recipe_book.size or recipe_book.tag_of[part] < 0 else recipe_book.tag_of[part]
            totals[kind] = totals.get(kind, 0) + amount
        key = recipe.item, tuple(sorted(totals.items()))
        if seen.setdefault(key, recipe.makes) != recipe.makes:
            return True
    return False

"""How to craft a goal from what is carried: few commands, found without trying them on the environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heappop, heappush

from agentgym_envs.textcraft.recipes import MAX_AMOUNT, Recipe, RecipeBook

Choices = Mapping[int, int]
"""For an item, the recipe to make it by; for a tag, the member to make for it."""


@dataclass(slots=True)
class Plan:
    """What to get, then what to craft how often, products first; and which items stand in for each tag."""

    gets: dict[int, int] = field(default_factory=dict)
    crafts: list[tuple[Recipe, int]] = field(default_factory=list)
    stand_ins: dict[int, dict[int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(-(-amount // MAX_AMOUNT) for amount in self.gets.values()) + sum(n for _, n in self.crafts)


def make_plan(book: RecipeBook, goal: int, inventory: Mapping[int, int]) -> Plan:
    """A plan that crafts `goal` once, starting from `inventory`.

    With the ways to make things fixed, the plan is the shortest: demand is summed up from the goal down to the base
    items, so nothing is crafted twice that could be crafted once. The ways start from the cheapest by a static
    estimate and are then exchanged one at a time as long as the plan becomes shorter.
    """
    choices: dict[int, int] = {}
    best = _explode(book, goal, inventory, choices)
    improved = True
    while improved:
        improved = False
        for ref, option in _alternatives(book, best, choices):
            trial = _explode(book, goal, inventory, {**choices, ref: option})
            if len(trial) < len(best):
                best, improved = trial, True
                choices[ref] = option
    return best


def commands(plan: Plan, say: Callable[[int], str]) -> list[str]:
    """The plan as commands, in the names of a world."""
    lines = [f"get {amount} {say(ref)}" for ref, total in plan.gets.items() for amount in _portions(total)]
    pools = {tag: dict(members) for tag, members in plan.stand_ins.items()}
    for recipe, times in reversed(plan.crafts):
        for _ in range(times):
            parts: dict[int, int] = {}
            for ref, amount in recipe.parts:
                for member, share in _draw(pools[ref], amount) if ref in pools else [(ref, amount)]:
                    parts[member] = parts.get(member, 0) + share
            using = ", ".join(f"{amount} {say(ref)}" for ref, amount in parts.items())
            lines.append(f"craft {recipe.makes} {say(recipe.item)} using {using}")
    return lines


def _explode(book: RecipeBook, goal: int, inventory: Mapping[int, int], choices: Choices) -> Plan:
    """Sum up the demand, products before ingredients."""
    plan = Plan()
    demand = {goal: inventory.get(goal, 0) + 1}
    heap = [(-book.order[goal], goal)]

    def want(ref: int, amount: int) -> None:
        if ref not in demand:
            demand[ref] = 0
            heappush(heap, (-book.order[ref], ref))
        demand[ref] += amount

    while heap:
        _, ref = heappop(heap)
        if ref >= book.size:
            plan.stand_ins[ref] = _stand_ins(book, ref, demand, inventory, choices)
            for member, amount in plan.stand_ins[ref].items():
                want(member, amount)
            continue
        short = demand[ref] - inventory.get(ref, 0)
        if short <= 0:
            continue
        if book.base[ref]:
            plan.gets[ref] = short
            continue
        recipe = book.recipes[choices.get(ref, _defaults(book)[ref])]
        times = -(-short // recipe.makes)
        plan.crafts.append((recipe, times))
        for part, amount in recipe.parts:
            want(part, amount * times)
    return plan


def _stand_ins(
    book: RecipeBook, tag: int, demand: Mapping[int, int], inventory: Mapping[int, int], choices: Choices
) -> dict[int, int]:
    """Which members make up the demand for a tag: what is spare of them, and one kind for the rest.

    That kind is the one that was chosen, or else one that is wanted anyway, or else the cheapest.
    """
    left, shares = demand[tag], {}
    for member in book.members[tag]:
        spare = min(left, inventory.get(member, 0) - demand.get(member, 0))
        if spare > 0:
            shares[member] = spare
            left -= spare
    if left:
        wanted = (member for member in book.members[tag] if member in demand)
        member = choices.get(tag, next(wanted, _defaults(book)[tag]))
        shares[member] = shares.get(member, 0) + left
    return shares


def _alternatives(book: RecipeBook, plan: Plan, choices: Choices) -> list[tuple[int, int]]:
    """Every other way to make an item of the plan or to stand in for one of its tags."""
    defaults = _defaults(book)
    items = {recipe.item: book.ways[recipe.item] for recipe, _ in plan.crafts}
    options = items | {tag: book.members[tag] for tag in plan.stand_ins}
    return [
        (ref, option)
        for ref, all_options in options.items()
        for option in all_options
        if option != choices.get(ref, defaults[ref])
    ]


@lru_cache(maxsize=8)
def _defaults(book: RecipeBook) -> list[int]:
    """The cheapest way for each item and tag, if each ingredient had to be made for itself alone."""
    cost, default = [1] * len(book.ways), [-1] * len(book.ways)

    def price(number: int) -> int:
        return 1 + sum(cost[ref] for ref, _ in book.recipes[number].parts)

    for ref in sorted(range(len(book.ways)), key=book.order.__getitem__):
        if ref >= book.size and book.members[ref]:
            default[ref] = min(book.members[ref], key=cost.__getitem__)
            cost[ref] = cost[default[ref]]
        elif ref < book.size and book.ways[ref]:
            default[ref] = min(book.ways[ref], key=price)
            cost[ref] = price(default[ref])
    return default


def _portions(total: int) -> list[int]:
    full, rest = divmod(total, MAX_AMOUNT)
    return [MAX_AMOUNT] * full + [rest] * (rest > 0)


def _draw(pool: dict[int, int], amount: int) -> list[tuple[int, int]]:
    """Take `amount` out of the pool, members in order."""
    taken = []
    for member, there in pool.items():
        share = min(there, amount)
        if share:
            taken.append((member, share))
            pool[member] -= share
            amount -= share
    return taken

"""The oracle: short plans to craft a goal from the current inventory, computed without running the environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heappop, heappush

from agentgym_envs.textcraft.recipes import MAX_AMOUNT, Recipe, RecipeBook

Choices = Mapping[int, int]
"""The recipe for an item, or the member for a tag."""


@dataclass(slots=True)
class CraftPlan:
    """The items to get, the recipes and how often to craft them (products first), and the members used for each tag."""

    gets: dict[int, int] = field(default_factory=dict)
    crafts: list[tuple[Recipe, int]] = field(default_factory=list)
    stand_ins: dict[int, dict[int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(-(-amount // MAX_AMOUNT) for amount in self.gets.values()) + sum(n for _, n in self.crafts)


def make_plan(recipe_book: RecipeBook, goal: int, inventory: Mapping[int, int]) -> CraftPlan:
    """Plan how to craft `goal` once, starting from `inventory`.

    For given choices of recipes the plan is the shortest: demand is summed from the goal down to the base items, so
    each item is crafted as few times as possible. The choices start with the cheapest by a static estimate, and are
    then changed one at a time while the plan becomes shorter.
    """
    choices: dict[int, int] = {}
    best = _explode(recipe_book, goal, inventory, choices)
    improved = True
    while improved:
        improved = False
        for ref, option in _alternatives(recipe_book, best, choices):
            trial = _explode(recipe_book, goal, inventory, {**choices, ref: option})
            if len(trial) < len(best):
                best, improved = trial, True
                choices[ref] = option
    return best


def commands(plan: CraftPlan, name_of: Callable[[int], str]) -> list[str]:
    """Write the plan as commands, with the names of a world."""
    lines = [f"get {amount} {name_of(ref)}" for ref, total in plan.gets.items() for amount in _portions(total)]
    pools = {tag: dict(members) for tag, members in plan.stand_ins.items()}
    for recipe, times in reversed(plan.crafts):
        for _ in range(times):
            parts: dict[int, int] = {}
            for ref, amount in recipe.parts:
                for member, share in _draw(pools[ref], amount) if ref in pools else [(ref, amount)]:
                    parts[member] = parts.get(member, 0) + share
            using = ", ".join(f"{amount} {name_of(ref)}" for ref, amount in parts.items())
            lines.append(f"craft {recipe.makes} {name_of(recipe.item)} using {using}")
    return lines


def _explode(recipe_book: RecipeBook, goal: int, inventory: Mapping[int, int], choices: Choices) -> CraftPlan:
    """Compute a plan by summing demand, products before ingredients."""
    plan = CraftPlan()
    demand = {goal: inventory.get(goal, 0) + 1}
    heap = [(-recipe_book.order[goal], goal)]

    def want(ref: int, amount: int) -> None:
        if ref not in demand:
            demand[ref] = 0
            heappush(heap, (-recipe_book.order[ref], ref))
        demand[ref] += amount

    while heap:
        _, ref = heappop(heap)
        if ref >= recipe_book.size:
            plan.stand_ins[ref] = _stand_ins(recipe_book, ref, demand, inventory, choices)
            for member, amount in plan.stand_ins[ref].items():
                want(member, amount)
            continue
        short = demand[ref] - inventory.get(ref, 0)
        if short <= 0:
            continue
        if recipe_book.base[ref]:
            plan.gets[ref] = short
            continue
        recipe = recipe_book.recipes[choices.get(ref, _defaults(recipe_book)[ref])]
        times = -(-short // recipe.makes)
        plan.crafts.append((recipe, times))
        for part, amount in recipe.parts:
            want(part, amount * times)
    return plan


def _stand_ins(
    recipe_book: RecipeBook, tag: int, demand: Mapping[int, int], inventory: Mapping[int, int], choices: Choices
) -> dict[int, int]:
    """Choose the members that meet the demand for a tag: spare ones in the inventory, and one item for the rest.

    That item is the chosen one, else one that is needed anyway, else the cheapest.
    """
    left, shares = demand[tag], {}
    for member in recipe_book.members[tag]:
        spare = min(left, inventory.get(member, 0) - demand.get(member, 0))
        if spare > 0:
            shares[member] = spare
            left -= spare
    if left:
        wanted = (member for member in recipe_book.members[tag] if member in demand)
        member = choices.get(tag, next(wanted, _defaults(recipe_book)[tag]))
        shares[member] = shares.get(member, 0) + left
    return shares


def _alternatives(recipe_book: RecipeBook, plan: CraftPlan, choices: Choices) -> list[tuple[int, int]]:
    """All other recipes for the items of the plan, and all other members for its tags."""
    defaults = _defaults(recipe_book)
    items = {recipe.item: recipe_book.recipes_for[recipe.item] for recipe, _ in plan.crafts}
    options = items | {tag: recipe_book.members[tag] for tag in plan.stand_ins}
    return [
        (ref, option)
        for ref, all_options in options.items()
        for option in all_options
        if option != choices.get(ref, defaults[ref])
    ]


@lru_cache(maxsize=8)
def _defaults(recipe_book: RecipeBook) -> list[int]:
    """The cheapest recipe for each item and member for each tag, if nothing could be shared between recipes."""
    cost, default = [1] * len(recipe_book.recipes_for), [-1] * len(recipe_book.recipes_for)

    def price(number: int) -> int:
        return 1 + sum(cost[ref] for ref, _ in recipe_book.recipes[number].parts)

    for ref in sorted(range(len(recipe_book.recipes_for)), key=recipe_book.order.__getitem__):
        if ref >= recipe_book.size and recipe_book.members[ref]:
            default[ref] = min(recipe_book.members[ref], key=cost.__getitem__)
            cost[ref] = cost[default[ref]]
        elif ref < recipe_book.size and recipe_book.recipes_for[ref]:
            default[ref] = min(recipe_book.recipes_for[ref], key=price)
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

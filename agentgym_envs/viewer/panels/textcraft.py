"""TextCraft's panel: the inventory, and the tree of items that the goal is made of.

All of it is in the record: the first observation has the recipes for the goal, and the info of each turn has the
inventory. So nothing is replayed, and records of other versions, tables and packages are shown as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentgym_envs.rollout.replay import observations
from agentgym_envs.trajectory import Trajectory

_RECIPE = re.compile(r"craft (\d{1,4}) (.+?) using (.+)")
_PART = re.compile(r"(\d{1,4}) (.+)")
_GOAL = re.compile(r"^Goal: (?:\S+ must )?(?:craft )?(.+?)\.?$", re.MULTILINE)
_GOT, _CRAFTED = re.compile(r"Got (\d{1,4}) (.+)"), re.compile(r"Crafted (\d{1,4}) (.+)")
_CRAFT = re.compile(r"craft (?:\d{1,4} )?.+? using ([^\n]+)", re.IGNORECASE)
_KINDS = "Kinds of items:"
_MAX_RECIPES, _MAX_DEPTH, _MAX_ACTION_CHARS = 500, 24, 4_000
_MAX_NODES, _MAX_TOTAL_NODES = 120, 12_000
_HELD = 0.01
"""Relative cost of an item that was carried at some time of the episode."""

Inventory = Mapping[str, int]
Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CraftRecipe:
    """A recipe: one craft makes `makes` items from `parts`, pairs of a name and an amount."""

    makes: int
    parts: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class ShownRecipes:
    """The contents of the first observation: the goal, the recipes by item, and the members of kinds of items."""

    goal: str
    by_item: dict[str, list[CraftRecipe]] = field(default_factory=dict)
    kinds: dict[str, list[str]] = field(default_factory=dict)


def from_record(trajectory: Trajectory) -> tuple[list[dict[str, Any]], str | None]:
    """Make the states. `shared`: `goal` and `trees`. A state: `inventory`, and the index of its `tree` (or None).

    A node of a tree: `name`, `need` (the amount still needed), `have` and `missing` (of that amount), `status`, `makes`
    (items per craft; 0 if it can only be taken), `kind` (the kind of items that it is used as, or None) and `parts`.
    `status` is "have", "ready" (can be crafted now), "missing", or "done" (no longer needed).
    """
    texts = observations(trajectory)
    recipes = read_recipes(texts[0])
    inventories = _inventories(trajectory, texts[1:])
    held = {name for inventory in inventories for name in inventory}
    grower = Grower(recipes, held, len(inventories))
    trees, indices, states = list[Node](), dict[str, int](), list[dict[str, Any]]()
    for inventory in inventories:
        key = str(sorted(inventory.items()))
        if recipes.goal and key not in indices:
            indices[key] = len(trees)
            trees.append(grower.tree(inventory))
        states.append({"inventory": [list(pair) for pair in inventory.items()], "tree": indices.get(key)})
    states[0]["shared"] = {"goal": recipes.goal, "trees": trees}
    return states, None if recipes.goal else "The goal could not be parsed from the first observation."


def read_recipes(*first: str) -> ShownRecipes:
    """Parse the recipes, kinds and goal of first observations; for other texts they are empty."""
    goals = [goal for text in first if (goal := _GOAL.search(text))]
    recipes = ShownRecipes(_plain(goals[0][1]) if goals else "")
    for text in first:
        _add(recipes, text)
    return recipes if recipes.kinds else _with_known_kinds(recipes)


def _add(recipes: ShownRecipes, observation: str) -> None:
    """Add the recipes and kinds in an observation."""
    shown, _, explained = observation.partition(_KINDS)
    for line in shown.splitlines()[:_MAX_RECIPES]:
        if made := _RECIPE.match(line.strip()):
            recipe = CraftRecipe(int(made[1]) or 1, tuple(_parts(made[3]).items()))
            recipes.by_item.setdefault(_plain(made[2]), []).append(recipe)
    for line in explained.split("\n\n", 1)[0].splitlines():
        name, colon, members = line.partition(": ")
        if colon:
            recipes.kinds[_plain(name)] = [_plain(member) for member in members.split(",")]


def _with_known_kinds(recipes: ShownRecipes) -> ShownRecipes:
    """Add kinds from the built-in table. Observations with the real names do not list the members of kinds."""
    from agentgym_envs.textcraft.recipes import load_recipe_book

    book = load_recipe_book()
    wanted = {name for options in recipes.by_item.values() for recipe in options for name, _ in recipe.parts}
    for ref, members in book.members.items():
        name = _plain(book.tags[ref - book.size])
        if name in wanted and name not in recipes.by_item:
            recipes.kinds[name] = [_plain(book.items[member]) for member in members]
    return recipes


def _parts(text: str) -> dict[str, int]:
    parts: dict[str, int] = {}
    for piece in text.split(","):
        if found := _PART.fullmatch(piece.strip()):
            name = _plain(found[2])
            parts[name] = parts.get(name, 0) + int(found[1])
    return parts


def _plain(name: str) -> str:
    return " ".join(name.lower().replace("minecraft:", "").replace("_", " ").split())


def _inventories(trajectory: Trajectory, replies: Iterable[str]) -> list[dict[str, int]]:
    """The inventories before the first action and after each action, from the infos, else from the replies."""
    inventories: list[dict[str, int]] = [{}]
    for turn, reply in zip(trajectory.turns, replies, strict=True):
        known = turn.info.get("inventory")
        now = counts(known) if isinstance(known, Mapping) else _after(inventories[-1], turn.action, reply)
        inventories.append(now)
    return inventories


def counts(known: Mapping[str, Any]) -> dict[str, int]:
    """The inventory of an info, without values that are not amounts."""
    return {str(name): amount for name, amount in known.items() if type(amount) is int and amount > 0}


def _after(before: Inventory, action: str, reply: str) -> dict[str, int]:
    got, crafted = _GOT.match(reply.strip()), _CRAFTED.match(reply.strip())
    change: dict[str, int] = {}
    if crafted and (used := list(_CRAFT.finditer(action[-_MAX_ACTION_CHARS:]))):
        change = {name: -amount for name, amount in _parts(used[-1][1].strip(" .`")).items()}
    if found := got or crafted:
        name = _plain(found[2])
        change[name] = change.get(name, 0) + int(found[1])
    names = dict.fromkeys([*before, *change])
    return {name: left for name in names if (left := before.get(name, 0) + change.get(name, 0)) > 0}


class Grower:
    """Grows the tree of a goal. The recipes are chosen once per episode: the used ones, else the cheapest ones."""

    def __init__(self, recipes: ShownRecipes, held: set[str], states: int) -> None:
        """`held` are the items carried at some time of the episode. Trees are smaller if there are more states."""
        self._recipes, self._held = recipes, held
        self._max_nodes = min(_MAX_NODES, 1 + _MAX_TOTAL_NODES // states)
        self._costs: dict[str, float] = {}
        self._left = 0

    def tree(self, inventory: Inventory) -> Node:
        """The tree for an inventory, whose items are assigned to nodes from the goal down."""
        self._left = self._max_nodes
        return self._grow(self._recipes.goal, 1, 1, dict(inventory), inventory, ())

    def _grow(
        self, wanted: str, need: int, total: int, pool: dict[str, int], carried: Inventory, above: tuple[str, ...]
    ) -> Node:
        """Grow a node. `need` is still needed, `total` without any inventory; `pool` has the unassigned items."""
        self._left -= 1
        name = self._member(wanted, need, pool)
        members = self._recipes.kinds.get(wanted, [name])
        have = _take(members, need, pool)
        missing = need - have
        recipe = None if name in above else self._recipe(name, above)
        ready = recipe is not None and self._carries(recipe, carried)
        status = "done" if not need else "have" if not missing else "ready" if ready else "missing"
        node: Node = {"name": name, "need": need, "have": have, "missing": missing, "status": status}
        node |= {"kind": wanted if wanted != name else None, "makes": recipe.makes if recipe else 0, "parts": []}
        if recipe is not None and len(above) < _MAX_DEPTH:
            times, at_all = -(-missing // recipe.makes), -(-total // recipe.makes)
            for part, amount in recipe.parts:
                if self._left > 0:
                    grown = self._grow(part, amount * times, amount * at_all, pool, carried, (*above, name))
                    node["parts"].append(grown)
        return node

    def _member(self, wanted: str, need: int, pool: Inventory) -> str:
        """The item itself; of a kind, a carried member, else a formerly carried one, else the cheapest."""
        members = self._recipes.kinds.get(wanted)
        if not members:
            return wanted
        most = max(members, key=lambda member: pool.get(member, 0))
        return most if need and pool.get(most, 0) else min(members, key=lambda member: self._cost(member, ()))

    def _carries(self, recipe: CraftRecipe, carried: Inventory) -> bool:
        kinds = self._recipes.kinds
        return all(sum(carried.get(m, 0) for m in kinds.get(part, [part])) >= amount for part, amount in recipe.parts)

    def _recipe(self, name: str, above: tuple[str, ...]) -> CraftRecipe | None:
        options = self._recipes.by_item.get(name)
        return min(options, key=lambda recipe: self._price(recipe, (*above, name))) if options else None

    def _price(self, recipe: CraftRecipe, above: tuple[str, ...]) -> float:
        return _HELD + sum(amount * self._cost(part, above) for part, amount in recipe.parts) / recipe.makes

    def _cost(self, name: str, above: tuple[str, ...]) -> float:
        """The approximate work to get one item; very high for cycles and very deep trees."""
        if name in above or len(above) > _MAX_DEPTH:
            return 1e9
        if name not in self._costs:
            options = [self._cost(member, (*above, name)) for member in self._recipes.kinds.get(name, ())]
            options += [self._price(recipe, (*above, name)) for recipe in self._recipes.by_item.get(name, ())]
            self._costs[name] = min(options, default=1.0) * (_HELD if name in self._held else 1.0)
        return self._costs[name]


def _take(members: Iterable[str], need: int, pool: dict[str, int]) -> int:
    """Take up to `need` of the members out of the pool and return the amount."""
    taken = 0
    for member in members:
        share = min(need - taken, pool.get(member, 0))
        if share > 0:
            pool[member] -= share
            taken += share
    return taken

"""Cooperative TextCraft's panel: the inventory, recipes and takeable items of each agent, and the tree of the goal.

Like TextCraft's, it uses the record only: first observations have the cards of the agents, infos the inventories.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.multiagent.joint_format import own_info
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.panels.textcraft import (
    CraftRecipe,
    Grower,
    Inventory,
    Node,
    ShownRecipes,
    counts,
    read_recipes,
)
from agentgym_envs.viewer.team import joint_of

_CRAFTER = re.compile(r"^Goal: (\S+) must craft ", re.MULTILINE)
_RECIPE = re.compile(r"craft \d{1,4} .+? using .+")
_TAKES = re.compile(r"^You can take: (.+?)\.?$", re.MULTILINE)
_NOTHING = "nothing"
_MAX_LINES = 500

Inventories = Sequence[Inventory]


def from_record(trajectory: Trajectory) -> tuple[list[dict[str, Any]], str | None]:
    """Make the states.

    `shared`: `goal`, `trees`, `agents`, the index of the `crafter` among them (or None), and `cards`, one per agent. A
    card has `recipes` (lines) and `takes` (names of items; None if it does not list them).

    A state has `inventories`, one per agent, and the index of its `tree`, which counts the items of all agents. A node
    is "ready" if one agent (for the goal: the crafter) carries all of its parts.
    """
    joint = joint_of(trajectory)
    if joint is None:
        raise ValueError("the record is not one of a team")
    first = [(joint.observations[0] or {}).get(agent, "") for agent in joint.agents]
    recipes, crafter = read_recipes(*first), _crafter(first, joint.agents)
    states = _inventories(trajectory, joint.agents)
    held = {name for inventories in states for inventory in inventories for name in inventory}
    grower = _TeamGrower(recipes, held, len(states), crafter)
    trees, indices, shown = list[Node](), dict[str, int](), list[dict[str, Any]]()
    for inventories in states:
        key = str([sorted(inventory.items()) for inventory in inventories])
        if recipes.goal and key not in indices:
            indices[key] = len(trees)
            trees.append(grower.team_tree(inventories))
        pairs = [[list(pair) for pair in inventory.items()] for inventory in inventories]
        shown.append({"inventories": pairs, "tree": indices.get(key)})
    cards = [_card(text) for text in first]
    shared = {"goal": recipes.goal, "trees": trees, "agents": joint.agents, "crafter": crafter, "cards": cards}
    shown[0]["shared"] = shared
    return shown, None if recipes.goal else "The goal could not be parsed from the first observation."


def _crafter(first: Sequence[str], agents: list[str]) -> int | None:
    """The index of the agent that must craft the goal; None if no observation names it."""
    named = [found[1] for text in first if (found := _CRAFTER.search(text))]
    return agents.index(named[0]) if named and named[0] in agents else None


def _card(text: str) -> dict[str, Any]:
    shown = (line.strip() for line in text.splitlines()[:_MAX_LINES])
    takes = _TAKES.search(text)
    names = None if takes is None else [] if takes[1] == _NOTHING else takes[1].split(", ")
    return {"recipes": [line for line in shown if _RECIPE.fullmatch(line)], "takes": names}


def _inventories(trajectory: Trajectory, agents: list[str]) -> list[Inventories]:
    """The inventories of the agents before the first action and after each action, from the infos."""
    states: list[Inventories] = [[{} for _ in agents]]
    for turn in trajectory.turns:
        known = [own_info(turn.info, agent).get("inventory") for agent in agents]
        pairs = zip(known, states[-1], strict=True)
        states.append([counts(now) if isinstance(now, Mapping) else before for now, before in pairs])
    return states


class _TeamGrower(Grower):
    """Grows trees for the inventories of a team."""

    def __init__(self, recipes: ShownRecipes, held: set[str], states: int, crafter: int | None) -> None:
        super().__init__(recipes, held, states)
        self._final = recipes.by_item.get(recipes.goal, [])
        self._crafter, self._inventories = crafter, list[Inventory]()

    def team_tree(self, inventories: Inventories) -> Node:
        """The tree for the items of all agents."""
        self._inventories = list(inventories)
        together = Counter[str]()
        for inventory in inventories:
            together.update(inventory)
        return self.tree(together)

    def _carries(self, recipe: CraftRecipe, carried: Inventory) -> bool:
        """True if one agent could craft the recipe now."""
        by_crafter = self._crafter is not None and any(recipe is one for one in self._final)
        inventories = [self._inventories[self._crafter or 0]] if by_crafter else self._inventories
        return any(super(_TeamGrower, self)._carries(recipe, inventory) for inventory in inventories)

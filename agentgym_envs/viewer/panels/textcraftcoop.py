"""Cooperative TextCraft's panel: what each agent carries, knows and can take, and what the goal is made of.

As TextCraft's, it is made of the record alone: first observations show the cards, and infos hold the inventories.
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
_MOST_LINES = 500

Hands = Sequence[Inventory]


def from_record(trajectory: Trajectory) -> tuple[list[dict[str, Any]], str | None]:
    """`shared`: `goal`, `trees`, `agents`, the place of the `crafter` among them (or None), and a card for each.

    A card has `recipes`, lines, and `takes`, names (None: it does not say). A state has `hands`, the inventory of
    each agent, and the number of its own `tree`, in which what any of them carries counts. A node is "ready" if one
    agent holds all that it takes, for the goal the crafter.
    """
    joint = joint_of(trajectory)
    if joint is None:
        raise ValueError("the record is not one of a team")
    first = [(joint.told[0] or {}).get(agent, "") for agent in joint.agents]
    recipes, crafter = read_recipes(*first), _crafter(first, joint.agents)
    states = _hands(trajectory, joint.agents)
    grower = _TeamGrower(recipes, {name for hands in states for hand in hands for name in hand}, len(states), crafter)
    trees, places, shown = list[Node](), dict[str, int](), list[dict[str, Any]]()
    for hands in states:
        key = str([sorted(hand.items()) for hand in hands])
        if recipes.goal and key not in places:
            places[key] = len(trees)
            trees.append(grower.tree_of(hands))
        shown.append({"hands": [[list(pair) for pair in hand.items()] for hand in hands], "tree": places.get(key)})
    cards = [_card(text) for text in first]
    shared = {"goal": recipes.goal, "trees": trees, "agents": joint.agents, "crafter": crafter, "cards": cards}
    shown[0]["shared"] = shared
    return shown, None if recipes.goal else "The first observation names no goal that could be read."


def _crafter(first: Sequence[str], agents: list[str]) -> int | None:
    """The place of the agent that must craft the goal; None if nobody says."""
    named = [found[1] for text in first if (found := _CRAFTER.search(text))]
    return agents.index(named[0]) if named and named[0] in agents else None


def _card(text: str) -> dict[str, Any]:
    shown = (line.strip() for line in text.splitlines()[:_MOST_LINES])
    takes = _TAKES.search(text)
    names = None if takes is None else [] if takes[1] == _NOTHING else takes[1].split(", ")
    return {"recipes": [line for line in shown if _RECIPE.fullmatch(line)], "takes": names}


def _hands(trajectory: Trajectory, agents: list[str]) -> list[Hands]:
    """What each agent carries before the first action and after each, as far as infos tell."""
    states: list[Hands] = [[{} for _ in agents]]
    for turn in trajectory.turns:
        known = [own_info(turn.info, agent).get("inventory") for agent in agents]
        pairs = zip(known, states[-1], strict=True)
        states.append([counts(now) if isinstance(now, Mapping) else before for now, before in pairs])
    return states


class _TeamGrower(Grower):
    """Grows trees of what a team carries together."""

    def __init__(self, recipes: ShownRecipes, held: set[str], states: int, crafter: int | None) -> None:
        super().__init__(recipes, held, states)
        self._final = recipes.ways.get(recipes.goal, [])
        self._crafter, self._hands = crafter, list[Inventory]()

    def tree_of(self, hands: Hands) -> Node:
        """The tree with what these hands carry."""
        self._hands = list(hands)
        together = Counter[str]()
        for hand in hands:
            together.update(hand)
        return self.tree(together)

    def _carries(self, recipe: CraftRecipe, carried: Inventory) -> bool:
        """Whether one of them could craft it now."""
        by_crafter = self._crafter is not None and any(recipe is one for one in self._final)
        hands = [self._hands[self._crafter or 0]] if by_crafter else self._hands
        return any(super(_TeamGrower, self)._carries(recipe, hand) for hand in hands)

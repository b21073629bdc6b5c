"""`TextCraftEmulator`: the replies of AgentGym's TextCraft server, derived from those of our environment.

Our environment accepts more than AgentGym's (other spellings, split and mixed ingredients) and words its replies
differently. `TextCraftEmulator` parses a command with AgentGym's grammar and translates it for our environment. It
keeps the inventory of AgentGym's server. It also reports a craft that AgentGym refuses, so that the caller can undo it.

Source: AgentGym's TextCraft (arXiv 2406.04151), which is ADaPT's (arXiv 2311.05772).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_GET = re.compile(r"get ([0-9]+) (.*)")
_CRAFT = re.compile(r"craft (.*) using (.*)")
_COUNTED = re.compile(r"([0-9]+) (.*)")
_CRAFTED = re.compile(r"Crafted ([0-9]+) (.+)")
_ID = re.compile(r"[a-z0-9_]+")
_MOST = 9_999  # the largest amount that our environment takes
_NOTHING = "inventory"  # a command of ours that changes nothing

_TAG_NAMES = """\
banner bark bed boat bonemeal carpet concrete_powder dyed_bed planks sign stained_glass stained_glass_pane
stained_terracotta sticks wooden_button wooden_door wooden_fence wooden_fence_gate wooden_pressure_plate wooden_slab
wooden_stairs wooden_trapdoor wool"""
TAGS = frozenset(_TAG_NAMES.split())
"""Kinds of items. AgentGym does not accept their names as items."""


class CraftCommand(NamedTuple):
    """A parsed craft command: the output as written, its amount, and (item, amount) of each ingredient."""

    item: str
    amount: int
    parts: list[tuple[str, int]]


class Attempt(NamedTuple):
    """The command for our environment, and AgentGym's reply if that command fails.

    `get` (item as written, amount) or `craft` is set if AgentGym would try one of them.
    """

    command: str
    refusal: str
    get: tuple[str, int] | None = None
    craft: CraftCommand | None = None


class TextCraftEmulator:
    """The state of an episode as AgentGym's server would hold it."""

    def __init__(self, observation: str) -> None:
        """`observation` is the first one, which shows the recipes."""
        self.inventory: dict[str, int] = {}
        self._parts = _count_parts(observation)

    def attempt(self, action: str) -> Attempt:
        """Translate an action. Raises ValueError for a number that Python cannot read, as AgentGym does."""
        if match := _CRAFT.match(action):
            return self._try_craft(match[1], match[2])
        if match := _GET.match(action):
            return self._try_get(match[2], int(match[1]))
        if action.startswith("inventory"):
            return Attempt(_NOTHING, self._listing())
        return Attempt(_NOTHING, f"Could not execute {action}")

    def settle(self, attempt: Attempt, reply: str) -> str | None:
        """AgentGym's reply, derived from ours; None if our environment accepted a craft that AgentGym refuses."""
        if attempt.get is not None:
            return self._settle_get(attempt, *attempt.get, reply)
        if attempt.craft is not None and (match := _CRAFTED.fullmatch(reply)):
            return self._settle_craft(attempt.craft, int(match[1]), match[2])
        return attempt.refusal

    def _try_get(self, item: str, amount: int) -> Attempt:
        refusal = f"Could not find {item}"
        name = _item_id(item)
        if not _ID.fullmatch(name):
            return Attempt(_NOTHING, refusal)
        # AgentGym accepts an amount of 0 and lists the item; get one to find out whether the item exists.
        return Attempt(f"get {min(max(amount, 1), _MOST)} {_spoken(name)}", refusal, get=(item, amount))

    def _settle_get(self, attempt: Attempt, item: str, amount: int, reply: str) -> str:
        name = _item_id(item)
        if reply != f"Got {min(max(amount, 1), _MOST)} {_spoken(name)}":
            return attempt.refusal
        self.inventory[name] = self.inventory.get(name, 0) + amount
        return f"Got {amount} {item}"

    def _try_craft(self, output: str, ingredients: str) -> Attempt:
        craft = _parse_craft(output, ingredients)
        if isinstance(craft, str):
            return Attempt(_NOTHING, craft)
        name = _item_id(craft.item)
        if not self._carries(craft.parts):
            return Attempt(_NOTHING, f"Could not find enough items to craft {_game_id(name)}")
        refusal = _no_recipe(name, craft.amount)
        if not _ID.fullmatch(name) or not _is_plain(craft.parts):
            return Attempt(_NOTHING, refusal)
        using = ", ".join(f"{amount} {_spoken(part)}" for part, amount in craft.parts)
        return Attempt(f"craft 1 {_spoken(name)} using {using}", refusal, craft=craft)

    def _settle_craft(self, craft: CraftCommand, made: int, item: str) -> str | None:
        name = _item_id(craft.item)
        sizes = self._parts.get(name)
        # More ingredients than in the recipe means mixed members of a tag, which AgentGym refuses.
        if item != _spoken(name) or (sizes is not None and len(craft.parts) not in sizes):
            return None
        for part, amount in craft.parts:
            self.inventory[part] -= amount
            if not self.inventory[part]:
                del self.inventory[part]
        self.inventory[name] = self.inventory.get(name, 0) + made
        return f"Crafted {made} minecraft:{name}"

    def _carries(self, parts: Iterable[tuple[str, int]]) -> bool:
        """True if the inventory holds each part. As in AgentGym, parts with the same item are not added up."""
        return all(part in self.inventory and self.inventory[part] >= amount for part, amount in parts)

    def _listing(self) -> str:
        held = "".join(f"[{_spoken(name)}] ({amount}) " for name, amount in self.inventory.items())
        return "Inventory: " + (held or "You are not carrying anything.")


def refused(reply: Mapping[str, Any], refusal: str) -> dict[str, Any]:
    """The reply to a step that the caller has undone."""
    return {**reply, "observation": refusal, "reward": 0.0, "terminated": False, "truncated": False}


def _parse_craft(output: str, ingredients: str) -> CraftCommand | str:
    """Parse a craft command. Returns AgentGym's reply if an ingredient is malformed."""
    counted = _COUNTED.match(output)
    item, makes = (counted[2], int(counted[1])) if counted else (output, 1)
    parts = []
    for ingredient in ingredients.split(","):
        if not (match := _COUNTED.match(ingredient.strip())):
            return f"Wrong item format: {ingredient.strip()}"
        parts.append((_item_id(match[2]), int(match[1])))
    return CraftCommand(item, makes, parts)


def _is_plain(parts: list[tuple[str, int]]) -> bool:
    """True if AgentGym could have a recipe of such parts: distinct items in amounts that recipes have."""
    names = {part for part, _ in parts}
    return len(names) == len(parts) and all(0 < amount <= _MOST for _, amount in parts)


def _count_parts(observation: str) -> dict[str, set[int]]:
    """The numbers of ingredients of the shown recipes, by item."""
    sizes: dict[str, set[int]] = {}
    for line in observation.split("\n"):
        if match := _CRAFT.fullmatch(line):
            _, _, item = match[1].partition(" ")
            sizes.setdefault(_item_id(item), set()).add(match[2].count(",") + 1)
    return sizes


def _no_recipe(name: str, count: int) -> str:
    game_id = f"minecraft:{name}"
    tag, item = (game_id, None) if name in TAGS else (None, game_id)
    written = f"ItemTagWithCount(item_tag=ItemTag(tag={tag!r}, item_id={item!r}), count={count})"
    return f"Could not find a valid recipe for {written}"


def _game_id(name: str) -> str | None:
    return None if name in TAGS else f"minecraft:{name}"


def _item_id(written: str) -> str:
    return written.replace(" ", "_")


def _spoken(name: str) -> str:
    return name.replace("_", " ")

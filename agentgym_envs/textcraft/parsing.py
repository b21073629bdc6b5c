"""Parsing the commands `get`, `craft` and `inventory`."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentgym_envs.command_tools import CommandTool, Number
from agentgym_envs.errors import InvalidAction
from agentgym_envs.textcraft.recipes import MAX_AMOUNT

TOOLS = (
    CommandTool(
        "get",
        "Take items that no recipe makes.",
        "get {amount} {item}",
        {"amount": Number("The number of items."), "item": "The name of the item."},
    ),
    CommandTool(
        "craft",
        "Craft by a recipe, with ingredients that you carry.",
        "craft {item} using {ingredients}",
        {
            "item": "The amount and the item, as in the recipe: 4 oak planks",
            "ingredients": "The amounts and the ingredients, as in the recipe: 1 oak log, 2 stick",
        },
    ),
    CommandTool("inventory", "See what you carry.", "inventory", {}),
)
"""The commands as native tools."""
_ECHO_CHARS = 120
_LOOKS_LIKE_AMOUNT = re.compile(r"[-+]?\d")
_MAX_DIGITS = len(str(MAX_AMOUNT))


class Get(NamedTuple):
    """Take `amount` of a base item."""

    amount: int
    item: str


class Craft(NamedTuple):
    """Craft an item once from `parts` (name -> amount, merged by name). `amount` is the stated amount, if any."""

    amount: int | None
    item: str
    parts: dict[str, int]


class Inventory(NamedTuple):
    """List the carried items."""


def parse(command: str) -> Get | Craft | Inventory:
    """Parse a command. Ignores case, extra spaces, underscores, `minecraft:` and a final dot.

    Returned names have lower case and single spaces. Raises InvalidAction, with the reply, for an invalid command.
    """
    text = " ".join(command.lower().replace("_", " ").replace("minecraft:", "").removesuffix(".").split())
    verb, _, rest = text.partition(" ")
    if verb == "get":
        number, _, name = rest.partition(" ")
        if name and (amount := _amount(number, command)):
            return Get(amount, name)
    elif verb == "craft":
        item, using, parts = rest.partition(" using ")
        if using:
            return _craft(item, parts, command)
    elif text == "inventory":
        return Inventory()
    raise InvalidAction(f"Could not execute {echo(command)}")


def echo(text: str) -> str:
    """Return the model's text on one line, shortened and without lone surrogates."""
    line = " ".join(text.split())
    if len(line) > _ECHO_CHARS:
        line = line[:_ECHO_CHARS] + "..."
    return line if line.isascii() else line.encode("utf-8", "replace").decode()


def _craft(item: str, parts: str, command: str) -> Craft:
    number, _, name = item.partition(" ")
    stated = _amount(number, command) if name else None
    if not stated:
        name = item
    merged: dict[str, int] = {}
    for part in parts.split(","):
        part = part.strip()
        number, _, ingredient = part.partition(" ")
        amount = _amount(number, command) if ingredient else None
        if not amount:
            raise InvalidAction(f"Wrong item format: {echo(part)}")
        merged[ingredient] = merged.get(ingredient, 0) + amount
    return Craft(stated, name, merged)


def _amount(word: str, command: str) -> int | None:
    """Parse a number, or return None for another word. Raises InvalidAction for a number out of range."""
    if word.isdigit() and word.isascii() and len(word) <= _MAX_DIGITS and (amount := int(word)):
        return amount
    if _LOOKS_LIKE_AMOUNT.match(word):
        raise InvalidAction(f"Could not execute {echo(command)}: an amount is a whole number from 1 to {MAX_AMOUNT}.")
    return None

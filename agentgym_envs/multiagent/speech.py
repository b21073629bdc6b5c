"""What only members of a team can do: give, say, pass; and what makes a message safe to show to another."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from agentgym_envs.errors import InvalidAction
from agentgym_envs.textcraft.parsing import Get, echo, parse

MAX_MESSAGE_CHARS = 300
_QUOTES = dict.fromkeys(map(ord, '"“”„‟«»″＂〝〞〟'), "'")
_UNSEEN = {"Cc", "Cf", "Co", "Cs"}
"""Unicode's categories of control, format, private and surrogate characters."""


class Give(NamedTuple):
    """Hand `amount` of an item to the agent of that name (lower case, spaces for underscores)."""

    amount: int
    item: str
    receiver: str


class Say(NamedTuple):
    """Tell all the others a text, made safe by `clean`; `cut` says that it was longer."""

    text: str
    cut: bool


class Pass(NamedTuple):
    """Do nothing."""


def read(command: str) -> Give | Say | Pass | None:
    """The team's action that a command is, or None, which leaves it to TextCraft.

    Raises InvalidAction with the reply for a command that begins like one of the team's but is none.
    """
    verb, rest = ([*command.split(maxsplit=1), "", ""])[:2]
    match verb.lower().removesuffix("."):
        case "say":
            return _say(rest, command)
        case "give":
            return _give(rest, command)
        case "pass" if not rest:
            return Pass()
    return None


def clean(text: str, limit: int = MAX_MESSAGE_CHARS) -> tuple[str, bool]:
    """The text as it may stand between quotation marks in one line of an observation, and whether it was cut.

    White space, control and format characters become single spaces and quotation marks apostrophes, so that no
    message can end its quotation, begin a line, or turn the direction of reading.
    """
    plain = "".join([" " if unicodedata.category(char) in _UNSEEN else char for char in text.translate(_QUOTES)])
    line = " ".join(plain.split())
    return line[:limit].rstrip(), len(line) > limit


def quote(agent: str, text: str) -> str:
    """The line that tells what an agent said; `text` is clean."""
    return f'{agent} says: "{text}"'


def _say(rest: str, command: str) -> Say:
    text, cut = clean(rest.strip().strip('"“”'))
    if not text:
        raise InvalidAction(f"Could not execute {echo(command)}")
    return Say(text, cut)


def _give(rest: str, command: str) -> Give:
    things, to, receiver = " ".join(rest.lower().replace("_", " ").removesuffix(".").split()).rpartition(" to ")
    try:
        thing = parse(f"get {things}")  # an amount and an item, as TextCraft reads them
    except InvalidAction as error:
        _, _, why = str(error).partition(": an amount ")
        raise InvalidAction(f"Could not execute {echo(command)}" + (f": an amount {why}" if why else "")) from None
    if not to or not receiver or not isinstance(thing, Get):
        raise InvalidAction(f"Could not execute {echo(command)}")
    return Give(thing.amount, thing.item, receiver)

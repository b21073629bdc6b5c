"""What only members of a team can do: give, say, pass; and what makes a message safe to show to another."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from agentgym_envs.errors import InvalidAction
from agentgym_envs.textcraft.parsing import Get, echo, parse

MAX_MESSAGE_CHARS = 300
_QUOTES = dict.fromkeys(map(ord, '"“”„‟«»″‴‶⁗＂〃〝〞〟❝❞❠⹂ʺˮ˝״🙶🙷🙸'), "'")
_UNSEEN = {"Cc", "Cf", "Cn", "Co", "Cs"}
"""Unicode's categories of control, format, unassigned, private and surrogate characters."""
_MARKS = {"Mn", "Mc", "Me"}
"""Those of the marks that are drawn on the character before."""
_BLANK = [
    (0x034F, 0x034F),  # the grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer vowels that are never drawn
    (0x180B, 0x180F),  # Mongolian variation selectors
    (0x2800, 0x2800),  # Braille without a dot
    (0x3164, 0x3164),  # a Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors, 256 of which can spell any byte
    (0xFFA0, 0xFFA0),  # a Hangul filler
    (0xE0100, 0xE01EF),  # variation selectors
]
"""Ranges of characters of other categories that nobody sees either: what Unicode lets a display ignore, and fillers."""
_UNSEEN_CHARS = frozenset(chr(code) for first, last in _BLANK for code in range(first, last + 1))


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

    White space and what cannot be seen become single spaces, double quotation marks become apostrophes, and marks that
    would be drawn on the quotation mark before the message are left out. So no message ends its quotation, begins a
    line, or holds text that only some readers see.
    """
    plain = "".join([" " if _is_unseen(char) else char for char in text.translate(_QUOTES)])
    line = " ".join(plain.split())
    first = next((n for n, char in enumerate(line) if char != " " and unicodedata.category(char) not in _MARKS), None)
    line = "" if first is None else line[first:]
    return line[:limit].rstrip(), len(line) > limit


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN or char in _UNSEEN_CHARS


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

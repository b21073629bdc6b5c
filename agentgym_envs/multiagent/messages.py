"""The actions of a team (give, say, pass), and the cleaning that makes a message safe to show."""

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
"""Unicode's categories of combining marks, which are drawn on the character before."""
_BLANK = [
    (0x034F, 0x034F),  # the grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer vowels that are never drawn
    (0x180B, 0x180F),  # Mongolian variation selectors
    (0x2800, 0x2800),  # Braille without a dot
    (0x3164, 0x3164),  # a Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors; the 256 of both ranges could encode any byte
    (0xFFA0, 0xFFA0),  # a Hangul filler
    (0xE0100, 0xE01EF),  # variation selectors
]
"""Ranges of invisible characters in other categories: default-ignorable ones, and fillers."""
_UNSEEN_CHARS = frozenset(chr(code) for first, last in _BLANK for code in range(first, last + 1))


class Give(NamedTuple):
    """Hand `amount` of an item to the agent of that name (lower case, spaces for underscores)."""

    amount: int
    item: str
    receiver: str


class Say(NamedTuple):
    """Send a text to all other agents. It went through `clean`; `truncated` if it was longer."""

    text: str
    truncated: bool


class Pass(NamedTuple):
    """Do nothing."""


def read(command: str) -> Give | Say | Pass | None:
    """Parse a team action; None for any other command, which is TextCraft's.

    Raises InvalidAction, with the reply, for a malformed team action.
    """
    word, rest = ([*command.split(maxsplit=1), "", ""])[:2]
    match word.lower().removesuffix("."):
        case "say":
            return _say(rest, command)
        case "give":
            return _give(rest, command)
        case "pass" if not rest:
            return Pass()
    return None


def clean(text: str, limit: int = MAX_MESSAGE_CHARS) -> tuple[str, bool]:
    """Make a text safe to quote in one line of an observation; also return if it was truncated.

    White space and invisible characters become single spaces, and double quotation marks become apostrophes. Combining
    marks at the beginning, which would be drawn on the quotation mark, are removed. So no message can end its
    quotation, begin a new line, or hold text that only some readers see.
    """
    plain = "".join([" " if _is_unseen(char) else char for char in text.translate(_QUOTES)])
    line = " ".join(plain.split())
    first = next((n for n, char in enumerate(line) if char != " " and unicodedata.category(char) not in _MARKS), None)
    line = "" if first is None else line[first:]
    return line[:limit].rstrip(), len(line) > limit


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN or char in _UNSEEN_CHARS


def quote(agent: str, text: str) -> str:
    """The line that quotes an agent's message; `text` went through `clean`."""
    return f'{agent} says: "{text}"'


def _say(rest: str, command: str) -> Say:
    text, truncated = clean(rest.strip().strip('"“”'))
    if not text:
        raise InvalidAction(f"Could not execute {echo(command)}")
    return Say(text, truncated)


def _give(rest: str, command: str) -> Give:
    items, to, receiver = " ".join(rest.lower().replace("_", " ").removesuffix(".").split()).rpartition(" to ")
    try:
        item = parse(f"get {items}")  # an amount and an item, as TextCraft reads them
    except InvalidAction as error:
        _, _, why = str(error).partition(": an amount ")
        raise InvalidAction(f"Could not execute {echo(command)}" + (f": an amount {why}" if why else "")) from None
    if not to or not receiver or not isinstance(item, Get):
        raise InvalidAction(f"Could not execute {echo(command)}")
    return Give(item.amount, item.item, receiver)

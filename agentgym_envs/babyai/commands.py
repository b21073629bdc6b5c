"""Parsing commands: `pick up Red  Ball 1` means `pickup` with the target `red ball 1`."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

CHECK = "check available actions"


class Verb(StrEnum):
    """The commands, as written in the list of available actions."""

    LEFT = "turn left"
    RIGHT = "turn right"
    FORWARD = "move forward"
    PICKUP = "pickup"
    DROP = "drop"
    TOGGLE = "toggle"
    DONE = "done"
    GO_TO = "go to"
    GO_THROUGH = "go through"
    TOGGLE_THROUGH = "toggle and go through"
    CHECK = CHECK


class ParsedCommand(NamedTuple):
    """A verb and the name of an object, or "" if the command names none."""

    verb: Verb
    target: str


_SPELLINGS = {
    **{verb.value: verb for verb in Verb},
    "left": Verb.LEFT,
    "right": Verb.RIGHT,
    "forward": Verb.FORWARD,
    "go forward": Verb.FORWARD,
    "goto": Verb.GO_TO,
    "pick up": Verb.PICKUP,
    "check actions": Verb.CHECK,
    "check valid actions": Verb.CHECK,
    "check": Verb.CHECK,
}
_QUOTES = "\"'`*.! "
"""Characters that are stripped from a command or a target: quotes, emphasis marks and final punctuation."""
_ARTICLES = ("the", "a", "an")
_LONGEST_FIRST = sorted(_SPELLINGS, key=len, reverse=True)


def parse(command: str) -> ParsedCommand | None:
    """Parse a command, or return None. Ignores case, extra spaces, quotes, an article and a final dot."""
    words = " ".join(command.lower().split()).strip(_QUOTES)
    for spelling in _LONGEST_FIRST:
        if words == spelling:
            return ParsedCommand(_SPELLINGS[spelling], "")
        if words.startswith(f"{spelling} "):
            target = words[len(spelling) + 1 :].strip(_QUOTES).split()
            if target and target[0] in _ARTICLES:
                del target[0]
            return ParsedCommand(_SPELLINGS[spelling], " ".join(target).strip(_QUOTES))
    return None


@lru_cache(maxsize=1024)
def parse_known(command: str) -> ParsedCommand | None:
    """Parse a command of the oracle or of a list of actions. These are few and short, unlike those of a policy."""
    return parse(command)

"""Commands as text: `pick up Red  Ball 1` is the order to pick up `red ball 1`."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

CHECK = "check available actions"


class Verb(StrEnum):
    """What can be ordered, by the words that the list of available actions uses."""

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


class Order(NamedTuple):
    """A verb and the name of a thing, or "" where none is given."""

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
"""What may stand around a command or a target: quotes, marks of emphasis, and what ends a sentence."""
_ARTICLES = ("the", "a", "an")
_LONGEST_FIRST = sorted(_SPELLINGS, key=len, reverse=True)


def parse(command: str) -> Order | None:
    """The order that a command is, in whatever case and spacing, with or without quotes, an article and a final dot."""
    words = " ".join(command.lower().split()).strip(_QUOTES)
    for spelling in _LONGEST_FIRST:
        if words == spelling:
            return Order(_SPELLINGS[spelling], "")
        if words.startswith(f"{spelling} "):
            target = words[len(spelling) + 1 :].strip(_QUOTES).split()
            if target and target[0] in _ARTICLES:
                del target[0]
            return Order(_SPELLINGS[spelling], " ".join(target).strip(_QUOTES))
    return None

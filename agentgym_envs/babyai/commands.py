"""Parsing commands: `pick up Red  Ball 1` means `pickup` with the target `red ball 1`."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from agentgym_envs.command_tools import CommandTool

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


_OBJECT = {"object": "The colour, the kind and the number of the object, as you see it: red ball 1"}
_DOOR = {"door": "The colour, the state and the number of the door, as you see it: blue open door 1"}
_WALK = (
    CommandTool("turn_left", "Turn left.", Verb.LEFT, {}),
    CommandTool("turn_right", "Turn right.", Verb.RIGHT, {}),
    CommandTool("move_forward", "Move into the free cell or the open door in front of you.", Verb.FORWARD, {}),
)
_HANDLE = (
    CommandTool("drop", "Put down what you carry, into the free cell in front of you.", Verb.DROP, {}),
    CommandTool("toggle", "Open or close the door in front of you, or open the box there.", Verb.TOGGLE, {}),
)
TOOLS = {
    "macro": (
        *_WALK,
        CommandTool("go_to", "Walk up to an object and face it.", f"{Verb.GO_TO} {{object}}", _OBJECT),
        CommandTool("pick_up", "Walk up to an object and take it.", f"{Verb.PICKUP} {{object}}", _OBJECT),
        *_HANDLE,
        CommandTool("go_through", "Walk into the doorway of an open door.", f"{Verb.GO_THROUGH} {{door}}", _DOOR),
        CommandTool(
            "toggle_and_go_through",
            "Walk up to a closed door, open it and walk into the doorway.",
            f"{Verb.TOGGLE_THROUGH} {{door}}",
            _DOOR,
        ),
        CommandTool("check_available_actions", "List the actions that are possible now.", Verb.CHECK, {}),
    ),
    "primitive": (
        *_WALK,
        CommandTool("pick_up", "Take the object in front of you.", Verb.PICKUP, {}),
        *_HANDLE,
        CommandTool("done", "Do nothing.", Verb.DONE, {}),
    ),
}
"""The commands as native tools, for each value of the argument `actions`."""


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

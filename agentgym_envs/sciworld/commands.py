"""Normalizing commands for the simulator, which does not accept punctuation, and the commands as native tools."""

from __future__ import annotations

import re

from agentgym_envs.command_tools import CommandTool

_SPACES = re.compile(r"\s+")
_END = " .!?,;:"
_QUOTES = "\"'`*"
_OBJECT = "The name of a thing you see."


def _on_object(name: str, description: str) -> CommandTool:
    command = name.replace("_", " ")
    return CommandTool(name, description, f"{command} {{object}}", {"object": _OBJECT})


TOOLS = (
    _on_object("open", "Open a container or a door."),
    _on_object("close", "Close a container or a door."),
    _on_object("activate", "Switch a device on."),
    _on_object("deactivate", "Switch a device off."),
    CommandTool(
        "connect",
        "Connect two electrical components by their terminals.",
        "connect {terminal} to {other_terminal}",
        {"terminal": "For example: battery anode", "other_terminal": "For example: red wire terminal 1"},
    ),
    _on_object("disconnect", "Disconnect an electrical component."),
    CommandTool("use", "Use a thing on another.", "use {object} on {target}", {"object": _OBJECT, "target": _OBJECT}),
    CommandTool("look_around", "See the room.", "look around", {}),
    _on_object("look_at", "Look at a thing."),
    _on_object("look_in", "Look into a container."),
    _on_object("read", "Read a text."),
    CommandTool(
        "move", "Move a thing to another place.", "move {object} to {target}", {"object": _OBJECT, "target": _OBJECT}
    ),
    _on_object("pick_up", "Take a thing."),
    _on_object("put_down", "Put down what you carry."),
    CommandTool(
        "pour",
        "Pour a liquid into a container.",
        "pour {object} into {container}",
        {"object": _OBJECT, "container": _OBJECT},
    ),
    _on_object("mix", "Let the substances in a container react."),
    CommandTool(
        "go_to",
        "Go to a room next to this one, through an open door.",
        "go to {room}",
        {"room": "The name of the room."},
    ),
    _on_object("focus_on", "Say that this is the object that the task asks for. A wrong one fails the task at once."),
    CommandTool("wait", "Let some time go by (eleven moves).", "wait", {}),
    CommandTool("wait1", "Let a little time go by (two moves).", "wait1", {}),
    CommandTool("inventory", "See what you carry.", "inventory", {}),
    CommandTool("task", "Read the task again.", "task", {}),
)
"""The commands as native tools; `act` takes the rarer ones, and the number of a menu."""


def tidy(command: str) -> str:
    """Return the command on one line with single spaces, without final punctuation or surrounding quotes or stars.

    The simulator ignores case. An empty command is passed on, because it cancels a menu.
    """
    text, before = _SPACES.sub(" ", command).strip(" "), None
    while text != before:
        before, text = text, text.rstrip(_END)
        if len(text) > 1 and text[0] == text[-1] and text[0] in _QUOTES:
            text = text[1:-1].strip(" ")
    return text

"""Normalizing commands for the simulator, which does not accept punctuation."""

from __future__ import annotations

import re

_SPACES = re.compile(r"\s+")
_END = " .!?,;:"
_QUOTES = "\"'`*"


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

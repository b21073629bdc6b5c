"""How a command is written for the simulator, which knows no punctuation."""

from __future__ import annotations

import re

_SPACES = re.compile(r"\s+")
_END = " .!?,;:"
_QUOTES = "\"'`*"


def tidy(command: str) -> str:
    """The command on one line with single spaces, without final punctuation and quotes or stars around it.

    The simulator itself takes no notice of case. What is empty then is sent as it is: it cancels a menu.
    """
    text, before = _SPACES.sub(" ", command).strip(" "), None
    while text != before:
        before, text = text, text.rstrip(_END)
        if len(text) > 1 and text[0] == text[-1] and text[0] in _QUOTES:
            text = text[1:-1].strip(" ")
    return text

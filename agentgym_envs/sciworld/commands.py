"""How a command is written for the simulator, which knows no punctuation."""

from __future__ import annotations

import re

_SPACES = re.compile(r"\s+")
_END = " .!?,;:"


def tidy(command: str) -> str:
    """The command on one line with single spaces and without final punctuation or quotes around it.

    The simulator itself takes no notice of case. What is empty then is sent as it is: it cancels a menu.
    """
    text = _SPACES.sub(" ", command).strip(_END[0])
    for quote in "\"'`":
        if len(text) > 1 and text[0] == text[-1] == quote:
            text = text[1:-1]
    return text.strip(" ").rstrip(_END)

"""Parts of the program that need no imports: Ctrl-C, spellings of options, and help texts from the source code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

_ALIASES = {"group": "groups", "output-dir": "out"}
"""Spellings of other libraries and of singular and plural that are accepted and not shown."""


class Interrupted(Exception):
    """Ctrl-C, raised after the results so far are saved. The message says what was saved."""


def normalize_options(words: Sequence[str]) -> list[str]:
    """The words of a command line with the options in the spelling of the help: hyphens, and no alias."""
    return [_normalized(word) if word.startswith("--") else word for word in words]


def _normalized(word: str) -> str:
    name, equals, value = word[2:].partition("=")
    name = name.replace("_", "-")
    return f"--{_ALIASES.get(name, name)}{equals}{value}"


def docstring_of(function: str) -> str:
    """The docstring of "module:function" without importing the module; "" if there is none."""
    module, name = function.split(":")
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return ""
    source = Path(spec.origin).read_text(encoding="utf-8")
    found = re.search(rf'^def {name}\(.*?\) -> None:\n    """(.*?)"""', source, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def paragraphs(docstring: str) -> str:
    """The docstring with one line per paragraph, so that the help wraps it to the width of the terminal."""
    parts = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)

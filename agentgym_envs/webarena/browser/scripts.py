"""The JavaScript that runs in pages."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

WORLD = "agentgym"
"""The name of the isolated world."""
_IN_WORLD = ("dom.js", "world.js", "elements.js", "roles.js", "names.js", "states.js", "observe.js", "clipboard.js")


@cache
def world_source() -> str:
    """The script for the isolated world of every document."""
    return "(() => {\n" + "\n".join(_source(name) for name in _IN_WORLD) + "\n})();"


@cache
def page_source() -> str:
    """The script for the page's own world."""
    return _source("traffic.js")


def _source(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

"""How oracles get about in code hosting: the steps that many tasks share, and what can be read where they lead."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import TypeAlias, TypeVar

from agentgym_envs.webarena.tasks.sight import Sight

_T = TypeVar("_T")
Way: TypeAlias = Generator[str, None, _T]
"""Commands, and what was found out by them."""


def search(sight: Sight, text: str) -> Iterator[str]:
    """Look for something from wherever one is."""
    yield sight.type("Search Hammerfold", text, enter=True)


def to_project(sight: Sight, path: str) -> Iterator[str]:
    """Go to a project's own page."""
    yield from search(sight, path)
    yield sight.click("link", path)


def to_section(sight: Sight, name: str) -> Iterator[str]:
    """Go to a section of the project that one is in, by the menu at its side."""
    yield sight.click("link", re.compile(rf"{name}(?: \(\d+\))?"))


def to_profile(sight: Sight, person: str) -> Iterator[str]:
    """Go to somebody's profile."""
    yield from search(sight, person)
    yield sight.click("link", re.compile(r"Users \(\d+\)"))
    yield sight.click("link", person)


def licence(sight: Sight) -> str:
    """The licence that a project's page tells."""
    return sight.search(r"licence (\S+)")[0]

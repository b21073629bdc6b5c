"""What an agent sees of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How a page is told.

    `viewport`: only what lies in the window. `max_chars`: a longer tree is cut between two lines, which its last line
    says. `hidden`: CSS selectors of elements that are left out with all in them.
    """

    viewport: bool = True
    max_chars: int = 60_000
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A page at one moment: its tree as lines, the number of elements that can be named, whether it was cut."""

    url: str
    title: str
    tree: str
    count: int
    cut: bool = False


class Element(NamedTuple):
    """A line of a tree: depth counted from 0, the element's id (None of plain text), role, name and properties."""

    depth: int
    id: int | None
    role: str
    name: str
    properties: dict[str, str]


def elements(tree: str) -> list[Element]:
    """A tree read back."""
    raise NotImplementedError

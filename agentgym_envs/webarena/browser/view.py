"""Observations of a page, with functions that format and parse the lines of its tree."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_LINE = re.compile(rf"(?P<tabs>\t*)(?:\[(?P<id>\d+)\] )?(?P<role>[\w-]+) (?P<name>{_QUOTED})(?P<rest>.*)")
_PROPERTY = re.compile(rf" ([\w-]+): ({_QUOTED}|\S+)")
_UNREADABLE = frozenset(
    {"Cc", "Cf", "Co", "Cs"}
)  # controls, formats (they can reverse a text), private-use icons, surrogates


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """Options of an observation.

    Attributes:
        viewport: include only what lies in the window.
        max_chars: the longest tree. A longer one is truncated after a line, and its last line says so.
        hidden: CSS selectors of elements to leave out, with their contents.
        boxes: also return the boxes of the elements.
    """

    viewport: bool = True
    max_chars: int = 60_000
    hidden: tuple[str, ...] = ()
    boxes: bool = False


class ElementBox(NamedTuple):
    """The part of an element inside the window, in CSS pixels from the window's upper left corner."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PageView:
    """An observation of a page: its tree, the number of elements with ids, and whether the tree was truncated.

    `boxes` are those of the elements that can be seen in the window, by their ids; empty unless they were asked for.
    """

    url: str
    title: str
    tree: str
    count: int
    truncated: bool = False
    boxes: Mapping[int, ElementBox] = field(default_factory=dict)


class Element(NamedTuple):
    """A line of a tree: depth from 0, the element's id (None for plain text), role, name and properties.

    Values of properties are strings without quotes.
    """

    depth: int
    id: int | None
    role: str
    name: str
    properties: dict[str, str]


def elements(tree: str) -> list[Element]:
    """Parse a tree. Lines that begin with three dots report omissions and are skipped."""
    matches = map(_LINE.fullmatch, tree.split("\n"))
    return [_element(match) for match in matches if match]


def _element(match: re.Match[str]) -> Element:
    properties = {name: unquoted(value) for name, value in _PROPERTY.findall(match["rest"])}
    number = None if match["id"] is None else int(match["id"])
    return Element(len(match["tabs"]), number, match["role"], unquoted(match["name"]), properties)


def quoted(text: str) -> str:
    """Quote a name or value for a tree, by Python's rules, except that only newlines are written as codes."""
    mark = '"' if "'" in text and '"' not in text else "'"
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    return mark + (escaped.replace("'", "\\'") if mark == "'" else escaped) + mark


def unquoted(text: str) -> str:
    """Undo `quoted`. A text without quotes is returned unchanged."""
    if text[:1] not in ("'", '"'):
        return text
    return re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] == "n" else escaped[1], text[1:-1])


def squeezed(text: str, maximum: int) -> str:
    """Write a text on one line, without unreadable characters; an ellipsis ends what is longer than `maximum`."""
    clean = " ".join(spaced(" ".join(text[: 4 * maximum].split())).split())
    return clean if len(clean) <= maximum else clean[:maximum].strip() + "…"


def spaced(line: str) -> str:
    """Remove unreadable characters from a line, and keep all its spaces."""
    plain = (" " if c.isspace() else c for c in line)
    return "".join(c for c in plain if " " <= c <= "~" or unicodedata.category(c) not in _UNREADABLE)

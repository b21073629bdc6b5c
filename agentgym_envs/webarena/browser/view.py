"""What an agent sees of a page, and how the lines of a tree are written and read."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_LINE = re.compile(rf"(?P<tabs>\t*)(?:\[(?P<id>\d+)\] )?(?P<role>[\w-]+) (?P<name>{_QUOTED})(?P<rest>.*)")
_PROPERTY = re.compile(rf" ([\w-]+): ({_QUOTED}|\S+)")
_UNREADABLE = frozenset({"Cc", "Cf", "Co", "Cs"})  # controls, formats (they can turn a text around), icons, halves


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
    """A line of a tree: depth counted from 0, the element's id (None of plain text), role, name and properties.

    The value of a property is what stands there, without its quotes if it has any.
    """

    depth: int
    id: int | None
    role: str
    name: str
    properties: dict[str, str]


def elements(tree: str) -> list[Element]:
    """A tree read back. Lines that say what was left out, which begin with three dots, are none."""
    found = map(_LINE.fullmatch, tree.split("\n"))
    return [_element(match) for match in found if match]


def _element(match: re.Match[str]) -> Element:
    properties = {name: unquoted(value) for name, value in _PROPERTY.findall(match["rest"])}
    number = None if match["id"] is None else int(match["id"])
    return Element(len(match["tabs"]), number, match["role"], unquoted(match["name"]), properties)


def quoted(text: str) -> str:
    """A name or value as a tree has it: by Python's rules, but that only newlines are written in codes."""
    mark = '"' if "'" in text and '"' not in text else "'"
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    return mark + (escaped.replace("'", "\\'") if mark == "'" else escaped) + mark


def unquoted(text: str) -> str:
    """What `quoted` was given. Anything without quotes is as it is."""
    if text[:1] not in ("'", '"'):
        return text
    return re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] == "n" else escaped[1], text[1:-1])


def squeezed(text: str, most: int) -> str:
    """A text on one line, without characters that cannot be read, with an ellipsis if it is longer than `most`."""
    clean = " ".join(spaced(" ".join(text[: 4 * most].split())).split())
    return clean if len(clean) <= most else clean[:most].strip() + "…"


def spaced(line: str) -> str:
    """A line without characters that cannot be read, with all its spaces."""
    plain = (" " if c.isspace() else c for c in line)
    return "".join(c for c in plain if " " <= c <= "~" or unicodedata.category(c) not in _UNREADABLE)

"""The subjects of the boards, read from `boards/*.txt`.

A file starts with lines "key = value". After them come topics: "[kind] text", each followed by lines with replies. "- "
marks a reply, or an argument for the first side of a choice; "+ " marks an argument for the other side. Lines that
start with "* " are remarks that fit any topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from agentgym_envs.webarena.sites.words import words

ALWAYS = ("news", "ask", "books")
"""Boards of every world."""
OTHERS = words(
    "astronomy boardgames coding cooking cycling films frugal gardening guitar hiking homerepair knitting pets "
    "photography railways"
)
"""Boards from which each world has a selection."""
FLAIRS = {
    "trouble": "Question",
    "choice": "Discussion",
    "wish": "Recommendation",
    "show": "Show and tell",
    "tip": "Guide",
    "news": "Link",
}


@dataclass(slots=True)
class Topic:
    """A topic of posts of one kind. `says` and `counters` are the replies."""

    kind: str
    text: str
    against: str = ""
    says: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Subject:
    """The subject of a board."""

    name: str
    title: str = ""
    about: str = ""
    sites: list[str] = field(default_factory=list)
    things: list[str] = field(default_factory=list)
    rules: list[tuple[str, str]] = field(default_factory=list)
    topics: list[Topic] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        """The kinds of its topics, in order."""
        return list(dict.fromkeys(topic.kind for topic in self.topics))


@cache
def subject(name: str) -> Subject:
    """Return the subject of a board. It is cached, so do not change it."""
    text = files(__package__).joinpath("boards", f"{name}.txt").read_text(encoding="utf-8")
    parsed = Subject(name)
    for line in _lines(text):
        _read(parsed, line)
    return parsed


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line)


def _read(parsed: Subject, line: str) -> None:
    mark, _, rest = line.partition(" ")
    if mark.startswith("["):
        first, _, second = rest.partition(" | ")
        parsed.topics.append(Topic(mark[1:-1], first, second))
    elif mark == "-":
        parsed.topics[-1].says.append(rest)
    elif mark == "+":
        parsed.topics[-1].counters.append(rest)
    elif mark == "*":
        parsed.remarks.append(rest)
    else:
        _set(parsed, mark, rest.removeprefix("= "))


def _set(parsed: Subject, key: str, value: str) -> None:
    match key:
        case "title":
            parsed.title = value
        case "about":
            parsed.about = value
        case "rule":
            short, _, long = value.partition(" | ")
            parsed.rules.append((short, long))
        case "sites":
            parsed.sites.extend(value.split(", "))
        case "things":
            parsed.things.extend(value.split(", "))

"""What the boards are about, read from `boards/*.txt`.

Such a file begins with lines "key = value". Then come topics: "[kind] text", with lines below them of what people say
to it: "- " for it (or simply to it), "+ " for the other side of a choice. Lines of "* " are remarks that fit anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from agentgym_envs.webarena.sites.words import words

ALWAYS = ("news", "ask", "books")
"""Boards that every world has."""
OTHERS = words(
    "astronomy boardgames coding cooking cycling films frugal gardening guitar hiking homerepair knitting pets "
    "photography railways"
)
"""Boards of which a world has some."""
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
    """Something that posts of a kind are about. `says` and `counters` are what people answer."""

    kind: str
    text: str
    against: str = ""
    says: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Subject:
    """All that is known about a board's subject."""

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
    """The subject of a board; not to be changed."""
    text = files(__package__).joinpath("boards", f"{name}.txt").read_text(encoding="utf-8")
    found = Subject(name)
    for line in _lines(text):
        _read(found, line)
    return found


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line)


def _read(found: Subject, line: str) -> None:
    mark, _, rest = line.partition(" ")
    if mark.startswith("["):
        first, _, second = rest.partition(" | ")
        found.topics.append(Topic(mark[1:-1], first, second))
    elif mark == "-":
        found.topics[-1].says.append(rest)
    elif mark == "+":
        found.topics[-1].counters.append(rest)
    elif mark == "*":
        found.remarks.append(rest)
    else:
        _set(found, mark, rest.removeprefix("= "))


def _set(found: Subject, key: str, value: str) -> None:
    match key:
        case "title":
            found.title = value
        case "about":
            found.about = value
        case "rule":
            short, _, long = value.partition(" | ")
            found.rules.append((short, long))
        case "sites":
            found.sites.extend(value.split(", "))
        case "things":
            found.things.extend(value.split(", "))

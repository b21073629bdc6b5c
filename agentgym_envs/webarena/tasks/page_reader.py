"""`PageReader`: an oracle's view of the page, from which it builds its commands."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import TypeAlias, TypeVar

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Click, Goto, Scroll, StopTask, TabFocus, Type, format_command
from agentgym_envs.webarena.browser.view import Element, elements

_T = TypeVar("_T")
Name: TypeAlias = "str | re.Pattern[str]"
"""The full name of an element, or a regular expression that matches the full name."""
Steps: TypeAlias = Generator[str, None, _T]
"""Commands of an oracle; the generator returns what it has read meanwhile."""
_FIELDS = ("textbox", "searchbox", "spinbutton", "combobox", "textarea")
_MOST_SCROLLS = 25
_LINES = ("row", "listitem", "article")


class PageReader:
    """The page as the agent sees it. Lookups raise NoOracle if there is no match.

    `after` is the name of an element: lookups then consider only the elements after the first one with this name.
    """

    def __init__(self) -> None:
        self.elements: list[Element] = []
        self.url = ""

    def look(self, tree: str, url: str) -> None:
        """Read another page."""
        self.elements, self.url = elements(tree), url

    def click(self, role: str, name: Name, *, after: Name | None = None, nth: int = 0) -> str:
        """Return the command that clicks the `nth` element with a role and name."""
        return format_command(Click(self._id(self.find(role, name, after=after, nth=nth))))

    def click_in(self, line: Name, role: str, name: Name) -> str:
        """Return the command that clicks an element in the row, list item or article that contains `line`."""
        return format_command(
            Click(self._id(_first(_named(self.line(line), role, name), f"{role} {name} beside {line}")))
        )

    def type(self, name: Name, text: str, *, enter: bool = False, after: Name | None = None, nth: int = 0) -> str:
        """Return the command that types into the field with this name."""
        named = (e for e in self.elements_after(after) if e.role in _FIELDS and _fits(name, e.name))
        return format_command(Type(self._id(_first(named, f"field {name}", nth)), text, enter))

    def choose(self, name: Name, option: Name, *, after: Name | None = None) -> str:
        """Return the command that chooses an option of a drop-down list."""
        field = self.find("combobox", name, after=after)
        index = self.elements.index(field)
        inside = _within(self.elements, index)
        return format_command(Click(self._id(_first(_named(inside, "option", option), f"option {option} of {name}"))))

    def expand(self, name: Name, *, after: Name | None = None) -> Iterator[str]:
        """Yield the command that expands a menu or section, or nothing if it is expanded already."""
        part = self.find("DisclosureTriangle", name, after=after)
        if part.properties.get("expanded") != "True":
            yield format_command(Click(self._id(part)))

    def turn_to(self, role: str, name: Name) -> Iterator[str]:
        """Yield the commands that turn the pages of a list to the one with this element."""
        while not self.has(role, name):
            yield self.click("link", "Next")

    def scroll_to(self, role: str, name: Name) -> Iterator[str]:
        """Yield the commands that scroll down until the page shows this element. Raises NoOracle if it never does."""
        for _ in range(_MOST_SCROLLS):
            if self.has(role, name):
                return
            yield format_command(Scroll("down"))
        raise NoOracle(f"no {role} {name} after {_MOST_SCROLLS} windows")

    def goto(self, url: str) -> str:
        """Return the command that opens a URL."""
        return format_command(Goto(url))

    def focus_tab(self, index: int) -> str:
        """Return the command that switches to a tab, counted from 0."""
        return format_command(TabFocus(index))

    def stop(self, answer: object = "") -> str:
        """Return the command that ends the task with an answer."""
        return format_command(StopTask(str(answer)))

    def has(self, role: str, name: Name, *, after: Name | None = None) -> bool:
        """Return whether there is an element with a role and name."""
        return any(True for _ in _named(self.elements_after(after), role, name))

    def find(self, role: str, name: Name, *, after: Name | None = None, nth: int = 0) -> Element:
        """Return the `nth` element with a role and name."""
        return _first(_named(self.elements_after(after), role, name), f"{role} {name}", nth)

    def all(self, role: str, name: Name | None = None, *, after: Name | None = None) -> list[Element]:
        """Return all elements with a role, and with a name if one is given."""
        return [e for e in self.elements_after(after) if e.role == role and (name is None or _fits(name, e.name))]

    def names(self, role: str, *, after: Name | None = None) -> list[str]:
        """Return the names of all elements with a role."""
        return [element.name for element in self.all(role, after=after)]

    def texts(self, *, after: Name | None = None) -> list[str]:
        """Return all texts of the page, in order."""
        return [element.name for element in self.elements_after(after) if element.name]

    def says(self, text: Name) -> bool:
        """Return whether the page has an element or text with this name."""
        return any(_fits(text, element.name) for element in self.elements)

    def elements_after(self, name: Name | None) -> list[Element]:
        """Return the elements after the first one with this name, or all elements without a name."""
        if name is None:
            return self.elements
        indices = (index for index, element in enumerate(self.elements) if _fits(name, element.name))
        return self.elements[_first(indices, str(name)) + 1 :]

    def value(self, label: Name) -> str:
        """Return the text after a label: the next different name ("Total" and then "$12.00")."""
        behind = self.elements_after(label)
        return _first((e.name for e in behind if e.name and not _fits(label, e.name)), f"a value of {label}")

    def search(self, pattern: str) -> tuple[str, ...]:
        """Return the groups of a regular expression in the first name that matches."""
        found = (re.search(pattern, element.name) for element in self.elements)
        groups: Sequence[str] = _first((match for match in found if match), pattern).groups()
        return tuple(groups)

    def line(self, name: Name, *, nth: int = 0) -> list[Element]:
        """Return the elements of the innermost row, list item or article that contains this name."""
        for index in self._indices(name, nth):
            depth = self.elements[index].depth
            for start in range(index, -1, -1):
                element = self.elements[start]
                if element.depth <= depth and element.role in _LINES:
                    return [element, *_within(self.elements, start)]
                depth = min(depth, element.depth)
        raise NoOracle(f"the page has no line with {name}")

    def lines(self, role: str = "row") -> list[list[Element]]:
        """Return all rows (or list items, articles) with their elements."""
        return [[e, *_within(self.elements, index)] for index, e in enumerate(self.elements) if e.role == role]

    def table(self, *, nth: int = 0) -> list[dict[str, str]]:
        """Return the rows of the `nth` table, each as a mapping from column names to texts."""
        indices = (index for index, element in enumerate(self.elements) if element.role in ("table", "grid"))
        inside = _within(self.elements, _first(indices, "table", nth))
        rows = [[e, *_within(inside, index)] for index, e in enumerate(inside) if e.role == "row"]
        heads = [e.name for e in rows[0] if e.role == "columnheader"] if rows else []
        cells = ([e.name for e in row if e.role in ("cell", "gridcell", "rowheader")] for row in rows[1:])
        return [dict(zip(heads, row, strict=False)) for row in cells]

    def _indices(self, name: Name, nth: int) -> Iterator[int]:
        indices = [index for index, element in enumerate(self.elements) if _fits(name, element.name)]
        return iter(indices[nth:])

    def _id(self, element: Element) -> int:
        if element.id is None:
            raise NoOracle(f"{element.role} {element.name!r} has no id")
        return element.id


def texts_of(line: Sequence[Element]) -> list[str]:
    """Return the texts of a line's elements."""
    return [element.name for element in line if element.name]


def _fits(name: Name, text: str) -> bool:
    return text == name if isinstance(name, str) else name.fullmatch(text) is not None


def _named(found: Sequence[Element], role: str, name: Name) -> Iterator[Element]:
    return (element for element in found if element.role == role and _fits(name, element.name))


def _within(found: Sequence[Element], index: int) -> list[Element]:
    """Return the descendants of the element at an index."""
    end = index + 1
    while end < len(found) and found[end].depth > found[index].depth:
        end += 1
    return list(found[index + 1 : end])


def _first(found: Iterator[_T], what: str, nth: int = 0) -> _T:
    for number, one in enumerate(found):
        if number == nth:
            return one
    raise NoOracle(f"the page has no {what}")

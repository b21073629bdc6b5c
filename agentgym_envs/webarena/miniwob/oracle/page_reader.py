"""What an oracle goes by: what is asked, and the page as the agent sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.actions import Action, Click, Type
from agentgym_envs.webarena.browser.view import Element

FIELDS = ("textbox", "searchbox", "spinbutton", "combobox")


@dataclass(frozen=True)
class WidgetReader:
    """A moment of an episode. `peek` is what the page itself says, where the text alone does not lead the oracle."""

    goal: str
    elements: tuple[Element, ...]
    peek: Any = None

    @cached_property
    def body(self) -> tuple[Element, ...]:
        """The elements after those that say what is asked."""
        asked, rest = _compact(self.goal), list(self.elements)
        while rest and (rest[0].role == "RootWebArea" or asked.startswith(_compact(rest[0].name))):
            if rest[0].role != "RootWebArea":
                asked = asked.removeprefix(_compact(rest[0].name))
            rest.pop(0)
            if not asked:
                break
        return tuple(rest)

    @property
    def texts(self) -> list[str]:
        """What the page says, in order."""
        return [element.name for element in self.body if element.name]

    @property
    def fields(self) -> list[Element]:
        """What can be typed into."""
        return self.all(*FIELDS)

    def all(self, *roles: str) -> list[Element]:
        """The elements of those roles that can be acted on."""
        return [element for element in self.body if element.role in roles and element.id is not None]

    def find(self, role: str, name: str | None = None) -> Element | None:
        """The first element of that role and name, if there is one."""
        named = (element for element in self.all(role) if name is None or element.name == name)
        return next(named, None)

    def one(self, role: str, name: str | None = None) -> Element:
        """The same; raises NoOracle if there is none."""
        found = self.find(role, name)
        if found is None:
            raise NoOracle(f"there is no {role} {name or ''} to be seen")
        return found

    def after(self, element: Element) -> Iterator[Element]:
        """What comes after an element."""
        place = next(place for place, other in enumerate(self.body) if other is element)
        return iter(self.body[place + 1 :])

    def asks(self, pattern: str) -> tuple[str, ...]:
        """The groups of a regular expression in what is asked. Raises NoOracle if it does not fit."""
        found = re.search(pattern, self.goal)
        if found is None:
            raise NoOracle(f"not understood: {self.goal!r}")
        return found.groups()


Solver: TypeAlias = Callable[[WidgetReader], Action]
"""The next action towards what is asked, in any state of the page that its own actions lead to. Raises NoOracle."""


def click(element: Element) -> Click:
    """Click an element."""
    assert element.id is not None
    return Click(element.id)


def write(element: Element, text: str, *, enter: bool = False) -> Type:
    """Type into an element."""
    assert element.id is not None
    return Type(element.id, text, enter)


def fill(wanted: Iterable[tuple[Element, str]], button: Element) -> Action:
    """Type into the first field that does not hold what is wanted, and press the button in the end."""
    missing = (write(field, text) for field, text in wanted if not holds(field, text))
    return next(missing, click(button))


def holds(field: Element, text: str) -> bool:
    """Whether a field holds a text. Of a password only its length is to be seen."""
    value = field.properties.get("value", "")
    return value == text or (bool(value) and set(value) == {"•"} and len(value) == len(text))


def on(element: Element, state: str) -> bool:
    """Whether an element is checked, expanded, selected, pressed, focused or disabled."""
    return element.properties.get(state, "").lower() == "true"


def number(text: str) -> int:
    """The first whole number in a text."""
    found = re.search(r"-?\d+", text)
    if found is None:
        raise NoOracle(f"there is no number in {text!r}")
    return int(found[0])


def _compact(text: str) -> str:
    return re.sub(r"\s+", "", text)

"""`WidgetReader`: an oracle's view of the objective and the page."""

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
    """The page at one step of an episode. `peek` is a value of JavaScript, for pages whose text is not enough."""

    goal: str
    elements: tuple[Element, ...]
    peek: Any = None

    @cached_property
    def body(self) -> tuple[Element, ...]:
        """The elements after the ones that show the objective."""
        objective, rest = _compact(self.goal), list(self.elements)
        while rest and (rest[0].role == "RootWebArea" or objective.startswith(_compact(rest[0].name))):
            if rest[0].role != "RootWebArea":
                objective = objective.removeprefix(_compact(rest[0].name))
            rest.pop(0)
            if not objective:
                break
        return tuple(rest)

    @property
    def texts(self) -> list[str]:
        """The texts of the page, in order."""
        return [element.name for element in self.body if element.name]

    @property
    def fields(self) -> list[Element]:
        """The elements that take text."""
        return self.all(*FIELDS)

    def all(self, *roles: str) -> list[Element]:
        """Return the elements with these roles that have an id."""
        return [element for element in self.body if element.role in roles and element.id is not None]

    def find(self, role: str, name: str | None = None) -> Element | None:
        """Return the first element with a role and name, or None."""
        named = (element for element in self.all(role) if name is None or element.name == name)
        return next(named, None)

    def one(self, role: str, name: str | None = None) -> Element:
        """Return the first element with a role and name. Raises NoOracle if there is no such element."""
        found = self.find(role, name)
        if found is None:
            raise NoOracle(f"the page has no {role} {name or ''}")
        return found

    def after(self, element: Element) -> Iterator[Element]:
        """Return an iterator over the elements after this one."""
        index = next(index for index, other in enumerate(self.body) if other is element)
        return iter(self.body[index + 1 :])

    def asks(self, pattern: str) -> tuple[str, ...]:
        """Return the groups of a regular expression in the objective. Raises NoOracle if it does not match."""
        found = re.search(pattern, self.goal)
        if found is None:
            raise NoOracle(f"the oracle cannot parse the objective: {self.goal!r}")
        return found.groups()


Solver: TypeAlias = Callable[[WidgetReader], Action]
"""Returns the next action towards the objective, in any state that its own actions lead to. Raises NoOracle."""


def click(element: Element) -> Click:
    """Return the action that clicks an element."""
    assert element.id is not None
    return Click(element.id)


def write(element: Element, text: str, *, enter: bool = False) -> Type:
    """Return the action that types into an element."""
    assert element.id is not None
    return Type(element.id, text, enter)


def fill(wanted: Iterable[tuple[Element, str]], button: Element) -> Action:
    """Type into the first field with a wrong value; click the button if all are right."""
    missing = (write(field, text) for field, text in wanted if not holds(field, text))
    return next(missing, click(button))


def holds(field: Element, text: str) -> bool:
    """Return whether a field has this value. A password field shows only its length."""
    value = field.properties.get("value", "")
    return value == text or (bool(value) and set(value) == {"•"} and len(value) == len(text))


def on(element: Element, state: str) -> bool:
    """Return whether an element is checked, expanded, selected, pressed, focused or disabled."""
    return element.properties.get(state, "").lower() == "true"


def number(text: str) -> int:
    """Return the first whole number in a text."""
    found = re.search(r"-?\d+", text)
    if found is None:
        raise NoOracle(f"there is no number in {text!r}")
    return int(found[0])


def _compact(text: str) -> str:
    return re.sub(r"\s+", "", text)

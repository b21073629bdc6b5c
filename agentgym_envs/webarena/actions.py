"""What an agent can do in a browser, as typed values: WebArena's actions, read from a command and written as one.

Source: WebArena (arXiv 2307.13854), whose action space with element ids this is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Click:
    """`click [id]`. An option of a drop-down list is chosen by clicking it."""

    id: int


@dataclass(frozen=True, slots=True)
class Type:
    """`type [id] [text] [0|1]`: replace what the field holds, and press Enter afterwards unless told 0."""

    id: int
    text: str
    enter: bool = True


@dataclass(frozen=True, slots=True)
class Hover:
    """`hover [id]`."""

    id: int


@dataclass(frozen=True, slots=True)
class Press:
    """`press [keys]`, for example `Control+a`, in Playwright's names of keys."""

    keys: str


@dataclass(frozen=True, slots=True)
class Scroll:
    """`scroll [up|down]`: by the height of the window."""

    direction: Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class NewTab:
    """`new_tab`: open an empty tab and go to it."""


@dataclass(frozen=True, slots=True)
class TabFocus:
    """`tab_focus [index]`: go to a tab, counted from 0."""

    index: int


@dataclass(frozen=True, slots=True)
class CloseTab:
    """`close_tab`: close this tab."""


@dataclass(frozen=True, slots=True)
class Goto:
    """`goto [url]`."""

    url: str


@dataclass(frozen=True, slots=True)
class GoBack:
    """`go_back`."""


@dataclass(frozen=True, slots=True)
class GoForward:
    """`go_forward`."""


@dataclass(frozen=True, slots=True)
class Wait:
    """`wait`: do nothing but look again."""


@dataclass(frozen=True, slots=True)
class Stop:
    """`stop [answer]`: the task is done; the answer may be empty, and is N/A if the task cannot be done."""

    answer: str = ""


Action: TypeAlias = (
    Click
    | Type
    | Hover
    | Press
    | Scroll
    | NewTab
    | TabFocus
    | CloseTab
    | Goto
    | GoBack
    | GoForward
    | Wait
    | Stop
)


def read(command: str) -> Action:
    """The action that a command is. Raises InvalidAction, whose text answers the model."""
    raise NotImplementedError


def write(action: Action) -> str:
    """The command of an action: `read(write(action)) == action`."""
    raise NotImplementedError

"""The panel of the environments in a browser: the page as a tree, what the agent is about to act on, and what is new.

It is read from the observations: no browser is started. A record whose info holds `screenshot`, a PNG or JPEG as a
`data:` address, has that shown above the tree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from agentgym_envs.errors import AgentGymError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.answers import grammar_of
from agentgym_envs.viewer.panels.replay import observations

_TAB = re.compile(r"Tab (\d+)( \(current\))?: (.*)")
_ID = re.compile(r"^(\t*)\[(\d+)\] ")
_PICTURE = re.compile(r"data:image/(?:png|jpeg);base64,[A-Za-z0-9+/=]+")
_MOST_LINES, _MOST_LINES_OF_ALL, _MOST_GONE, _MOST_LINE = 1_500, 80_000, 60, 2_000
_MOST_TABS = 50
_MOST_CHARS, _MOST_PICTURES = 500_000, 1_000_000

State = dict[str, Any]
Pairs = Sequence[Sequence[int | None]]


class PageObservation(NamedTuple):
    """An observation in its parts; `tabs` and `note` may be empty."""

    tabs: str
    tree: str
    url: str
    note: str


def from_record(trajectory: Trajectory) -> tuple[list[State], str | None]:
    """`shared`: `lines`, all lines of all trees once, without ids.

    A state holds `url`, `tabs` (each `title`, `current`), `lines` (pairs: a number in `shared.lines`, and the element's
    id or None), `fresh` (places in `lines` of what the page before did not have), `gone` (what it had besides, as
    numbers; the first ones of `lost`), `target` (the place of what the next action acts on, or None), `command`, `told`
    (a note of the environment), `left` (how many lines are left out here), `picture` and `page` (false if the
    observation is none, and the last page stays).
    """
    pages = _Pages(min(_MOST_LINES, 1 + _MOST_LINES_OF_ALL // (len(trajectory.turns) + 1)))
    states = list[State]()
    grammar = grammar_of(trajectory)
    commands = [*(_command(grammar, turn.action) for turn in trajectory.turns), None]
    for number, (text, command) in enumerate(zip(observations(trajectory), commands, strict=True)):
        before = states[-1] if states else None
        state = pages.read(text, before)
        picture = _picture(trajectory.turns[number - 1].info) if number else None
        states.append({**state, "picture": picture, "command": command, "target": _target(command, state["lines"])})
    states[0]["shared"] = {"lines": pages.lines}
    seen = any(state["page"] for state in states)
    return states, _bounded(states) if seen else "The record holds no page in a form that could be read."


class _Pages:
    """Takes pages apart; a line that was there before is kept once."""

    def __init__(self, most_lines: int) -> None:
        self._most_lines = most_lines
        self.lines = list[str]()
        self._places: dict[str, int] = {}
        self._room = _MOST_CHARS

    def read(self, text: str, before: State | None) -> State:
        """A page, and how it differs from the state before; what is no page leaves the last one as it was."""
        found = split_page(text)
        if found is None:
            kept = before or {"url": "", "tabs": [], "lines": [], "left": 0}
            return {**kept, "fresh": [], "gone": [], "lost": 0, "told": text[:_MOST_LINE], "page": False}
        lines = found.tree.split("\n")
        taken = [self._line(line) for line in lines[: self._most_lines]]
        pairs = [pair for pair in taken if pair is not None]
        fresh, gone = _difference(before["lines"] if before else None, pairs)
        state = {
            "url": found.url[:_MOST_LINE],
            "tabs": _tabs(found.tabs),
            "lines": pairs,
            "left": len(lines) - len(pairs),
        }
        state |= {"fresh": fresh, "gone": gone[:_MOST_GONE], "lost": len(gone)}
        return {**state, "told": found.note[:_MOST_LINE] or None, "page": True}

    def _line(self, line: str) -> list[int | None] | None:
        """The number of a line and its element's id; None if there is no room for another."""
        found = _ID.match(line)
        number = int(found[2][:9]) if found else None
        plain = (_ID.sub(r"\1", line) if found else line)[:_MOST_LINE]
        if plain not in self._places:
            if self._room < len(plain):
                return None
            self._room -= len(plain)
            self._places[plain] = len(self.lines)
            self.lines.append(plain)
        return [self._places[plain], number]


def split_page(text: str) -> PageObservation | None:
    """An observation in its parts; None if it is no page. WebArena's and AgentGym's own have the same form."""
    head, mark, body = text.partition("OBSERVATION:\n")
    body, url, rest = body.rpartition("\nURL: ")
    if head.strip() or not mark or not url:
        return None
    tabs, empty, tree = body.partition("\n\n")
    if not empty or not tabs.startswith("Tab "):
        tabs, tree = "", body
    return PageObservation(
        tabs, tree.strip("\n"), rest.partition("\n")[0], rest.rpartition("\nNOTE: ")[2] if "\nNOTE: " in rest else ""
    )


def _difference(before: Pairs | None, now: Pairs) -> tuple[list[int], list[int | None]]:
    """The places of the lines that are new, and the lines that are gone; ids do not count."""
    if before is None:
        return [], []
    old, new = [pair[0] for pair in before], [pair[0] for pair in now]
    fresh, gone = list[int](), list[int | None]()
    for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            gone += old[a:b]
            fresh += range(c, d)
    return fresh, gone


def _tabs(told: str) -> list[State]:
    tabs = [_TAB.fullmatch(part) for part in told.split(" | ")[:_MOST_TABS]]
    return [{"title": tab[3][:_MOST_LINE], "current": bool(tab[2])} for tab in tabs if tab]


def _command(grammar: ActionGrammar, action: str) -> str | None:
    """The command that an answer holds, None if it holds none."""
    try:
        return grammar.parse(action).command[:_MOST_LINE]
    except AgentGymError:
        return None


def _target(command: str | None, lines: Pairs) -> int | None:
    """The place of the line that a command names by its element's id."""
    from agentgym_envs.webarena.actions import parse_command

    try:
        number = getattr(parse_command(command), "id", None) if command else None
    except AgentGymError:
        return None
    return next((place for place, pair in enumerate(lines) if number is not None and pair[1] == number), None)


def _picture(info: Mapping[str, Any]) -> str | None:
    picture = info.get("screenshot")
    return picture if isinstance(picture, str) and _PICTURE.fullmatch(picture) else None


def _bounded(states: Sequence[State]) -> str | None:
    """Leave out pictures that are too many to send; a remark if there were some to leave out."""
    room, left = _MOST_PICTURES, 0
    for state in states:
        size = len(state["picture"] or "")
        if size > room:
            state["picture"], left = None, left + 1
        else:
            room -= size
    return f"{left} screenshots are left out, as they are too large together." if left else None

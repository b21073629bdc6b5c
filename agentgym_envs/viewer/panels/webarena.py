"""The panel of web environments: the page as a tree, the target of the next action, and the changes of the page.

It uses the record only and starts no browser. If the record has screenshots, the page's picture is shown above the
tree, with a box around the target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from agentgym_envs.errors import AgentGymError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.image_files import is_image_name
from agentgym_envs.rollout.replay import observations
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.answers import grammar_of

_TAB = re.compile(r"Tab (\d+)( \(current\))?: (.*)")
_ID = re.compile(r"^(\t*)\[(\d+)\] ")
_IMAGE = re.compile(r"data:image/(?:png|jpeg);base64,[A-Za-z0-9+/=]+")
_MAX_LINES, _MAX_TOTAL_LINES, _MAX_GONE, _MAX_LINE_CHARS = 1_500, 80_000, 60, 2_000
_MAX_TABS, _MAX_PIXELS, _POINT = 50, 100_000, 9
_MAX_CHARS, _MAX_IMAGE_CHARS = 500_000, 1_000_000

State = dict[str, Any]
Pairs = Sequence[Sequence[int | None]]


class PageObservation(NamedTuple):
    """The parts of an observation; `tabs` and `note` may be empty."""

    tabs: str
    tree: str
    url: str
    note: str


def from_record(trajectory: Trajectory) -> tuple[list[State], str | None]:
    """Make the states. `shared`: `lines`, the distinct lines of all trees, without ids.

    A state has `url`, `tabs` (each with `title` and `current`), `lines` (pairs: an index into `shared.lines`, and the
    id of the element or None), `fresh` (the indices in `lines` of new lines), `gone` (the first ones of the removed
    lines, as indices into `shared.lines`) and `lost` (their total number), `target` (the index in `lines` of the next
    action's target, or None), `command`, `note` (of the environment), `omitted` (the number of lines left out),
    `image` (the name of the screenshot's file, a `data:` URL, or None), `box` (that of the target in the image: x, y,
    width and height in pixels, or None), and `page` (False if the observation is not a page, and the last page is
    shown).
    """
    pages = _PageStates(min(_MAX_LINES, 1 + _MAX_TOTAL_LINES // (len(trajectory.turns) + 1)))
    states = list[State]()
    grammar = grammar_of(trajectory)
    commands = [*(_command(grammar, turn.action) for turn in trajectory.turns), None]
    for number, (text, command) in enumerate(zip(observations(trajectory), commands, strict=True)):
        before = states[-1] if states else None
        state = pages.read(text, before)
        info = trajectory.turns[number - 1].info if number else trajectory.meta
        action = _action(command)
        element: int | None = getattr(action, "id", None)
        picture = {"image": _image(info), "box": _box_around(action) or _box(info, element)}
        states.append({**state, **picture, "command": command, "target": _target(element, state["lines"])})
    states[0]["shared"] = {"lines": pages.lines}
    seen = any(state["page"] for state in states)
    return states, _bounded(states) if seen else "The record contains no page in a known format."


class _PageStates:
    """Converts pages to states. Repeated lines are stored once."""

    def __init__(self, max_lines: int) -> None:
        self._max_lines = max_lines
        self.lines = list[str]()
        self._indices: dict[str, int] = {}
        self._room = _MAX_CHARS

    def read(self, text: str, before: State | None) -> State:
        """The state of a page, with the changes since the state before. Other texts keep the last page."""
        found = split_page(text)
        if found is None:
            last = before or {"url": "", "tabs": [], "lines": [], "omitted": 0}
            return {**last, "fresh": [], "gone": [], "lost": 0, "note": text[:_MAX_LINE_CHARS], "page": False}
        lines = found.tree.split("\n")
        taken = [self._line(line) for line in lines[: self._max_lines]]
        pairs = [pair for pair in taken if pair is not None]
        fresh, gone = _difference(before["lines"] if before else None, pairs)
        state = {
            "url": found.url[:_MAX_LINE_CHARS],
            "tabs": _tabs(found.tabs),
            "lines": pairs,
            "omitted": len(lines) - len(pairs),
        }
        state |= {"fresh": fresh, "gone": gone[:_MAX_GONE], "lost": len(gone)}
        return {**state, "note": found.note[:_MAX_LINE_CHARS] or None, "page": True}

    def _line(self, line: str) -> list[int | None] | None:
        """The index of a line and the id of its element; None if the maximum size is reached."""
        found = _ID.match(line)
        number = int(found[2][:9]) if found else None
        plain = (_ID.sub(r"\1", line) if found else line)[:_MAX_LINE_CHARS]
        if plain not in self._indices:
            if self._room < len(plain):
                return None
            self._room -= len(plain)
            self._indices[plain] = len(self.lines)
            self.lines.append(plain)
        return [self._indices[plain], number]


def split_page(text: str) -> PageObservation | None:
    """Split an observation into its parts; None if it is not a page. WebArena and AgentGym use the same format."""
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
    """The indices of the new lines, and the removed lines. Ids are not compared."""
    if before is None:
        return [], []
    old, new = [pair[0] for pair in before], [pair[0] for pair in now]
    fresh, gone = list[int](), list[int | None]()
    for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            gone += old[a:b]
            fresh += range(c, d)
    return fresh, gone


def _tabs(text: str) -> list[State]:
    tabs = [_TAB.fullmatch(part) for part in text.split(" | ")[:_MAX_TABS]]
    return [{"title": tab[3][:_MAX_LINE_CHARS], "current": bool(tab[2])} for tab in tabs if tab]


def _command(grammar: ActionGrammar, action: str) -> str | None:
    """The command of an answer; None if it cannot be parsed."""
    try:
        return grammar.parse(action).command[:_MAX_LINE_CHARS]
    except AgentGymError:
        return None


def _action(command: str | None) -> Any:
    """The action of a command, which may name an element or a point; None if it cannot be parsed."""
    from agentgym_envs.webarena.actions import ALL_FORMS, parse_command

    try:
        return parse_command(command, ALL_FORMS) if command else None
    except AgentGymError:
        return None


def _target(element: int | None, lines: Pairs) -> int | None:
    """The index of the line with an element."""
    return next((index for index, pair in enumerate(lines) if element is not None and pair[1] == element), None)


def _image(info: Mapping[str, Any]) -> str | None:
    image = info.get("screenshot")
    return image if isinstance(image, str) and (is_image_name(image) or _IMAGE.fullmatch(image)) else None


def _box(info: Mapping[str, Any], element: int | None) -> list[float] | None:
    """The box of an element in the screenshot; None if it has none there."""
    boxes = info.get("boxes")
    box = boxes.get(str(element)) if isinstance(boxes, Mapping) else None
    return list(box) if isinstance(box, list | tuple) and len(box) == 4 and all(map(_is_pixel, box)) else None


def _box_around(action: Any) -> list[float] | None:
    """A small box around the point that an action by coordinates names."""
    x, y = getattr(action, "x", None), getattr(action, "y", None)
    return None if x is None or y is None else [max(0, x - _POINT), max(0, y - _POINT), 2 * _POINT, 2 * _POINT]


def _is_pixel(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < _MAX_PIXELS


def _bounded(states: Sequence[State]) -> str | None:
    """Remove images beyond the maximum total size; return a note if any were removed."""
    room, removed = _MAX_IMAGE_CHARS, 0
    for state in states:
        size = len(state["image"] or "")
        if size > room:
            state["image"], removed = None, removed + 1
        else:
            room -= size
    return f"{removed} screenshots are left out: together, they are too large." if removed else None

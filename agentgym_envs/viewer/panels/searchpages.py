"""The panel of Search with pages: the query and its results, the open page with the part in view, and what was read.

All of it is in the record, so nothing is searched and no page is opened again.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentgym_envs.rollout.replay import observations
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.viewer.answers import grammar_of, read_answer

_ACTION = re.compile(r"<(search|open|scroll|find|answer)>(.*?)</\1>", re.DOTALL)
_RESULT = re.compile(r"^\[([^\]\n]+)\] (.*)$", re.MULTILINE)
_PLACE = re.compile(r"^Part (\d+): (.*)$", re.MULTILINE)
_MAX_RESULTS, _MAX_PLACES, _MAX_ACTION_CHARS, _MAX_VIEW_CHARS = 60, 40, 4_000, 20_000

State = dict[str, Any]


def from_record(trajectory: Trajectory) -> tuple[list[State], str | None]:
    """Make the states.

    `shared`: `answers` (the accepted ones), and `gold`, each with `id`, and `title` and `turn` if it was read.

    A state describes the world after the action before it. `kind` is that of the action ("search", "open", "scroll",
    "find", "answer"; None for another text) and `text` its argument. `results` are those of the last search, each with
    `id`, `title`, `snippet` and `gold`, and `opened` if its page was opened; `query` is its query. `page` is the
    open page or None: `title`, `part`, `parts`, `text` (of the part) and `ids` (the passages in it, with `gold`).
    `places` are those of a `find` (`part` and `text`), `right` the verdict on an answer.
    """
    reader = _Reader(trajectory)
    states = [reader.state]
    for turn, reply in zip(trajectory.turns, observations(trajectory)[1:], strict=True):
        states.append(reader.read(turn.info, turn.action, reply))
    states[0]["shared"] = {"answers": _accepted(trajectory), "gold": reader.gold()}
    return states, None if reader.wanted else "Which passages hold the answer is not known for this task."


class _Reader:
    """Reads the turns one by one."""

    def __init__(self, trajectory: Trajectory) -> None:
        self.wanted = [str(id) for id in _listed(trajectory.task.data.get("passages"))]
        self.state: State = {"kind": None, "text": "", "query": None, "results": [], "page": None}
        self.state |= {"places": [], "right": None}
        self._grammar, self._turn = grammar_of(trajectory), 0
        self._read: dict[str, tuple[str, int]] = {}

    def read(self, info: Mapping[str, Any], action: str, reply: str) -> State:
        """The state after a turn. An invalid action changes nothing."""
        self._turn += 1
        kind, text = self._action(action) if not info.get("invalid_action") else (None, "")
        state = {**self.state, "kind": kind, "text": text, "places": [], "right": None}
        body = _unwrapped(reply)
        if kind == "search":
            state |= {"query": text, "results": list(self._results(body, info))}
        elif kind in ("open", "scroll"):
            state |= self._opened(kind, text, info, body)
        elif kind == "find":
            state["places"] = [{"part": int(part[:9]), "text": found} for part, found in _places(body)]
        elif kind == "answer":
            state["right"] = bool(info["success"]) if "success" in info else "right" in reply
        self.state = state
        return state

    def gold(self) -> list[State]:
        """The gold passages, and the turn in which each was read."""
        none: tuple[str | None, int | None] = None, None
        return [dict(zip(("id", "title", "turn"), (id, *self._read.get(id, none)), strict=True)) for id in self.wanted]

    def _action(self, action: str) -> tuple[str | None, str]:
        tags = _ACTION.findall((read_answer(action, self._grammar)[1] or action)[-_MAX_ACTION_CHARS:])
        return (tags[-1][0], tags[-1][1].strip()) if tags else (None, "")

    def _results(self, body: str, info: Mapping[str, Any]) -> Iterator[State]:
        """The results of a search. Their full ids are in the info; the shown ones may be shortened."""
        ids = [str(id) for id in _listed(info.get("hits"))]
        marks = list(_RESULT.finditer(body))[: min(_MAX_RESULTS, len(ids) or _MAX_RESULTS)]
        ends = [*(mark.start() for mark in marks[1:]), len(body)]
        for number, (mark, end) in enumerate(zip(marks, ends, strict=False)):
            id = ids[number] if number < len(ids) else mark[1]
            result = {"id": id, "title": html.unescape(mark[2]), "snippet": body[mark.end() : end].strip()}
            yield {**result, "gold": id in self.wanted, "opened": False}

    def _opened(self, kind: str, text: str, info: Mapping[str, Any], body: str) -> State:
        """The changes by an action that showed a part of a page."""
        where = info.get("page")
        if not isinstance(where, Mapping):
            return {}
        title, ids = str(where.get("title")), [str(id) for id in _listed(info.get("hits"))]
        for id in ids:
            if id in self.wanted:
                self._read.setdefault(id, (title, self._turn))
        shown = [{"id": id, "gold": id in self.wanted} for id in ids]
        view = "\n".join(body.split("\n")[2:])[:_MAX_VIEW_CHARS]  # after the lines with the title and the part
        page = {"title": title, "part": where.get("part"), "parts": where.get("parts"), "text": view, "ids": shown}
        results = [
            {**one, "opened": one["opened"] or (kind == "open" and one["id"] == text)} for one in self.state["results"]
        ]
        return {"page": page, "results": results}


def _places(body: str) -> list[tuple[str, str]]:
    return _PLACE.findall(body)[:_MAX_PLACES]


def _unwrapped(reply: str) -> str:
    return reply.strip().removeprefix("<information>").removesuffix("</information>").strip()


def _accepted(trajectory: Trajectory) -> list[str]:
    last = trajectory.turns[-1].info if trajectory.turns else {}
    return [str(answer) for answer in _listed(trajectory.task.data.get("answers") or last.get("answers"))]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []

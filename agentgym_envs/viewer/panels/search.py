"""Search's panel: the question, the queries and their passages, the gold passages, and the answers.

All of it is in the record, so nothing is searched again. A record has no scores of passages: they are shown in the
order of the observation, best first.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.rollout.replay import observations
from agentgym_envs.trajectory import Trajectory

_SEARCH_R1 = re.compile(r"^Doc (\d+) ?\(Title: (\".*?\"|.*?)\)\s", re.MULTILINE)
_SKYRL = re.compile(r"^Doc (\d+): (.*)$", re.MULTILINE)
_PLAIN = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_ACTION = re.compile(r"<(search|answer)>(.*?)</\1>", re.DOTALL)
_MAX_PASSAGES, _MAX_ACTION_CHARS = 60, 4_000

State = dict[str, Any]


def from_record(trajectory: Trajectory) -> tuple[list[State], str | None]:
    """Make the states.

    `shared`: `question`, `answers` (the accepted ones), `gold` (each with `id`, and `title` and `turn` if it was found)
    and `passages` (each with `id`, `title`, `text`, `gold`).

    A state describes the action before it: `query` or `answer` (else None), `passages` (indices into
    `shared.passages`), `right` (for an answer) and `found` (the number of gold passages found so far).
    """
    wanted = [str(id) for id in _listed(trajectory.task.data.get("passages"))]
    reader = _Reader(wanted)
    states: list[State] = [_state()]
    for turn, reply in zip(trajectory.turns, observations(trajectory)[1:], strict=True):
        states.append(reader.read(turn.info, turn.action, reply))
    gold = [{"id": id, "title": reader.titles.get(id), "turn": reader.turns.get(id)} for id in wanted]
    shared = {"question": trajectory.task.goal, "answers": _accepted(trajectory), "gold": gold}
    states[0]["shared"] = {**shared, "passages": reader.passages}
    remark = None if wanted else "Which passages hold the answer is not known for this task."
    return states, remark


class _Reader:
    """Reads the turns one by one. A repeated passage is stored once."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self.passages = list[State]()
        self.titles: dict[str, str] = {}
        self.turns: dict[str, int] = {}
        self._wanted = set(wanted)
        self._indices: dict[tuple[str, str, str], int] = {}
        self._turn = 0

    def read(self, info: Mapping[str, Any], action: str, reply: str) -> State:
        """The state after a turn."""
        self._turn += 1
        query, answer = _done(info, action)
        state = {**_state(), "query": query, "answer": answer}
        if query is not None:
            ids = [str(id) for id in _listed(info.get("hits"))]
            state["passages"] = [self._index(*passage) for passage in read_passages(reply, ids)]
        if answer is not None:
            state["right"] = bool(info["success"]) if "success" in info else "right" in reply
        return {**state, "found": len(self.turns)}

    def _index(self, id: str, title: str, text: str) -> int:
        gold = id in self._wanted
        if gold:
            self.titles.setdefault(id, title)
            self.turns.setdefault(id, self._turn)
        key = (id, title, text)
        if key not in self._indices:
            self._indices[key] = len(self.passages)
            self.passages.append({"id": id, "title": title, "text": text, "gold": gold})
        return self._indices[key]


def read_passages(reply: str, ids: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """Parse the passages of an observation, in any format of this suite, as (id, title, text).

    `ids` are their ids, in order; an unknown id is "".
    """
    text = _unwrapped(reply)
    form = next((form for form in (_SEARCH_R1, _PLAIN, _SKYRL) if form.search(text)), None)
    marks = list(_in_order(form, text))[:_MAX_PASSAGES] if form else []
    ends = [*(mark.start() for mark in marks[1:]), len(text)][: len(marks)]
    passages = []
    for index, (mark, end) in enumerate(zip(marks, ends, strict=True)):
        title = html.unescape(mark[2]).strip().strip('"')
        passages.append((ids[index] if index < len(ids) else "", title, text[mark.end() : end].strip()))
    return passages


def _in_order(form: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The heads numbered 1, 2, 3, ..., as the text of a passage may contain a line like a head."""
    heads = list[re.Match[str]]()
    for mark in form.finditer(text):
        if mark[1] == str(len(heads) + 1):
            heads.append(mark)
    return heads


def _unwrapped(reply: str) -> str:
    text = reply.strip().removeprefix("<information>").removesuffix("</information>").strip()
    if text.startswith('{"result"'):
        try:
            return str(json.loads(text)["result"])
        except (ValueError, KeyError):
            return text
    return text


def _done(info: Mapping[str, Any], action: str) -> tuple[str | None, str | None]:
    """The query or the answer of a turn, from its info, else from the last tag of its action."""
    if "query" in info or "answer" in info:
        return _text(info.get("query")), _text(info.get("answer"))
    tags = _ACTION.findall(action[-_MAX_ACTION_CHARS:]) if not info.get("invalid_action") else []
    if not tags:
        return None, None
    kind, text = tags[-1]
    return (text.strip(), None) if kind == "search" else (None, text.strip())


def _accepted(trajectory: Trajectory) -> list[str]:
    known = trajectory.task.data.get("answers") or (
        trajectory.turns[-1].info.get("answers") if trajectory.turns else ()
    )
    return [str(answer) for answer in _listed(known)]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _state() -> State:
    return {"query": None, "answer": None, "passages": [], "right": None, "found": 0}

"""Which episodes are asked for, in which order: the query of a list, and the search for words in the episodes."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from agentgym_envs.errors import UsageError
from agentgym_envs.viewer.index import EpisodeEntry, EpisodeSummary, IndexSnapshot, lines_of, to_text
from agentgym_envs.viewer.team import texts_within

MOST_ROWS = 1000
"""A page of a list has at most so many rows."""
SEARCH_SECONDS = 8.0
"""So long one request searches for words; the next goes on from there."""
_KEPT_SEARCHES, _KEPT_LISTS, _BATCH = 8, 4, 64

_VALUES: dict[str, Callable[[EpisodeEntry], Any]] = {
    "env": lambda entry: entry.facts.env,
    "group": lambda entry: entry.facts.group,
    "stop": lambda entry: entry.facts.stop,
    "policy": lambda entry: entry.facts.policy,
    "task": lambda entry: entry.facts.task,
    "source": lambda entry: entry.file.source.name,
    "step": lambda entry: None if entry.facts.step is None else str(entry.facts.step),
    "success": lambda entry: "1" if entry.facts.success else "0",
}
"""What a filter of that name is compared with; of several values of one filter, any may fit."""
_RANGES: dict[str, Callable[[EpisodeSummary], float]] = {
    "turns": lambda facts: facts.turns,
    "score": lambda facts: facts.score,
}
_SORTS: dict[str, Callable[[EpisodeEntry], Any]] = {
    "id": lambda entry: entry.id,
    "env": lambda entry: entry.facts.env,
    "group": lambda entry: entry.facts.group,
    "score": lambda entry: entry.facts.score,
    "turns": lambda entry: entry.facts.turns,
    "stop": lambda entry: entry.facts.stop,
    "step": lambda entry: entry.facts.step,
    "reward": lambda entry: entry.facts.reward,
    "task": lambda entry: entry.facts.task,
}
_PLAIN = {"offset", "limit", "sort", "desc", "q", "success"} | {
    f"{end}_{name}" for end in ("min", "max") for name in _RANGES
}


class Query(NamedTuple):
    """Filters, order and search of a list; equal queries give equal lists of the same snapshot."""

    values: tuple[tuple[str, frozenset[str]], ...] = ()
    ranges: tuple[tuple[str, float, float], ...] = ()
    sort: str = "id"
    descending: bool = False
    text: str = ""

    def fits(self, entry: EpisodeEntry) -> bool:
        """Whether an episode passes the filters; the text is searched for elsewhere."""
        return all(_VALUES[name](entry) in wanted for name, wanted in self.values) and all(
            low <= _RANGES[name](entry.facts) <= high for name, low, high in self.ranges
        )


class PageQuery(NamedTuple):
    """A query and the part of its list that is shown."""

    query: Query
    offset: int = 0
    limit: int = 100


class Selection(NamedTuple):
    """Episodes in order. `note` says if the search was not through."""

    entries: list[EpisodeEntry]
    note: str | None = None


def parse_page(items: Sequence[tuple[str, str]]) -> PageQuery:
    """Read the parameters of a list, as (name, value); one without a value asks for nothing. Raises UsageError."""
    given: dict[str, list[str]] = {}
    for name, value in items:
        if name not in _PLAIN and name not in _VALUES:
            raise UsageError(f"there is no parameter {name!r}; there are {', '.join(sorted(_PLAIN | set(_VALUES)))}")
        if value != "":
            given.setdefault(name, []).append(value)
    if twice := next((name for name in given if name in _PLAIN and len(given[name]) > 1), None):
        raise UsageError(f"{twice} is given twice, and takes one value")
    single = {name: values[0] for name, values in given.items() if name in _PLAIN}
    query = Query(
        values=tuple((name, frozenset(given[name])) for name in _VALUES if name in given),
        ranges=_read_ranges(single),
        sort=_choice(single, "sort", "id", tuple(_SORTS)),
        descending=_choice(single, "desc", "0", ("0", "1")) == "1",
        text=single.get("q", ""),
    )
    _choice(single, "success", "0", ("0", "1"))
    return PageQuery(query, _count(single, "offset", 0, None), _count(single, "limit", 100, MOST_ROWS))


def _read_ranges(single: Mapping[str, str]) -> tuple[tuple[str, float, float], ...]:
    ranges = (
        (name, _number(single, f"min_{name}", -math.inf), _number(single, f"max_{name}", math.inf)) for name in _RANGES
    )
    return tuple(bounds for bounds in ranges if bounds[1:] != (-math.inf, math.inf))


def _choice(single: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    value = single.get(name, default)
    if value not in choices:
        raise UsageError(f"{name} is one of {', '.join(choices)}, not {value!r}")
    return value


def _number(single: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(single.get(name, default))
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise UsageError(f"{name} is a number, not {single[name]!r}")
    return value


def _count(single: Mapping[str, str], name: str, default: int, most: int | None) -> int:
    text = single.get(name, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > 15 or (most is not None and int(text) > most):
        raise UsageError(f"{name} is a whole number from 0{f' to {most}' if most else ''}, not {text!r}")
    return int(text)


@dataclass(slots=True)
class _Searched:
    """Which episodes were searched for a text, up to which number, and which hold it."""

    upto: int
    found: set[int]
    lock: threading.Lock = field(default_factory=threading.Lock)


class Lists:
    """Makes lists of a snapshot and remembers the last few, so that scrolling neither sorts nor searches again."""

    def __init__(self, search_seconds: float = SEARCH_SECONDS) -> None:
        self._seconds = search_seconds
        self._searches: OrderedDict[str, _Searched] = OrderedDict()
        self._lists: OrderedDict[tuple[int, Query], Selection] = OrderedDict()
        self._lock = threading.Lock()

    def select(self, snapshot: IndexSnapshot, query: Query) -> Selection:
        """The episodes that a query asks for, in its order."""
        with self._lock:
            known = self._lists.get((snapshot.version, query))
        if known is None:  # made without the lock: a search takes long, and no other list waits for it
            known = self._select(snapshot, query)
            if known.note is None:
                with self._lock:
                    _keep(self._lists, (snapshot.version, query), known, _KEPT_LISTS)
        return known

    def _select(self, snapshot: IndexSnapshot, query: Query) -> Selection:
        entries, note = snapshot.entries, None
        if query.text:
            with self._lock:
                searched = self._searches.get(query.text) or _Searched(0, set())
                _keep(self._searches, query.text, searched, _KEPT_SEARCHES)
            with searched.lock:
                entries, note = self._search(entries, query.text, searched)
        return Selection(ordered([entry for entry in entries if query.fits(entry)], query), note)

    def _search(
        self, entries: list[EpisodeEntry], text: str, searched: _Searched
    ) -> tuple[list[EpisodeEntry], str | None]:
        left = [entry for entry in entries if entry.id >= searched.upto]
        holds, end = matcher(text), time.monotonic() + self._seconds
        for done, (entry, line) in enumerate(lines_of(left)):
            if done and done % _BATCH == 0 and time.monotonic() > end:  # some are searched in any case
                break
            if holds(line):
                searched.found.add(entry.id)
            searched.upto = entry.id + 1
        else:
            searched.upto = left[-1].id + 1 if left else searched.upto
        found = [entry for entry in entries if entry.id in searched.found]
        unseen = sum(entry.id >= searched.upto for entry in left)
        note = f"{len(entries) - unseen:,} of {len(entries):,} episodes were searched so far" if unseen else None
        return found, note


def ordered(entries: list[EpisodeEntry], query: Query) -> list[EpisodeEntry]:
    """Episodes in the order of a query; those without the value come last in either direction."""
    value = _SORTS[query.sort]
    known = [entry for entry in entries if _is_known(value(entry))]
    unknown = [entry for entry in entries if not _is_known(value(entry))]
    return [*sorted(known, key=value, reverse=query.descending), *unknown]


def _is_known(value: Any) -> bool:
    return value is not None and value == value  # NaN is in no order


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    """Keep the last few."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


class _SaidTurn(msgspec.Struct, gc=False):
    observation: Any = ""
    action: Any = ""


class _SaidTask(msgspec.Struct, gc=False):
    id: Any = ""
    goal: Any = ""


class _SaidMeta(msgspec.Struct, gc=False):
    attempts: Any = None
    tries: Any = None  # the name of `attempts` in schema 1


class _Said(msgspec.Struct, gc=False):
    """What is told or written in a line of trajectories, or in a record of AgentGym-RL."""

    instructions: Any = ""
    turns: list[_SaidTurn] = []
    final_observation: Any = ""
    error: Any = ""
    task: _SaidTask = msgspec.field(default_factory=_SaidTask)
    meta: _SaidMeta = msgspec.field(default_factory=_SaidMeta)
    conversations: list[dict[str, Any]] = []


_decode = msgspec.json.Decoder(_Said).decode


def matcher(text: str) -> Callable[[bytes], bool]:
    """Says of the bytes of an episode whether something told or written in it holds `text`, in whatever case.

    For ASCII only ASCII's letters have two cases, so that bytes can be compared; most episodes are left out without
    being decoded, as their raw JSON does not hold the text.
    """
    if not text.isascii():
        return lambda line: any(text.lower() in said.lower() for said in texts_of(line))
    needle, raw = text.lower().encode(), json.dumps(text)[1:-1].lower()
    raws = {raw.encode(), json.dumps(raw)[1:-1].encode()}  # as text, and as text within the JSON that a team wrote

    def holds(line: bytes) -> bool:
        low = line.lower()
        return any(raw in low for raw in raws) and any(needle in _bytes(said).lower() for said in texts_of(line))

    return holds


def texts_of(line: bytes) -> list[str]:
    """Everything that is told or written in an episode, from its bytes."""
    try:
        said = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            said = msgspec.convert(json.loads(to_text(line)), _Said)
        except (ValueError, RecursionError, OverflowError):  # the file became another one just now
            return []
    turns = (text for turn in said.turns for text in (turn.observation, turn.action))
    messages = (message.get("content") for message in said.conversations)
    told = (said.instructions, *turns, said.final_observation, said.error, said.task.id, said.task.goal, *messages)
    texts = [text for text in (*told, *_tried(said.meta.attempts or said.meta.tries)) if isinstance(text, str)]
    return [*texts, *(own for text in texts for own in texts_within(text))]


def _tried(tries: Any) -> Iterator[Any]:
    """What was told and written in the earlier tries of an agent that learns from them."""
    for one in tries if isinstance(tries, list) else ():
        made = one if isinstance(one, dict) else {}
        yield made.get("lesson")
        turns = made.get("turns")
        for turn in turns if isinstance(turns, list) else ():
            if isinstance(turn, dict):
                yield from (turn.get("observation"), turn.get("action"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

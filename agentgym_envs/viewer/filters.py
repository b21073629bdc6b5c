"""Selection of episodes: the query of a list with filters and order, and the full-text search."""

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
from agentgym_envs.export.atif_import import texts_of_step
from agentgym_envs.viewer.figures import FIGURES, Figures
from agentgym_envs.viewer.index import EpisodeEntry, EpisodeSummary, IndexSnapshot, lines_of, to_text
from agentgym_envs.viewer.team import texts_within

MAX_ROWS = 1000
"""The most rows in one response."""
SEARCH_SECONDS = 8.0
"""Time limit of the text search in one request; the next request continues it."""
_CACHED_SEARCHES, _CACHED_LISTS, _BATCH = 8, 4, 64

_VALUES: dict[str, Callable[[EpisodeEntry], Any]] = {
    "env": lambda entry: entry.summary.env,
    "group": lambda entry: entry.summary.group,
    "stop": lambda entry: entry.summary.stop,
    "policy": lambda entry: entry.summary.policy,
    "task": lambda entry: entry.summary.task,
    "source": lambda entry: entry.file.source.name,
    "step": lambda entry: None if entry.summary.step is None else str(entry.summary.step),
    "seed": lambda entry: str(entry.summary.seed),
    "success": lambda entry: "1" if entry.summary.success else "0",
}
"""The value that a filter compares, by name. An episode must match one of the values of each filter."""
_RANGES: dict[str, Callable[[EpisodeSummary], float]] = {
    "turns": lambda summary: summary.turns,
    "score": lambda summary: summary.score,
}
_SORTS: dict[str, Callable[[EpisodeEntry], Any]] = {
    "id": lambda entry: entry.id,
    "env": lambda entry: entry.summary.env,
    "group": lambda entry: entry.summary.group,
    "score": lambda entry: entry.summary.score,
    "turns": lambda entry: entry.summary.turns,
    "stop": lambda entry: entry.summary.stop,
    "step": lambda entry: entry.summary.step,
    "reward": lambda entry: entry.summary.reward,
    "task": lambda entry: entry.summary.task,
}
_OF_NOTES = ("tag", "noted")
"""Filters by notes, which may change while the episodes stay as they are."""
_SINGLE = {"offset", "limit", "sort", "desc", "q", "success", "noted"} | {
    f"{end}_{name}" for end in ("min", "max") for name in _RANGES
}


class Query(NamedTuple):
    """The filters, order and search text of a list. Equal queries give equal lists of the same snapshot.

    A note must have one of `tags`; `noted` is "1" for episodes with a note, "0" for the others.
    """

    values: tuple[tuple[str, frozenset[str]], ...] = ()
    ranges: tuple[tuple[str, float, float], ...] = ()
    sort: str = "id"
    descending: bool = False
    text: str = ""
    tags: frozenset[str] = frozenset()
    noted: str = ""

    def matches(self, entry: EpisodeEntry) -> bool:
        """True if an episode passes the filters; the text is not searched here."""
        return all(_VALUES[name](entry) in wanted for name, wanted in self.values) and all(
            low <= _RANGES[name](entry.summary) <= high for name, low, high in self.ranges
        )


class PageQuery(NamedTuple):
    """A query, and the offset and length of the requested part of its list."""

    query: Query
    offset: int = 0
    limit: int = 100


class Selection(NamedTuple):
    """Episodes in order. `note` is set if the search is not complete."""

    entries: list[EpisodeEntry]
    note: str | None = None


def parse_page(items: Sequence[tuple[str, str]]) -> PageQuery:
    """Parse the parameters of a list, as (name, value). Empty values are ignored. Raises UsageError."""
    given: dict[str, list[str]] = {}
    for name, value in items:
        if name not in (known := {*_SINGLE, *_VALUES, *_OF_NOTES}):
            raise UsageError(f"there is no parameter {name!r}; choose one of {', '.join(sorted(known))}")
        if value != "":
            given.setdefault(name, []).append(value)
    if twice := next((name for name in given if name in _SINGLE and len(given[name]) > 1), None):
        raise UsageError(f"{twice} is given twice, and takes one value")
    single = {name: values[0] for name, values in given.items() if name in _SINGLE}
    query = Query(
        values=tuple((name, frozenset(given[name])) for name in _VALUES if name in given),
        ranges=_read_ranges(single),
        sort=_choice(single, "sort", "id", (*_SORTS, *FIGURES)),
        descending=_choice(single, "desc", "0", ("0", "1")) == "1",
        text=single.get("q", ""),
        tags=frozenset(given.get("tag", ())),
        noted=_choice(single, "noted", "", ("", "0", "1")),
    )
    _choice(single, "success", "0", ("0", "1"))
    return PageQuery(query, _count(single, "offset", 0, None), _count(single, "limit", 100, MAX_ROWS))


def _read_ranges(single: Mapping[str, str]) -> tuple[tuple[str, float, float], ...]:
    ranges = (
        (name, _number(single, f"min_{name}", -math.inf), _number(single, f"max_{name}", math.inf)) for name in _RANGES
    )
    return tuple(bounds for bounds in ranges if bounds[1:] != (-math.inf, math.inf))


def _choice(single: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    value = single.get(name, default)
    if value not in choices:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def _number(single: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(single.get(name, default))
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise UsageError(f"{name} must be a number, not {single[name]!r}")
    return value


def _count(single: Mapping[str, str], name: str, default: int, maximum: int | None) -> int:
    text = single.get(name, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > 15 or (maximum is not None and int(text) > maximum):
        raise UsageError(f"{name} must be a whole number from 0{f' to {maximum}' if maximum else ''}, not {text!r}")
    return int(text)


@dataclass(slots=True)
class _TextSearch:
    """The state of the search for a text: the next episode to search, and the matching ones."""

    next_id: int
    found: set[int]
    lock: threading.Lock = field(default_factory=threading.Lock)


class Lists:
    """Lists of a snapshot. The last few are cached, so that scrolling does not sort or search again."""

    def __init__(self, search_seconds: float = SEARCH_SECONDS, figures: Figures | None = None) -> None:
        self._seconds, self._figures = search_seconds, figures or Figures()
        self._searches: OrderedDict[str, _TextSearch] = OrderedDict()
        self._lists: OrderedDict[tuple[int, Query], Selection] = OrderedDict()
        self._lock = threading.Lock()

    def select(self, snapshot: IndexSnapshot, query: Query) -> Selection:
        """The episodes that match a query, in its order."""
        with self._lock:
            known = self._lists.get((snapshot.version, query))
        if known is None:  # without the lock, so that other lists do not wait for a long search
            known = self._select(snapshot, query)
            if known.note is None:
                with self._lock:
                    _cache(self._lists, (snapshot.version, query), known, _CACHED_LISTS)
        return known

    def _select(self, snapshot: IndexSnapshot, query: Query) -> Selection:
        entries, note = snapshot.entries, None
        if query.text:
            with self._lock:
                search = self._searches.get(query.text) or _TextSearch(0, set())
                _cache(self._searches, query.text, search, _CACHED_SEARCHES)
            with search.lock:
                entries, note = self._search(entries, query.text, search)
        if query.tags or query.noted:
            entries = [entry for entry in entries if _has_note(snapshot, entry, query)]
        found = [entry for entry in entries if query.matches(entry)]
        if query.sort not in FIGURES:
            return Selection(ordered(found, query, _SORTS[query.sort]), note)
        figures = self._figures.of(found)
        return Selection(ordered(found, query, lambda entry: getattr(figures[entry.id], query.sort)), note)

    def _search(
        self, entries: list[EpisodeEntry], text: str, search: _TextSearch
    ) -> tuple[list[EpisodeEntry], str | None]:
        remaining = [entry for entry in entries if entry.id >= search.next_id]
        contains, end = matcher(text), time.monotonic() + self._seconds
        for done, (entry, line) in enumerate(lines_of(remaining)):
            if done and done % _BATCH == 0 and time.monotonic() > end:  # at least one batch is searched
                break
            if contains(line):
                search.found.add(entry.id)
            search.next_id = entry.id + 1
        else:
            search.next_id = remaining[-1].id + 1 if remaining else search.next_id
        found = [entry for entry in entries if entry.id in search.found]
        unseen = sum(entry.id >= search.next_id for entry in remaining)
        note = f"{len(entries) - unseen:,} of {len(entries):,} episodes were searched so far" if unseen else None
        return found, note


def _has_note(snapshot: IndexSnapshot, entry: EpisodeEntry, query: Query) -> bool:
    note = snapshot.notes.get(entry.id)
    noted = note is not None and bool(note.text or note.tags)
    has_tag = not query.tags or (note is not None and not query.tags.isdisjoint(note.tags))
    return has_tag and (query.noted == "" or noted == (query.noted == "1"))


def ordered(entries: list[EpisodeEntry], query: Query, value: Callable[[EpisodeEntry], Any]) -> list[EpisodeEntry]:
    """Sort episodes by a value. Those without it come last in both directions."""
    known = [entry for entry in entries if _is_known(value(entry))]
    unknown = [entry for entry in entries if not _is_known(value(entry))]
    return [*sorted(known, key=value, reverse=query.descending), *unknown]


def _is_known(value: Any) -> bool:
    return value is not None and value == value  # NaN cannot be sorted


def _cache(cache: OrderedDict[Any, Any], key: Any, value: Any, maximum: int) -> None:
    """Add an item to a cache with a maximum size."""
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > maximum:
        cache.popitem(last=False)


class _TurnTexts(msgspec.Struct, gc=False):
    observation: Any = ""
    action: Any = ""


class _TaskTexts(msgspec.Struct, gc=False):
    id: Any = ""
    goal: Any = ""


class _MetaTexts(msgspec.Struct, gc=False):
    attempts: Any = None
    tries: Any = None  # the name of `attempts` in schema 1


class _EpisodeTexts(msgspec.Struct, gc=False):
    """The searchable texts of a trajectory line, a record of AgentGym-RL, or an ATIF document."""

    instructions: Any = ""
    turns: list[_TurnTexts] = []
    final_observation: Any = ""
    error: Any = ""
    task: _TaskTexts = msgspec.field(default_factory=_TaskTexts)
    meta: _MetaTexts = msgspec.field(default_factory=_MetaTexts)
    conversations: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []


_decode = msgspec.json.Decoder(_EpisodeTexts).decode


def matcher(text: str) -> Callable[[bytes], bool]:
    """Return a case-insensitive test for `text` in the texts of an episode, given as bytes.

    ASCII text is compared as bytes. Most episodes are then rejected without decoding, as their raw JSON does not
    contain the text.
    """
    if not text.isascii():
        return lambda line: any(text.lower() in one.lower() for one in texts_of(line))
    needle, raw = text.lower().encode(), json.dumps(text)[1:-1].lower()
    raws = {raw.encode(), json.dumps(raw)[1:-1].encode()}  # as a text, and inside the JSON of a team's joint action

    def contains(line: bytes) -> bool:
        low = line.lower()
        return any(raw in low for raw in raws) and any(needle in _bytes(one).lower() for one in texts_of(line))

    return contains


def texts_of(line: bytes) -> list[str]:
    """All searchable texts of an episode, from its bytes."""
    try:
        row = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            row = msgspec.convert(json.loads(to_text(line)), _EpisodeTexts)
        except (ValueError, RecursionError, OverflowError):  # the file has just been replaced
            return []
    turns = (text for turn in row.turns for text in (turn.observation, turn.action))
    messages = (message.get("content") for message in row.conversations)
    steps = (text for step in row.steps for text in texts_of_step(step))
    found = (row.instructions, *turns, row.final_observation, row.error, row.task.id, row.task.goal, *messages, *steps)
    attempts = _texts_of_attempts(row.meta.attempts or row.meta.tries)
    texts = [text for text in (*found, *attempts) if isinstance(text, str)]
    return [*texts, *(own for text in texts for own in texts_within(text))]


def _texts_of_attempts(attempts: Any) -> Iterator[Any]:
    """The texts of the earlier attempts of a reflecting agent."""
    for one in attempts if isinstance(attempts, list) else ():
        attempt = one if isinstance(one, dict) else {}
        yield attempt.get("lesson")
        turns = attempt.get("turns")
        for turn in turns if isinstance(turns, list) else ():
            if isinstance(turn, dict):
                yield from (turn.get("observation"), turn.get("action"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

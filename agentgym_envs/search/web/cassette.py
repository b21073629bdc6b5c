"""Recordings of web searches, with which a run repeats offline: a JSONL file, one search a line.

    {"engine": "brave", "query": "capital of Peru", "count": 10, "results": [["Lima", "https://...", "Lima is ..."]]}

A recording holds the results and not the reply, so it holds no key. Processes may append to the same file.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentgym_envs.errors import RetrieverError
from agentgym_envs.recording import Recording
from agentgym_envs.search.web.vendors import WebResult

_Key = tuple[str, str]


class _Recorded(NamedTuple):
    asked: int
    results: list[WebResult]


class Cassette:
    """Recorded searches by engine and query. The latest recording of a query counts."""

    def __init__(self, path: Path) -> None:
        """Open or begin a recording. Raises UsageError if it cannot be read or a line is malformed."""
        self._lock = threading.Lock()
        self._recorded: dict[_Key, _Recorded] = {}
        self._file = Recording(path, self._add, "a recorded search")

    def __len__(self) -> int:
        return len(self._recorded)

    def find(self, engine: str, query: str, count: int) -> list[WebResult] | None:
        """Return up to `count` recorded results; None if the query was not recorded, or for fewer results."""
        with self._lock:
            if (engine, query) not in self._recorded:
                self._file.read_new()
            recorded = self._recorded.get((engine, query))
        return None if recorded is None or recorded.asked < count else recorded.results[:count]

    def record(self, engine: str, query: str, count: int, results: Sequence[WebResult]) -> None:
        """Append a search. Raises RetrieverError if it cannot be written."""
        row = {"engine": engine, "query": query, "count": count, "results": [list(result) for result in results]}
        with self._lock:
            try:
                self._file.append(row)
            except OSError as error:
                raise RetrieverError(f"the cassette {self._file.path} cannot be written: {error.strerror}") from None
            self._recorded[engine, query] = _Recorded(count, list(results))

    def _add(self, row: Any) -> None:
        results = [WebResult(*map(_text, result)) for result in row["results"]]
        self._recorded[_text(row["engine"]), _text(row["query"])] = _Recorded(int(row["count"]), results)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value

"""Recordings of web searches, with which a run repeats offline: a JSONL file, one search a line.

    {"engine": "brave", "query": "capital of Peru", "count": 10, "results": [["Lima", "https://...", "Lima is ..."]]}

A recording holds the results and not the reply, so it holds no key. Processes may append to the same file.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.web.vendors import WebResult

_Key = tuple[str, str]


class _Recorded(NamedTuple):
    asked: int
    results: list[WebResult]


class Cassette:
    """Recorded searches by engine and query. The latest recording of a query counts."""

    def __init__(self, path: Path) -> None:
        """Open or begin a recording. Raises UsageError if it cannot be read or a line is malformed."""
        self.path, self._lock = path, threading.Lock()
        self._recorded: dict[_Key, _Recorded] = {}
        self._offset = self._line = 0
        try:
            self._read_new()
        except OSError as error:
            raise UsageError(f"the cassette {path} cannot be read: {error.strerror}") from None

    def __len__(self) -> int:
        return len(self._recorded)

    def find(self, engine: str, query: str, count: int) -> list[WebResult] | None:
        """Return up to `count` recorded results; None if the query was not recorded, or for fewer results."""
        with self._lock:
            if (engine, query) not in self._recorded:
                self._read_new()
            recorded = self._recorded.get((engine, query))
        return None if recorded is None or recorded.asked < count else recorded.results[:count]

    def record(self, engine: str, query: str, count: int, results: Sequence[WebResult]) -> None:
        """Append a search. Raises RetrieverError if it cannot be written."""
        row = {"engine": engine, "query": query, "count": count, "results": [list(result) for result in results]}
        line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with open(self.path, "a+b", buffering=0) as file:  # one write, so that lines of processes do not mix
                    file.write(line if _ends_a_line(file) else b"\n" + line)
            except OSError as error:
                raise RetrieverError(f"the cassette {self.path} cannot be written: {error.strerror}") from None
            self._recorded[engine, query] = _Recorded(count, list(results))

    def _read_new(self) -> None:
        """Read the lines that were added since the last time, also by other processes."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):  # another process is writing it, or was killed while it was
                    break
                self._offset, self._line = self._offset + len(line), self._line + 1
                self._add(line)

    def _add(self, line: bytes) -> None:
        try:
            row = json.loads(line)
        except ValueError:  # of a process that was killed while it wrote
            return
        try:
            results = [WebResult(*map(_text, result)) for result in row["results"]]
            self._recorded[_text(row["engine"]), _text(row["query"])] = _Recorded(int(row["count"]), results)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UsageError(f"{self.path}:{self._line}: this is not a recorded search") from None


def _ends_a_line(file: FileIO) -> bool:
    end = file.seek(0, os.SEEK_END)
    if not end:
        return True
    file.seek(end - 1)
    return file.read(1) == b"\n"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value

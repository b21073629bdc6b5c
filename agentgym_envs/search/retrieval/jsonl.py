"""Reading a corpus in Search-R1's format: one JSON object a line, optionally compressed by gzip.

An object holds `id` and `contents`, whose first line is the title in double quotes, or `id`, `title` and `text`. An id
may be a whole number. Other keys are ignored, and blank lines are skipped.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Passage

MAX_LINE_BYTES = 2**24
"""The longest line that is read into memory."""
_GZIP = b"\x1f\x8b"


class CorpusRow(NamedTuple):
    """A passage, its line number (from 1), and the offset of the next line in decompressed bytes."""

    passage: Passage
    line: int
    end: int


class Corpus:
    """The passages of a file, read in order and in bounded memory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file. Raises UsageError if it cannot be opened."""
        self.path = Path(path).resolve()
        try:
            self._raw = open(self.path, "rb")  # noqa: SIM115 (`close` closes it)
            state = os.fstat(self._raw.fileno())
        except OSError as error:
            raise UsageError(f"the corpus {path} cannot be read: {error.strerror}") from None
        self.size, self.changed = state.st_size, state.st_mtime_ns
        packed = self._raw.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
        self._file: Any = io.BufferedReader(gzip.GzipFile(fileobj=self._raw), 2**20) if packed else self._raw

    @property
    def name(self) -> str:
        """The name of an index of this corpus: the file name without its extensions."""
        return self.path.name.removesuffix(".gz").removesuffix(".jsonl")

    @property
    def read(self) -> int:
        """The number of (compressed) bytes of the file that have been read."""
        return self._raw.tell()

    def rows(self, offset: int = 0, line: int = 0) -> Iterator[CorpusRow]:
        """Yield the passages after `offset`, which is the end of line number `line`.

        Raises:
            UsageError: a line is not a passage; the message begins with file and line.
        """
        try:
            self._file.seek(offset)
            while text := self._file.readline(MAX_LINE_BYTES + 1):
                offset, line = offset + len(text), line + 1
                passage = parse(text, f"{self.path}:{line}")
                if passage is not None:
                    yield CorpusRow(passage, line, offset)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UsageError(f"{self.path}:{line + 1}: the gzip data is damaged or ends too soon: {error}") from None

    def lines_of(self, numbers: tuple[int, ...]) -> list[int]:
        """Return the line numbers of passages, given by number (from 0, ascending). Reads the file again."""
        return [row.line for number, row in enumerate(self.rows()) if number in numbers]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._raw.close()

    def __enter__(self) -> Corpus:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def parse(line: bytes, where: str) -> Passage | None:
    """Parse the passage of a line; None if the line is blank. Raises UsageError; the message begins with `where`."""
    if len(line) > MAX_LINE_BYTES:
        raise UsageError(f"{where}: the line is longer than {MAX_LINE_BYTES} bytes")
    try:
        text = line.decode("utf-8-sig")
        if not text.strip():
            return None
        passage = _passage(json.loads(text))
        f"{passage.id}{passage.contents}".encode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: this is not UTF-8 text, from byte {error.start + 1} of the line on") from None
    except UnicodeEncodeError:
        raise UsageError(f"{where}: the text contains a lone surrogate") from None
    except json.JSONDecodeError as error:
        raise UsageError(f"{where}: this is not JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: {error}") from None
    return passage


def _passage(row: Any) -> Passage:
    if not isinstance(row, dict):
        raise ValueError('a line must be an object such as {"id": "7", "contents": "..."}, and this is not')
    return Passage(_id(row.get("id")), _contents(row))


def _id(value: Any) -> str:
    if type(value) is int:
        return str(value)
    if value is None:
        raise ValueError('there is no "id"')
    if not isinstance(value, str):
        raise ValueError('"id" must be a string or a whole number')
    if not value.strip():
        raise ValueError('"id" is empty')
    if "\n" in value or "\r" in value:
        raise ValueError('"id" contains a line break')
    return value


def _contents(row: dict[str, Any]) -> str:
    if "contents" in row:
        return _text(row, "contents")
    if "text" not in row:
        raise ValueError('there is no "contents", nor "title" and "text"')
    title = row.get("title", "")
    if not isinstance(title, str):
        raise ValueError('"title" must be a string')
    return f'"{" ".join(title.split())}"\n{_text(row, "text")}'


def _text(row: dict[str, Any], key: str) -> str:
    value = row[key]
    if not isinstance(value, str):
        raise ValueError(f'"{key}" must be a string')
    if not value.strip():
        raise ValueError(f'"{key}" is empty')
    return value

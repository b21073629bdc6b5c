"""Passages of a JSONL corpus by number, read from the file itself by byte offset.

The offsets are found once, in one pass over the file, and stored next to it (`wiki-18.jsonl.offsets`, 8 bytes a
passage), or in the cache folder if that place is not writable. They are memory-mapped, so opening takes neither time
nor memory.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.jsonl import MAX_LINE_BYTES, parse
from agentgym_envs.search.retrieval.passages import OFFSET
from agentgym_envs.whole_files import replacing

SUFFIX = ".offsets"
_MAGIC = 0x4147_4A4C_0001
_HEADER = 4  # magic, size and modification time of the corpus, number of passages
_BLOCK_BYTES = 16_000_000
_NEWLINE, _BRACE = ord("\n"), ord("{")


class JsonlStore:
    """The passages of an uncompressed JSONL file. Threads and forked processes may share it."""

    def __init__(self, corpus: Path, cache: Path | None = None) -> None:
        """Open a corpus; finds the offsets if they are missing or of another version of the file.

        Args:
            corpus: the file, in the format of `jsonl.Corpus`.
            cache: a folder for the offsets if the corpus lies in one that is not writable.

        Raises:
            UsageError: the file cannot be read, or the offsets cannot be stored.
        """
        self.path = corpus
        try:
            self._file = os.open(corpus, os.O_RDONLY)
        except OSError as error:
            raise UsageError(f"the corpus {corpus} cannot be read: {error.strerror}") from None
        weakref.finalize(self, os.close, self._file)
        state = os.fstat(self._file)
        self._offsets = _open_offsets(corpus, state, cache)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> Passage:
        if not 0 <= number < len(self):
            raise IndexError(number)
        begin, end = self._offsets[number : number + 2].tolist()
        try:
            passage = parse(os.pread(self._file, end - begin, begin), f"{self.path.name}, passage {number}")
        except (OSError, UsageError) as error:
            raise RetrieverError(f"a passage of the corpus cannot be read: {error}") from None
        if passage is None:
            raise RetrieverError(f"passage {number} of {self.path.name} is empty: the file changed while it was open")
        return passage


def decompressed(packed: Path) -> Path:
    """Return the decompressed form of a .gz corpus, which lies next to it and is made if it is missing.

    A compressed file cannot be read from the middle. Raises UsageError if it is damaged or cannot be written.
    """
    plain = packed.with_suffix("")
    if plain.is_file():
        return plain
    try:
        with gzip.open(packed, "rb") as source, replacing(plain) as target:
            shutil.copyfileobj(source, target, _BLOCK_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{packed}: the gzip data is damaged or ends too soon: {error}") from None
    except OSError as error:
        raise UsageError(
            f"{packed} cannot be decompressed to {plain} ({error.strerror}); decompress it to a folder of your own and "
            "pass that file as `corpus`"
        ) from None
    return plain


def find_offsets(corpus: Path) -> Iterator[NDArray[np.int64]]:
    """Yield the offsets at which the passages begin, in blocks. Blank lines are skipped.

    Memory is bounded by a block and the longest line. Raises UsageError for a line that is too long.
    """
    base, rest = 0, b""
    with open(corpus, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            lines, rest = _whole_lines(rest + block)
            if len(rest) > MAX_LINE_BYTES:
                raise UsageError(
                    f"{corpus}: the line at byte {base + len(lines)} is longer than {MAX_LINE_BYTES} bytes"
                )
            yield _line_starts(lines) + base
            base += len(lines)
        if rest.strip():
            yield np.array([base], np.int64)


def _whole_lines(text: bytes) -> tuple[bytes, bytes]:
    end = text.rfind(b"\n") + 1
    return text[:end], text[end:]


def _line_starts(lines: bytes) -> NDArray[np.int64]:
    """The starts of the lines that are not blank, in a text that ends with a line break or is empty."""
    codes = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(codes == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)].astype(np.int64)
    keep = np.ones(len(starts), bool)
    for line in np.flatnonzero(codes[starts] != _BRACE).tolist():  # few: a passage begins with a brace
        keep[line] = bool(lines[starts[line] : ends[line]].strip())
    return starts[keep]


def _open_offsets(corpus: Path, state: os.stat_result, cache: Path | None) -> NDArray[np.int64]:
    """Open the stored offsets of a file in this state, or find and store them."""
    places = [corpus.with_name(corpus.name + SUFFIX)]
    if cache is not None:
        name = hashlib.sha256(str(corpus.resolve()).encode()).hexdigest()[:16]
        places.append(cache / f"{corpus.name}.{name}{SUFFIX}")
    for place in places:
        if (offsets := _read(place, state)) is not None:
            return offsets
    problem: Any = None
    for place in places:
        try:
            _write(place, corpus, state)
        except OSError as error:
            problem = error
            continue
        if (offsets := _read(place, state)) is not None:
            return offsets
        raise UsageError(f"{corpus} changed while its offsets were being found; start again when it is complete")
    raise UsageError(f"the offsets of {corpus} cannot be stored in {places[-1].parent}: {problem}")


def _read(place: Path, state: os.stat_result) -> NDArray[np.int64] | None:
    try:
        found = np.asarray(np.memmap(place, OFFSET, mode="r"))
    except (OSError, ValueError):
        return None
    identity = [_MAGIC, state.st_size, state.st_mtime_ns]
    if len(found) <= _HEADER or found[:3].tolist() != identity or len(found) != _HEADER + int(found[3]) + 1:
        return None
    return found[_HEADER:]


def _write(place: Path, corpus: Path, state: os.stat_result) -> None:
    count = 0
    with replacing(place) as file:
        file.write(np.zeros(_HEADER, OFFSET).tobytes())
        for starts in find_offsets(corpus):
            file.write(starts.astype(OFFSET).tobytes())
            count += len(starts)
        file.write(np.array([corpus.stat().st_size], OFFSET).tobytes())
        file.seek(0)
        file.write(np.array([_MAGIC, state.st_size, state.st_mtime_ns, count], OFFSET).tobytes())

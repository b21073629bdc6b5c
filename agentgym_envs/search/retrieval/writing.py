"""Writing the passages of an index: appending, flushing to disk, and checking for duplicate ids."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.manifest import FORMAT, MANIFEST, sizes_of, write_json
from agentgym_envs.search.retrieval.passages import OFFSET, OFFSETS, TEXTS, PassageStore, encode

IDS = "ids.tmp"
"""A temporary file with a hash of each passage id."""
_HASH = np.dtype("<u8")


class DuplicateId(NamedTuple):
    """An id, and the numbers of the first two passages that have it."""

    id: str
    first: int
    second: int


class StoreWriter:
    """Writes passages one by one. Writing can resume after the last flush, even if the process is killed."""

    def __init__(self, folder: Path, *, passages: int = 0, size: int = 0) -> None:
        """Resume after `passages` passages, whose records take `size` bytes; anything beyond is truncated."""
        self._files = [
            _open_at(folder / TEXTS, size),
            _open_at(folder / OFFSETS, (passages + 1) * OFFSET.itemsize if passages else 0),
            _open_at(folder / IDS, passages * _HASH.itemsize),
        ]
        self.passages, self.size = passages, size
        self._ends: list[int] = [] if passages else [0]
        self._hashes: list[bytes] = []

    def add(self, passage: Passage) -> None:
        """Write a passage."""
        record = encode(passage)
        self._files[0].write(record)
        self.size += len(record)
        self.passages += 1
        self._ends.append(self.size)
        self._hashes.append(_hash(passage.id))

    def flush(self, *, durable: bool = True) -> None:
        """Flush everything to the operating system and, if `durable`, to disk."""
        _, offsets, ids = self._files
        offsets.write(np.array(self._ends, OFFSET).tobytes())
        ids.write(b"".join(self._hashes))
        self._ends, self._hashes = [], []
        for file in self._files:
            file.flush()
            if durable:
                os.fsync(file.fileno())

    def close(self) -> None:
        """Close the files. Passages that were not flushed may be lost."""
        for file in self._files:
            file.close()

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def find_duplicate_id(folder: Path) -> DuplicateId | None:
    """Return two passages with the same id, or None. Takes 16 bytes of memory per passage."""
    hashes = np.fromfile(folder / IDS, _HASH)
    ordered = np.sort(hashes)
    suspects = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(suspects):
        return None
    store, seen = PassageStore(folder), dict[str, int]()
    for number in np.flatnonzero(np.isin(hashes, suspects)).tolist():
        first = seen.setdefault(store[number].id, number)
        if first != number:
            return DuplicateId(store[number].id, first, number)
    return None


def finish_store(folder: Path, corpus: str, **details: Any) -> None:
    """Write the manifest of a complete store that has no engines yet.

    The manifest holds the name of the corpus, `details`, the number of passages, the SHA-256 of their records and the
    sizes of their files. Raises UsageError if there are no passages.
    """
    passages = (folder / IDS).stat().st_size // _HASH.itemsize
    if not passages:
        raise UsageError("the corpus holds no passages")
    with open(folder / TEXTS, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    files = sizes_of([folder / TEXTS, folder / OFFSETS], folder)
    contents = {"passages": passages, "sha256": digest, "files": files}
    write_json(folder / MANIFEST, {"format": FORMAT, "corpus": corpus, **details, **contents, "engines": {}})
    (folder / IDS).unlink()  # last, so that a build that stops before the manifest is written can resume


def _open_at(path: Path, size: int) -> Any:
    """Open a file for writing from `size` on, and truncate it there. Raises UsageError if the file is shorter."""
    if not size:
        return open(path, "wb")
    file = open(path, "r+b")  # noqa: SIM115 (the writer closes it)
    if os.fstat(file.fileno()).st_size < size:
        file.close()
        raise UsageError(f"{path} is shorter than it was, so the build cannot resume: remove {path.parent}")
    file.truncate(size)
    file.seek(size)
    return file


def _hash(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=_HASH.itemsize).digest()

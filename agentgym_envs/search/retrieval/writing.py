"""Writing the passages of an index: appended to, made sure of now and then, and looked through for ids used twice."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.passages import OFFSET, OFFSETS, TEXTS, PassageStore, encode

IDS = "ids.tmp"
_HASH = np.dtype("<u8")


class Twins(NamedTuple):
    """An id, and the numbers of the first two passages that have it."""

    id: str
    first: int
    second: int


class StoreWriter:
    """Writes a store passage by passage. What was flushed can be gone on from, whatever happens afterwards."""

    def __init__(self, folder: Path, *, passages: int = 0, size: int = 0) -> None:
        """Goes on after so many passages, whose records are `size` bytes; what the files hold beyond is dropped."""
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
        """Hand everything to the system; `durable` waits until the disk has it."""
        _, offsets, ids = self._files
        offsets.write(np.array(self._ends, OFFSET).tobytes())
        ids.write(b"".join(self._hashes))
        self._ends, self._hashes = [], []
        for file in self._files:
            file.flush()
            if durable:
                os.fsync(file.fileno())

    def close(self) -> None:
        """Close the files. What was not flushed may be lost."""
        for file in self._files:
            file.close()

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def find_twins(folder: Path) -> Twins | None:
    """Two passages of one id, if there are such. Takes 16 bytes of memory a passage."""
    hashes = np.fromfile(folder / IDS, _HASH)
    ordered = np.sort(hashes)
    suspects = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(suspects):
        return None
    store, seen = PassageStore(folder), dict[str, int]()
    for number in np.flatnonzero(np.isin(hashes, suspects)).tolist():
        first = seen.setdefault(store[number].id, number)
        if first != number:
            return Twins(store[number].id, first, number)
    return None


def finish_store(folder: Path) -> dict[str, Any]:
    """What the manifest says of a store without twins: passages, the SHA-256 of its records, sizes of its files.

    Raises UsageError if it is empty.
    """
    passages = (folder / IDS).stat().st_size // _HASH.itemsize
    if not passages:
        raise UsageError("the corpus holds no passages")
    with open(folder / TEXTS, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"passages": passages, "sha256": digest, "files": sizes_of([folder / TEXTS, folder / OFFSETS], folder)}


def sizes_of(paths: list[Path], folder: Path) -> dict[str, int]:
    """The sizes of files by their names in a folder."""
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in sorted(paths)}


def _open_at(path: Path, size: int) -> Any:
    """A file that is written from `size` on, where it ends. Raises UsageError if it is shorter."""
    if not size:
        return open(path, "wb")
    file = open(path, "r+b")  # noqa: SIM115 (the writer closes it)
    if os.fstat(file.fileno()).st_size < size:
        file.close()
        raise UsageError(f"{path} is shorter than it was, so nothing can be gone on with: remove {path.parent}")
    file.truncate(size)
    file.seek(size)
    return file


def _hash(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=_HASH.itemsize).digest()

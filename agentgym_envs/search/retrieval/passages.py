"""Passages on disk: a file of UTF-8 text and a file of offsets, both memory-mapped, so that processes share them."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.task import plain_number

TEXTS, OFFSETS = "passages.bin", "passages.idx"
OFFSET = np.dtype("<i8")
_BATCH = 1024


def encode(passage: Passage) -> bytes:
    """Encode a passage for the file. Its id must not contain a line break."""
    return f"{passage.id}\n{passage.contents}".encode()


class PassageStore:
    """The passages of an index, by number (their position in the corpus, from 0)."""

    def __init__(self, folder: Path) -> None:
        """Open the two files of a folder. Raises OSError or ValueError if they are missing or truncated."""
        self._path = folder / TEXTS
        self._offsets = np.asarray(np.memmap(folder / OFFSETS, OFFSET, mode="r"))  # a memmap is slow to slice
        with open(self._path, "rb") as file:
            self._texts = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(self._texts) < int(self._offsets[-1]):
            raise ValueError(f"{TEXTS} ends too soon")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> Passage:
        if not 0 <= number < len(self):
            raise IndexError(number)
        begin, end = self._offsets[number : number + 2].tolist()
        name, _, contents = self._texts[begin:end].decode().partition("\n")
        return Passage(name, contents)

    def __iter__(self) -> Iterator[Passage]:
        return self.after(0)

    def find(self, id: str) -> int | None:
        """Return the number of the passage of that id; None if there is none.

        In wiki-18 an id is the number. Otherwise the first call reads all ids of the corpus.
        """
        guess = plain_number(id)
        if 0 <= guess < len(self) and self[guess].id == id:
            return guess
        wanted = _hash(id)
        first = int(np.searchsorted(self._by_hash[0], wanted))
        for index in range(first, len(self)):
            number = int(self._by_hash[1][index])
            if self._by_hash[0][index] != wanted:
                break
            if self[number].id == id:
                return number
        return None

    @cached_property
    def _by_hash(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Hashes of all ids, sorted, and the numbers of their passages: 16 bytes for each passage."""
        begins = self._offsets[:-1].tolist()
        hashes = np.fromiter((_hash(self._id_at(begin)) for begin in begins), np.int64, len(self))
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order

    def _id_at(self, begin: int) -> str:
        return self._texts[begin : self._texts.find(b"\n", begin)].decode()

    def after(self, number: int) -> Iterator[Passage]:
        """Yield the passages from `number` on. They are read as a stream, and unlike mapped pages use no memory."""
        with open(self._path, "rb") as file:
            begin = int(self._offsets[number])
            file.seek(begin)
            for first in range(number + 1, len(self._offsets), _BATCH):
                for end in self._offsets[first : first + _BATCH].tolist():
                    name, _, contents = file.read(end - begin).decode().partition("\n")
                    yield Passage(name, contents)
                    begin = end


def _hash(id: str) -> int:
    return int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "little", signed=True)

"""Passages on disk: a file of UTF-8 text and a file of offsets, both memory-mapped, so that processes share them."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from agentgym_envs.search.retrieval.base import Passage

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

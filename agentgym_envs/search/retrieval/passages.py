"""Passages on disk: one file of UTF-8 text, one of offsets, both memory-mapped, so that processes share the pages."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from agentgym_envs.search.retrieval.base import Passage

TEXTS, OFFSETS = "passages.bin", "passages.idx"
OFFSET = np.dtype("<i8")


def encode(passage: Passage) -> bytes:
    """A passage as it stands in the file. Its id holds no line break."""
    return f"{passage.id}\n{passage.contents}".encode()


class PassageStore:
    """The passages of an index, by number (their place in the corpus, from 0)."""

    def __init__(self, folder: Path) -> None:
        """Opens the two files of a folder; raises OSError or ValueError if they are not there or not whole."""
        self._offsets = np.memmap(folder / OFFSETS, OFFSET, mode="r")
        with open(folder / TEXTS, "rb") as file:
            self._texts = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(self._texts) < int(self._offsets[-1]):
            raise ValueError(f"{folder / TEXTS} ends too soon")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> Passage:
        if not 0 <= number < len(self):
            raise IndexError(number)
        begin, end = self._offsets[number : number + 2].tolist()
        name, _, contents = self._texts[begin:end].decode().partition("\n")
        return Passage(name, contents)

    def __iter__(self) -> Iterator[Passage]:
        return (self[number] for number in range(len(self)))

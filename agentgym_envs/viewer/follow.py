"""A file that may be written to while it is read: its new lines, and whether it became another file."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Literal

Change = Literal["same", "grown", "replaced", "gone"]
_MARK_BYTES = 4096


class Tail:
    """Reads complete lines of a file, each once; a last line without its end waits until it is complete.

    What was read is known again by its first and last bytes, not by the file's number: a copy that was put in place of
    the file and goes on where it ended is the same file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.offset, self.torn = path, 0, False
        self._mark, self._seen = _digest(b""), (-1, -1)

    def look(self) -> Change:
        """What became of the file since `lines` was last read to its end. After "replaced" all is read again."""
        try:
            if (seen := self._status()) == self._seen:
                return "same"
            with self.path.open("rb") as file:
                if not self._goes_on(file):
                    self.offset, self._mark = 0, _digest(b"")
                    return "replaced"
            self._seen = seen  # a line that ends just now changes the size, so that the next look finds it
            return "grown"
        except OSError:
            return "gone"

    def holds(self) -> bool:
        """Whether what was read is still there, so that offsets of before are those of now."""
        try:
            if self._status() == self._seen:
                return True
            with self.path.open("rb") as file:
                return self.offset > 0 and self._goes_on(file)
        except OSError:
            return False

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The complete lines that are new, with the offset of each in the file. Raises OSError."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            self.torn = False
            for line in file:
                self.torn = not line.endswith(b"\n")
                if self.torn:
                    break
                start, self.offset = self.offset, self.offset + len(line)
                yield start, line
            self._mark = _digest(self._ends(file))

    def _status(self) -> tuple[int, int]:
        """Size and time of the file. Raises OSError if there is none, or no regular one: opening a pipe would wait."""
        status = self.path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{self.path} is not a regular file")
        return status.st_size, status.st_mtime_ns

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the file begins with what was read; a shorter one gives fewer bytes."""
        return _digest(self._ends(file)) == self._mark

    def _ends(self, file: BinaryIO) -> bytes:
        """The first and the last bytes of what was read."""
        file.seek(0)
        first = file.read(min(self.offset, _MARK_BYTES))
        start = max(self.offset - _MARK_BYTES, 0)
        file.seek(start)
        return first + file.read(self.offset - start)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()

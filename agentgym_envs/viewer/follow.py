"""Reading a file that may grow: its new lines, and detection of replaced files."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Literal

Change = Literal["same", "grown", "replaced", "gone"]
_MARK_BYTES = 4096


class Tail:
    """Reads each complete line of a file once. A last line without a line end is read when it is complete.

    The file is identified by the first and last bytes that were read, not by its inode: a copy that replaces the file
    and continues it counts as the same file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.offset, self.torn = path, 0, False
        self._mark, self._seen = _digest(b""), (-1, -1)

    def look(self) -> Change:
        """The change of the file since `lines` was last read to its end. After "replaced", all lines are read again."""
        try:
            if (seen := self._status()) == self._seen:
                return "same"
            with self.path.open("rb") as file:
                if not self._continues(file):
                    self.offset, self._mark = 0, _digest(b"")
                    return "replaced"
            self._seen = seen  # a line written from now on changes the size, so the next look finds it
            return "grown"
        except OSError:
            return "gone"

    def is_unchanged(self) -> bool:
        """True if the lines that were read are still there, so that their offsets are valid."""
        try:
            if self._status() == self._seen:
                return True
            with self.path.open("rb") as file:
                return self.offset > 0 and self._continues(file)
        except OSError:
            return False

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the new complete lines with their offsets. Raises OSError."""
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
        """Size and time of the file. Raises OSError unless it is a regular file: opening a pipe would block."""
        status = self.path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{self.path} is not a regular file")
        return status.st_size, status.st_mtime_ns

    def _continues(self, file: BinaryIO) -> bool:
        """True if the file still begins with the bytes that were read."""
        return _digest(self._ends(file)) == self._mark

    def _ends(self, file: BinaryIO) -> bytes:
        """The first and the last of the bytes that were read."""
        file.seek(0)
        first = file.read(min(self.offset, _MARK_BYTES))
        start = max(self.offset - _MARK_BYTES, 0)
        file.seek(start)
        return first + file.read(self.offset - start)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()

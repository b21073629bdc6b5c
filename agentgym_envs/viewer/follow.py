"""A file that may be written to while it is read: its new lines, and whether it became another file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Literal

Change = Literal["same", "grown", "replaced", "gone"]
_MARK_BYTES = 4096


class Tail:
    """Reads complete lines of a file, each once; a last line without its end waits until it is complete.

    What was read is known again by its last bytes, not by the file's number: a copy that was put in place of the file
    and goes on where it ended is the same file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.offset, self.torn = path, 0, False
        self._mark, self._seen = _digest(b""), (-1, -1)

    def look(self) -> Change:
        """What became of the file since `lines` was last read to its end. After "replaced" all is read again."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                seen = (status.st_size, status.st_mtime_ns)
                if seen == self._seen:
                    return "same"
                if status.st_size < self.offset or _digest(self._last_bytes(file)) != self._mark:
                    self.offset, self._mark = 0, _digest(b"")
                    return "replaced"
                self._seen = seen  # a line that ends just now changes the size, so that the next look finds it
                return "grown"
        except OSError:
            return "gone"

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
            self._mark = _digest(self._last_bytes(file))

    def _last_bytes(self, file: BinaryIO) -> bytes:
        """The last bytes of what was read."""
        start = max(self.offset - _MARK_BYTES, 0)
        file.seek(start)
        return file.read(self.offset - start)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()

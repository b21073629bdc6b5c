"""A file of recorded replies of a service, with which a run repeats offline: JSONL, one reply a line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError


class Recording:
    """Reads the lines of a recording, and appends to it. Processes may append to the same file.

    A caller that is used by several threads locks around `read_new` and `append`.
    """

    def __init__(self, path: Path, add: Callable[[Any], None], entry: str) -> None:
        """Open or begin a recording and read its lines.

        `add` takes a line as JSON. For a malformed one it raises ValueError, KeyError, TypeError or RecursionError;
        `entry` then names what it is not. Raises UsageError for such a line, and if the file cannot be read.
        """
        self.path, self._add_row, self._entry = path, add, entry
        self._offset = self._line = 0
        try:
            self.read_new()
        except OSError as error:
            raise UsageError(f"the cassette {path} cannot be read: {error.strerror}") from None

    def read_new(self) -> None:
        """Read the lines that were added since the last time, also by other processes."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):  # another process is writing it, or was killed while it was
                    break
                self._offset, self._line = self._offset + len(line), self._line + 1
                self._add(line)

    def append(self, row: Any) -> None:
        """Append a line. Raises OSError if it cannot be written."""
        line = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a+b", buffering=0) as file:  # one write, so that lines of processes do not mix
            file.write(line if _ends_a_line(file) else b"\n" + line)

    def _add(self, line: bytes) -> None:
        try:
            row = json.loads(line)
        except ValueError:  # of a process that was killed while it wrote
            return
        try:
            self._add_row(row)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UsageError(f"{self.path}:{self._line}: this is not {self._entry}") from None


def _ends_a_line(file: FileIO) -> bool:
    end = file.seek(0, os.SEEK_END)
    if not end:
        return True
    file.seek(end - 1)
    return file.read(1) == b"\n"

"""Turn pip's many lines into one that moves: `pip install ... 2>&1 | python3 scripts/pip_progress.py LOG`.

Everything goes to LOG. In a terminal the line is rewritten, elsewhere a new one comes every quarter of a minute. If pip
reports an error, the end of the log is printed. Needs nothing but Python, since it runs before anything is installed.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

EVERY_SECONDS = 15.0
LAST_LINES = 25
_FOUND = re.compile(
    r"\s*(?:Downloading|Using cached|Processing) (\S+?)(?:\.metadata)?(?: \(([\d.]+) (kB|MB|GB|bytes)\))?$"
)
_BYTES = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}


class Progress:
    """Packages that pip has found and fetched so far."""

    def __init__(self) -> None:
        self.packages: dict[str, None] = {}  # an ordered set
        self.megabytes = 0.0
        self.stage = ""
        self.failed = False

    def read(self, line: str) -> None:
        """Take in one line of pip's."""
        if found := _FOUND.match(line):
            name, size, unit = found.groups()
            self.packages[Path(name).name.split("-")[0].split("==")[0]] = None
            self.megabytes += float(size or 0) * _BYTES[unit or "MB"]
        elif line.startswith("Installing collected packages:"):
            self.stage = f"unpacking {line.count(',') + 1} packages"
        elif line.startswith("ERROR"):
            self.failed = True

    def __str__(self) -> str:
        if self.stage or not self.packages:
            return f"  {self.stage or 'looking for packages'}"
        return f"  {len(self.packages)} packages, {self.megabytes:,.0f} MB so far: {next(reversed(self.packages))}"


def follow(lines: Iterable[str], log: TextIO, out: TextIO) -> Progress:
    """Read pip's lines to their end, and show on `out` how far it is."""
    progress, next_line, shown = Progress(), 0.0, ""
    for line in lines:
        log.write(line)
        progress.read(line.rstrip())
        if str(progress) != shown and (out.isatty() or time.monotonic() >= next_line):
            shown = str(progress)
            out.write(f"\r\x1b[2K{shown[:100]}" if out.isatty() else f"{shown}\n")
            out.flush()
            next_line = time.monotonic() + EVERY_SECONDS
    if out.isatty():
        out.write("\r\x1b[2K")
    return progress


def main(path: Path) -> None:
    """Follow standard input."""
    with path.open("w") as log:
        progress = follow(sys.stdin, log, sys.stdout)
    if progress.failed:
        print("...", *path.read_text().splitlines()[-LAST_LINES:], f"(all of it: {path})", sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

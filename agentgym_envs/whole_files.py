"""Files that are written completely or not at all, so that an interruption leaves what was there before."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends without an error. Raises OSError."""
    path = path.resolve()  # of a link, the file that it points to is replaced
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("wb") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a small file completely or not at all. Lone surrogates in a text are kept. Raises OSError."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    with replacing(path) as file:
        file.write(data)

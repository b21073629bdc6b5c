"""Files that are written completely or not at all, so that an interruption leaves what was there before."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
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


@contextmanager
def replacing_files(folder: Path, stale: Sequence[str] = ()) -> Iterator[Path]:
    """Yield an empty folder whose files move into `folder` when the block ends without an error. Raises OSError.

    Files in folders move before those at the top. Other files in `folder` stay, except those that match a pattern of
    `stale`.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    part.mkdir()
    try:
        yield part
        files = [file.relative_to(part) for file in part.rglob("*") if file.is_file()]
        for file in sorted(files, key=lambda file: (-len(file.parts), file)):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            os.replace(part / file, folder / file)
        for path in (path for pattern in stale for path in folder.glob(pattern)):
            if path.relative_to(folder) not in files:
                path.unlink()
    finally:
        shutil.rmtree(part, ignore_errors=True)

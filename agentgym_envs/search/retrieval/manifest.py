"""The manifest of an index (`index.json`): its format, its corpus, and the version and files of each engine.

An index is a folder with the passages of a corpus and the data of one or more engines. Only files that the manifest
names are opened, so half-written files are never read.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval.passages import PassageStore

FORMAT = 1
"""The format of an index; increased when older indexes can no longer be read."""
MANIFEST = "index.json"
Manifest = dict[str, Any]
_INDEX = "the index"
_log = logging.getLogger(__name__)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of an index. Raises UsageError if it does not exist or has another format."""
    try:
        manifest: Manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        found = manifest["format"]
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder} is not an index; `agentgym search index CORPUS.jsonl` makes one") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder / MANIFEST} cannot be read: {type(error).__name__}: {error}") from None
    if found != FORMAT:
        raise UsageError(
            f"the index {folder} has the format {found!r}, this version reads {FORMAT}: build it again "
            "with `agentgym search index CORPUS.jsonl --overwrite`"
        )
    return manifest


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a file atomically and flush it to disk."""
    part = path.with_name(f"{path.name}.part")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def check_built_for(folder: Path, engines: Iterable[str]) -> Manifest:
    """Return the manifest of an index. Raises UsageError if the index was not built for all of these engines."""
    manifest = read_manifest(folder)
    for engine in engines:
        if engine not in manifest["engines"]:
            built = ", ".join(manifest["engines"]) or "none"
            raise UsageError(
                f"the index {folder} was not built for the engine {engine!r} (only for {built}); "
                f"`agentgym search index {folder} --engine {engine}` adds it"
            )
    return manifest


def options_of(folder: Path, engine: str) -> dict[str, Any]:
    """Return the options that an engine's part of an index was built with."""
    options: dict[str, Any] = read_manifest(folder)["engines"][engine]["options"]
    return options


def open_passages(folder: Path, manifest: Manifest) -> PassageStore:
    """Open the passages of an index. Raises RetrieverError if they do not match the manifest."""
    check_sizes(folder, manifest["files"])
    try:
        passages = PassageStore(folder)
    except (OSError, ValueError) as error:
        raise damaged(_INDEX, folder, error) from None
    if len(passages) != manifest["passages"]:
        raise damaged(_INDEX, folder, f"it does not hold {manifest['passages']} passages")
    return passages


def check_sizes(folder: Path, files: Mapping[str, int]) -> None:
    """Raise RetrieverError if a file is missing or its size has changed."""
    for name, size in files.items():
        try:
            found = (folder / name).stat().st_size
        except OSError as error:
            raise damaged(_INDEX, folder, f"{name}: {error.strerror}") from None
        if found != size:
            raise damaged(_INDEX, folder, f"{name} has {found} bytes instead of {size}")


def sizes_of(paths: list[Path], folder: Path) -> dict[str, int]:
    """Sizes of files, by their paths relative to a folder."""
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in sorted(paths)}


def damaged(what: str, folder: Path, why: object) -> RetrieverError:
    """Return the error for an index, or the part of an engine (`what`), that cannot be read.

    Clients of a server may see the message, so it holds only the last part of the folder's path. The log has the rest.
    """
    _log.info("%s in %s: %s", what, folder, why)
    return RetrieverError(f"{what} {folder.name} is damaged: {str(why).replace(str(folder), folder.name)}")

"""Opening an index, and building one from passages in memory."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Passage, Retriever
from agentgym_envs.search.retrieval.engine_build import add_engine, work_folder
from agentgym_envs.search.retrieval.engines import ENGINES, IndexPassages, find_engine
from agentgym_envs.search.retrieval.local_base import open_shared
from agentgym_envs.search.retrieval.locking import locked
from agentgym_envs.search.retrieval.manifest import MANIFEST, read_manifest
from agentgym_envs.search.retrieval.writing import StoreWriter, find_duplicate_id, finish_store

_BATCH = 1_000
_ABANDONED_SECONDS = 3_600
"""The work of a build is abandoned if nothing in it has changed for this long: its process was probably killed."""


def open_index(folder: str | os.PathLike[str], engine: str = "tantivy") -> Retriever:
    """Open a retriever over an index. All callers in a process share it.

    Raises:
        UsageError: the folder is not an index of this format, or it was not built for that engine.
        RetrieverError: the index is damaged.
    """
    return open_shared(find_engine(engine).retriever, engine, folder)


def build_index(
    passages: Iterable[Passage],
    folder: Path,
    *,
    corpus: str,
    engine: str = "tantivy",
    options: Mapping[str, Any] | None = None,
) -> None:
    """Build an index in `folder`, which appears once it is complete. An engine is added to an existing index.

    `options` are those of the engine's build function; the manifest records them. Raises UsageError if an option is
    wrong, if the engine was built with others, if two passages have the same id, or if there are no passages.
    """
    find_engine(engine)
    if not (folder / MANIFEST).is_file():
        _build(passages, folder, corpus, engine, dict(options or {}))
    if options or engine not in read_manifest(folder)["engines"]:
        with locked(folder):
            add_engine(folder, engine, options)


def _build(passages: Iterable[Passage], folder: Path, corpus: str, engine: str, options: dict[str, Any]) -> None:
    partial = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    partial.mkdir(parents=True)
    _remove_abandoned(folder)
    try:
        rest = iter(passages)
        with StoreWriter(partial) as writer, _stream(partial, engine, options) as index_passages:
            while batch := list(islice(rest, _BATCH)):
                for passage in batch:
                    writer.add(passage)
                index_passages(batch)
                writer.flush(durable=False)
            writer.flush(durable=False)
        if duplicate := find_duplicate_id(partial):
            raise UsageError(
                f"the passages {duplicate.first} and {duplicate.second} have the same id, {duplicate.id!r}"
            )
        finish_store(partial, corpus)
        add_engine(partial, engine, options)
        os.rename(partial, folder)
    except OSError:
        if not (folder / MANIFEST).is_file():  # else another process was faster
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _stream(folder: Path, engine: str, options: Mapping[str, Any]) -> contextlib.AbstractContextManager[IndexPassages]:
    """Start the engine's build while passages are still being written, if the engine can."""
    if (stream := ENGINES[engine].stream) is None:
        return contextlib.nullcontext(lambda passages: None)
    return stream(work_folder(folder, engine), **options)


def _remove_abandoned(folder: Path) -> None:
    """Remove the work of killed processes that were building this index, but no folder that may still be in use."""
    for path in folder.parent.glob(f"{glob.escape(folder.name)}.*"):
        if re.fullmatch("[0-9a-f]{8}", path.name.removeprefix(f"{folder.name}.")) and _age(path) > _ABANDONED_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _age(folder: Path) -> float:
    """Seconds since the last change in a folder; 0 if unknown."""
    try:
        return time.time() - max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    except OSError:  # it is being moved or removed
        return 0.0

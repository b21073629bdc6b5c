"""An index: a folder with the passages of a corpus and what engines made of them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval import tantivy_engine
from agentgym_envs.search.retrieval.base import Passage, Retriever
from agentgym_envs.search.retrieval.passages import OFFSET, OFFSETS, TEXTS, PassageStore, encode

FORMAT = 1
"""Goes up when an index of before can no longer be read."""
MANIFEST = "index.json"
ENGINES: dict[str, tuple[Callable[[Path, PassageStore], Retriever], Callable[[Path, PassageStore], None]]] = {
    "tantivy": (tantivy_engine.TantivyRetriever, tantivy_engine.build),
}
"""Local engines: what opens one in an index's folder, and what makes it there from the passages."""


def open_index(folder: str | os.PathLike[str], engine: str = "tantivy") -> Retriever:
    """A retriever over an index; all of a process share one.

    Raises:
        UsageError: there is no index of this format, or it was not made for that engine.
        RetrieverError: it is damaged.
    """
    return _open(Path(folder).resolve(), engine)


@lru_cache(maxsize=16)
def _open(folder: Path, engine: str) -> Retriever:
    read_manifest(folder)
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine!r}; choose one of {', '.join(ENGINES)}")
    try:
        passages = PassageStore(folder)
    except (OSError, ValueError) as error:
        raise RetrieverError(f"the index {folder} is damaged: {error}") from None
    return ENGINES[engine][0](folder, passages)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What an index says of itself. Raises UsageError if there is none, or it is of another format."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{folder} is no index; `agentgym search index CORPUS.jsonl` makes one") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder / MANIFEST} cannot be read: {error}") from None
    if manifest.get("format") != FORMAT:
        raise UsageError(
            f"the index {folder} has the format {manifest.get('format')}, this version reads {FORMAT}: make it anew "
            "with `agentgym search index CORPUS.jsonl`"
        )
    return manifest


def build_index(passages: Iterable[Passage], folder: Path, *, corpus: str, engine: str = "tantivy") -> None:
    """Make an index in `folder`, which appears when all is done. Where one is already, nothing is changed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        manifest = {"format": FORMAT, "corpus": corpus, **write_passages(passages, partial)}
        ENGINES[engine][1](partial, PassageStore(partial))
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
        os.rename(partial, folder)
    except OSError:
        if not (folder / MANIFEST).is_file():  # else another process was faster
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_passages(passages: Iterable[Passage], folder: Path) -> dict[str, Any]:
    """Write a store; returns how many passages and the SHA-256 of its text."""
    ends, digest = [0], hashlib.sha256()
    with open(folder / TEXTS, "wb") as file:
        for passage in passages:
            record = encode(passage)
            digest.update(record)
            file.write(record)
            ends.append(ends[-1] + len(record))
    np.array(ends, OFFSET).tofile(folder / OFFSETS)
    return {"passages": len(ends) - 1, "sha256": digest.hexdigest()}

"""Making the index of a corpus file: in bounded memory, and such that what was interrupted goes on where it was.

The work is done in `DIR.partial`, which becomes `DIR` when it is whole. There `state.json` says up to where the file
was read; passages come first, then the engine reads them from there. What is on the disk is bounded by the corpus (its
text again, 16 bytes a passage, and what the engine makes); memory by 50,000 passages, by 16 bytes for each passage
while ids are compared, and by what the engine needs (see its module).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.index import (
    LOCK,
    MANIFEST,
    Manifest,
    add_engine,
    check_engine,
    locked,
    name_store,
    open_passages,
    read_manifest,
    write_json,
)
from agentgym_envs.search.retrieval.jsonl import Corpus
from agentgym_envs.search.retrieval.passages import OFFSETS, TEXTS, PassageStore
from agentgym_envs.search.retrieval.writing import IDS, StoreWriter, find_twins

STATE, _OLD = "state.json", "replaced"
STATE_EVERY = 50_000
"""After so many passages, it is noted how far the reading came."""
READING, INDEXING = "reading", "indexing"
_REPORT_EVERY = 1_000
Report = Callable[[str, int, int], None]
"""Called with a stage, how much is done and how much there is: bytes of the file, then passages."""


def partial_of(folder: Path) -> Path:
    """Where an index is until it is whole."""
    return folder.resolve().parent / f"{folder.resolve().name}.partial"


def index_corpus(
    path: str | os.PathLike[str],
    folder: Path,
    *,
    engine: str = "tantivy",
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    report: Report = lambda stage, done, total: None,
) -> Manifest:
    """Make an index of a corpus, go on making it, or add an engine to it; returns its manifest.

    A corpus that was changed while it was being read is read anew. `overwrite` replaces an index of another corpus,
    once the new one is whole.

    An index is of this corpus if the file has the name, the size and the time of change that it had. A copy may have
    another time, as may a file that was written anew: then its passages are read and compared with those of the index.

    Raises:
        UsageError: the corpus is malformed, or `folder` or its `.partial` hold something else.
        RetrieverError: the index that is there is damaged.
        OSError: such as a full disk; the same call goes on afterwards.
    """
    check_engine(engine)
    folder = folder.resolve()
    with Corpus(path) as corpus:
        if _is_made(corpus, folder, overwrite):
            return extend_index(folder, engine=engine, options=options, report=report)
        partial = partial_of(folder)
        partial.mkdir(parents=True, exist_ok=True)
        with locked(partial, wait=False):
            _read(corpus, partial, overwrite, report)
            add_engine(partial, engine, options, _watched(report))
            _move(partial, folder)
    return read_manifest(folder)


def extend_index(
    folder: Path,
    *,
    engine: str,
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    report: Report = lambda stage, done, total: None,
) -> Manifest:
    """Add an engine to an index that is there, if it lacks it; returns its manifest.

    `overwrite` makes the engine's part anew; until that is whole, the old one serves. Raises UsageError.
    """
    check_engine(engine)
    read_manifest(folder)
    with locked(folder, wait=False):
        add_engine(folder, engine, options, _watched(report), overwrite=overwrite)
    return read_manifest(folder)


class _Watched(PassageStore):
    """Passages that tell how many of them were read in order."""

    def __init__(self, folder: Path, report: Report) -> None:
        super().__init__(folder)
        self._report = report

    def after(self, number: int) -> Iterator[Passage]:
        total = len(self)
        for done, passage in enumerate(super().after(number), number):
            if not done % _REPORT_EVERY:
                self._report(INDEXING, done, total)
            yield passage
        self._report(INDEXING, total, total)


def _watched(report: Report) -> Callable[[Path], PassageStore]:
    return lambda folder: _Watched(folder, report)


def _is_made(corpus: Corpus, folder: Path, overwrite: bool) -> bool:
    """Whether the index is there and of this corpus. Raises UsageError if what is there must not be replaced."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MANIFEST).is_file():
        raise UsageError(f"{folder} is there already, and is no index; choose another --out DIR")
    if overwrite:
        return False
    manifest = read_manifest(folder)
    before, now = manifest.get("source") or {}, _source(corpus)
    if before != now and not (_alike(before, now) and _same_passages(corpus, folder, manifest)):
        told = f"{before['name']} of {before['bytes']} bytes" if before else "made from memory"
        raise UsageError(f"{folder} is the index of another corpus ({told}); --overwrite replaces it")
    return True


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(key) == other.get(key) for key in ("name", "bytes"))


def _same_passages(corpus: Corpus, folder: Path, manifest: Manifest) -> bool:
    """Whether the index holds the corpus's passages, which takes reading both up to where they differ."""
    pairs = zip_longest((row.passage for row in corpus.rows()), open_passages(folder, manifest))
    return all(one == other for one, other in pairs)


def _read(corpus: Corpus, partial: Path, overwrite: bool, report: Report) -> None:
    """The passages of the corpus as a store, with a manifest when it is whole; from where it was left."""
    state = _state_of(corpus, partial, overwrite)
    if (partial / MANIFEST).is_file():
        (partial / IDS).unlink(missing_ok=True)
        return
    _write_passages(corpus, partial, state, report)
    if twins := find_twins(partial):
        lines = corpus.lines_of((twins.first, twins.second))
        raise UsageError(f"{corpus.path}:{lines[1]}: the id {twins.id!r} is that of line {lines[0]} already")
    try:
        name_store(partial, corpus.name, source=_source(corpus))
    except UsageError as error:
        raise UsageError(f"{corpus.path}: {error}") from None


def _state_of(corpus: Corpus, partial: Path, overwrite: bool) -> dict[str, Any]:
    """How far the reading came. A file that was changed is read anew, with nothing of before left."""
    whole = {"path": str(corpus.path), "size": corpus.size, "changed": corpus.changed}
    begin = {"corpus": whole, "offset": 0, "line": 0, "passages": 0, "size": 0}
    try:
        state: dict[str, Any] = json.loads((partial / STATE).read_text(encoding="utf-8"))
        before = state["corpus"]
    except (OSError, ValueError, KeyError, TypeError):
        state, before = begin, None
    if before == whole:
        return state
    if before is not None and before["path"] != whole["path"] and not overwrite:
        raise UsageError(f"{partial} is the unfinished index of {before['path']}; finish it, or --overwrite it")
    _clear(partial, ours=before is not None)
    return begin


def _clear(partial: Path, *, ours: bool) -> None:
    """Begin with nothing. Raises UsageError if the folder may be somebody's."""
    paths = [path for path in partial.iterdir() if path.name != LOCK]
    if not ours and any(path.name not in (TEXTS, OFFSETS, IDS, f"{STATE}.part") for path in paths):
        raise UsageError(f"{partial} is there already, and is no unfinished index; remove it, or choose another --out")
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _write_passages(corpus: Corpus, partial: Path, state: dict[str, Any], report: Report) -> None:
    with StoreWriter(partial, passages=state["passages"], size=state["size"]) as writer:
        offset, line = state["offset"], state["line"]
        for row in corpus.rows(offset, line):
            writer.add(row.passage)
            offset, line = row.end, row.line
            if not writer.passages % _REPORT_EVERY:
                report(READING, corpus.read, corpus.size)
            if not writer.passages % STATE_EVERY:
                _keep(writer, partial, state | {"offset": offset, "line": line})
        _keep(writer, partial, state | {"offset": offset, "line": line})
    report(READING, corpus.size, corpus.size)


def _keep(writer: StoreWriter, partial: Path, state: dict[str, Any]) -> None:
    """First the passages, then the note of them."""
    writer.flush()
    write_json(partial / STATE, state | {"passages": writer.passages, "size": writer.size})


def _move(partial: Path, folder: Path) -> None:
    for path in partial.glob("*.partial"):  # of an engine that was not asked for again
        shutil.rmtree(path)
    if folder.exists():
        os.rename(folder, partial / _OLD)
    os.rename(partial, folder)
    (folder / STATE).unlink(missing_ok=True)
    shutil.rmtree(folder / _OLD, ignore_errors=True)


def _source(corpus: Corpus) -> dict[str, Any]:
    return {"name": corpus.path.name, "bytes": corpus.size, "changed": corpus.changed}

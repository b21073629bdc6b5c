"""Building the index of a corpus file, in bounded memory and in a way that can resume after an interruption.

The work happens in `DIR.partial`, which is renamed to `DIR` when it is complete. There `state.json` records how much of
the file has been read. The passages are written first, and then the engine reads them from disk. The disk space is
bounded by the corpus: its text again, 16 bytes a passage, and the engine's data. The memory is bounded by 50,000
passages, by 16 bytes for each passage while ids are compared, and by the needs of the engine (see its module).
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
from agentgym_envs.search.retrieval.engine_build import add_engine
from agentgym_envs.search.retrieval.engines import find_engine
from agentgym_envs.search.retrieval.jsonl import Corpus
from agentgym_envs.search.retrieval.locking import LOCK, locked
from agentgym_envs.search.retrieval.manifest import MANIFEST, Manifest, open_passages, read_manifest, write_json
from agentgym_envs.search.retrieval.passages import OFFSETS, TEXTS, PassageStore
from agentgym_envs.search.retrieval.writing import IDS, StoreWriter, find_duplicate_id, finish_store

STATE, _OLD = "state.json", "replaced"
STATE_EVERY = 50_000
"""The state is saved after this many passages."""
READING, INDEXING = "reading", "indexing"
_REPORT_EVERY = 1_000
ProgressCallback = Callable[[str, int, int], None]
"""Called with the stage, the amount done and the total: bytes of the file, then passages."""


def partial_of(folder: Path) -> Path:
    """Return the folder where an index is built."""
    return folder.resolve().parent / f"{folder.resolve().name}.partial"


def index_corpus(
    path: str | os.PathLike[str],
    folder: Path,
    *,
    engine: str = "tantivy",
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    report: ProgressCallback = lambda stage, done, total: None,
) -> Manifest:
    """Build an index of a corpus, resume building it, or add an engine to it. Returns its manifest.

    A corpus that changed while it was being read is read again from the beginning. `overwrite` replaces the index of
    another corpus, once the new index is complete.

    An existing index belongs to this corpus if the file still has the recorded name, size and modification time. A copy
    or a rewritten file may have another time. If so, its passages are compared with those of the index.

    Raises:
        UsageError: the corpus is malformed, or `folder` or its `.partial` hold something else.
        RetrieverError: the existing index is damaged.
        OSError: for example, the disk is full; the same call resumes afterwards.
    """
    find_engine(engine)
    folder = folder.resolve()
    with Corpus(path) as corpus:
        if _is_built(corpus, folder, overwrite):
            return extend_index(folder, engine=engine, options=options, report=report)
        partial = partial_of(folder)
        partial.mkdir(parents=True, exist_ok=True)
        with locked(partial, wait=False):
            _read(corpus, partial, overwrite, report)
            add_engine(partial, engine, options, _reporting(report))
            _move(partial, folder)
    return read_manifest(folder)


def extend_index(
    folder: Path,
    *,
    engine: str,
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    report: ProgressCallback = lambda stage, done, total: None,
) -> Manifest:
    """Add an engine to an existing index, if it lacks it. Returns its manifest.

    `overwrite` builds the engine's part again; the old part stays in use until the new one is complete. Raises
    UsageError.
    """
    find_engine(engine)
    read_manifest(folder)
    with locked(folder, wait=False):
        add_engine(folder, engine, options, _reporting(report), overwrite=overwrite)
    return read_manifest(folder)


class _ReportingStore(PassageStore):
    """Passages that report how many of them have been read in order."""

    def __init__(self, folder: Path, report: ProgressCallback) -> None:
        super().__init__(folder)
        self._report = report

    def after(self, number: int) -> Iterator[Passage]:
        total = len(self)
        for done, passage in enumerate(super().after(number), number):
            if not done % _REPORT_EVERY:
                self._report(INDEXING, done, total)
            yield passage
        self._report(INDEXING, total, total)


def _reporting(report: ProgressCallback) -> Callable[[Path], PassageStore]:
    return lambda folder: _ReportingStore(folder, report)


def _is_built(corpus: Corpus, folder: Path, overwrite: bool) -> bool:
    """Return true if the index of this corpus exists. Raises UsageError if something else is there."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MANIFEST).is_file():
        raise UsageError(f"{folder} exists and is not an index; choose another --out DIR")
    if overwrite:
        return False
    manifest = read_manifest(folder)
    before, now = manifest.get("source") or {}, _source(corpus)
    if before != now and not (_same_file(before, now) and _same_passages(corpus, folder, manifest)):
        source = f"{before['name']} of {before['bytes']} bytes" if before else "made from memory"
        raise UsageError(f"{folder} is the index of another corpus ({source}); --overwrite replaces it")
    return True


def _same_file(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(key) == other.get(key) for key in ("name", "bytes"))


def _same_passages(corpus: Corpus, folder: Path, manifest: Manifest) -> bool:
    """Compare the passages of a corpus and an index, up to the first difference."""
    pairs = zip_longest((row.passage for row in corpus.rows()), open_passages(folder, manifest))
    return all(one == other for one, other in pairs)


def _read(corpus: Corpus, partial: Path, overwrite: bool, report: ProgressCallback) -> None:
    """Write the passages of the corpus and their manifest, from where an earlier run stopped."""
    state = _load_state(corpus, partial, overwrite)
    if (partial / MANIFEST).is_file():
        (partial / IDS).unlink(missing_ok=True)
        return
    _write_passages(corpus, partial, state, report)
    if duplicate := find_duplicate_id(partial):
        lines = corpus.lines_of((duplicate.first, duplicate.second))
        raise UsageError(f"{corpus.path}:{lines[1]}: the id {duplicate.id!r} is that of line {lines[0]} already")
    try:
        finish_store(partial, corpus.name, source=_source(corpus))
    except UsageError as error:
        raise UsageError(f"{corpus.path}: {error}") from None


def _load_state(corpus: Corpus, partial: Path, overwrite: bool) -> dict[str, Any]:
    """Return the state of reading. If the corpus file has changed, clear the folder and start from the beginning."""
    identity = {"path": str(corpus.path), "size": corpus.size, "changed": corpus.changed}
    initial = {"corpus": identity, "offset": 0, "line": 0, "passages": 0, "size": 0}
    try:
        state: dict[str, Any] = json.loads((partial / STATE).read_text(encoding="utf-8"))
        before = state["corpus"]
    except (OSError, ValueError, KeyError, TypeError):
        state, before = initial, None
    if before == identity:
        return state
    if before is not None and before["path"] != identity["path"] and not overwrite:
        raise UsageError(f"{partial} is the unfinished index of {before['path']}; finish it, or --overwrite it")
    _clear(partial, ours=before is not None)
    return initial


def _clear(partial: Path, *, ours: bool) -> None:
    """Empty the folder. Raises UsageError if it may hold the user's own files."""
    paths = [path for path in partial.iterdir() if path.name != LOCK]
    if not ours and any(path.name not in (TEXTS, OFFSETS, IDS, f"{STATE}.part") for path in paths):
        raise UsageError(f"{partial} exists and is not an unfinished index; remove it, or choose another --out")
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _write_passages(corpus: Corpus, partial: Path, state: dict[str, Any], report: ProgressCallback) -> None:
    with StoreWriter(partial, passages=state["passages"], size=state["size"]) as writer:
        offset, line = state["offset"], state["line"]
        for row in corpus.rows(offset, line):
            writer.add(row.passage)
            offset, line = row.end, row.line
            if not writer.passages % _REPORT_EVERY:
                report(READING, corpus.read, corpus.size)
            if not writer.passages % STATE_EVERY:
                _save_state(writer, partial, state | {"offset": offset, "line": line})
        _save_state(writer, partial, state | {"offset": offset, "line": line})
    report(READING, corpus.size, corpus.size)


def _save_state(writer: StoreWriter, partial: Path, state: dict[str, Any]) -> None:
    """Flush the passages, and only then record them in the state."""
    writer.flush()
    write_json(partial / STATE, state | {"passages": writer.passages, "size": writer.size})


def _move(partial: Path, folder: Path) -> None:
    for path in partial.glob("*.partial"):  # of an engine that an earlier, interrupted run was building
        shutil.rmtree(path)
    if folder.exists():
        os.rename(folder, partial / _OLD)
    os.rename(partial, folder)
    (folder / STATE).unlink(missing_ok=True)
    shutil.rmtree(folder / _OLD, ignore_errors=True)


def _source(corpus: Corpus) -> dict[str, Any]:
    return {"name": corpus.path.name, "bytes": corpus.size, "changed": corpus.changed}

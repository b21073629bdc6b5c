"""An index: a folder with the passages of a corpus and what engines made of them.

`index.json` says what is whole: the format, the corpus, and for each engine its version and files. What it does not
name is never opened, so that nothing half-written is.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval import bm25s_engine, dense_engine, tantivy_engine
from agentgym_envs.search.retrieval.base import Passage, Retriever
from agentgym_envs.search.retrieval.passages import PassageStore
from agentgym_envs.search.retrieval.writing import IDS, StoreWriter, find_twins, finish_store, sizes_of

FORMAT = 1
"""Goes up when an index of before can no longer be read."""
MANIFEST = "index.json"
ENGINES: dict[str, tuple[Callable[[Path, PassageStore], Retriever], Callable[..., None]]] = {
    "tantivy": (tantivy_engine.TantivyRetriever, tantivy_engine.build),
    "bm25s": (bm25s_engine.Bm25sRetriever, bm25s_engine.build),
    "dense": (dense_engine.DenseRetriever, dense_engine.build),
}
"""Local engines: what opens one in an index's folder, and what makes it there from the passages."""
_PACKAGES = {"dense": "faiss-cpu"}
"""The package whose version is noted, where it is not called as the engine is."""
LOCK = "lock"
_AT_ONCE = 50_000
Manifest = dict[str, Any]


def open_index(folder: str | os.PathLike[str], engine: str = "tantivy") -> Retriever:
    """A retriever over an index; all of a process share one.

    Raises:
        UsageError: there is no index of this format, or it was not made for that engine.
        RetrieverError: it is damaged.
    """
    path = Path(folder).resolve()
    check_engine(engine)
    read_manifest(path)
    return _open(path, engine, (path / MANIFEST).stat().st_mtime_ns)


def check_engine(engine: str) -> None:
    """Raise UsageError, naming the choices, if there is no such engine."""
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine!r}; choose one of {', '.join(ENGINES)}")


@lru_cache(maxsize=16)
def _open(folder: Path, engine: str, changed: int) -> Retriever:
    manifest = read_manifest(folder)
    if engine not in manifest["engines"]:
        made = ", ".join(manifest["engines"]) or "none"
        raise UsageError(
            f"the index {folder} was not made for the engine {engine!r} (only for {made}); "
            f"`agentgym search index {folder} --engine {engine}` adds it"
        )
    _check_sizes(folder, {**manifest["files"], **manifest["engines"][engine]["files"]})
    try:
        passages = PassageStore(folder)
    except (OSError, ValueError) as error:
        raise RetrieverError(f"the index {folder} is damaged: {error}") from None
    if len(passages) != manifest["passages"]:
        raise RetrieverError(f"the index {folder} is damaged: it does not hold {manifest['passages']} passages")
    return ENGINES[engine][0](folder, passages)


def _check_sizes(folder: Path, files: Mapping[str, int]) -> None:
    """Raise RetrieverError if a file is gone or is not as long as it was."""
    for name, size in files.items():
        try:
            found = (folder / name).stat().st_size
        except OSError as error:
            raise RetrieverError(f"the index {folder} is damaged: {name}: {error.strerror}") from None
        if found != size:
            raise RetrieverError(f"the index {folder} is damaged: {name} has {found} bytes instead of {size}")


def read_manifest(folder: Path) -> Manifest:
    """What an index says of itself. Raises UsageError if there is none, or it is of another format."""
    try:
        manifest: Manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        found = manifest["format"]
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder} is no index; `agentgym search index CORPUS.jsonl` makes one") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder / MANIFEST} cannot be read: {type(error).__name__}: {error}") from None
    if found != FORMAT:
        raise UsageError(
            f"the index {folder} has the format {found!r}, this version reads {FORMAT}: make it anew "
            "with `agentgym search index CORPUS.jsonl --overwrite`"
        )
    return manifest


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a file as a whole, and see it on the disk."""
    part = path.with_name(f"{path.name}.part")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def build_index(passages: Iterable[Passage], folder: Path, *, corpus: str, engine: str = "tantivy") -> None:
    """Make an index in `folder`, which appears when all is done. Where one is already, the engine is added to it.

    Raises UsageError for passages of the same id, or none at all.
    """
    check_engine(engine)
    if not (folder / MANIFEST).is_file():
        _build(passages, folder, corpus, engine)
    if engine not in read_manifest(folder)["engines"]:
        with locked(folder):
            add_engine(folder, engine)


def _build(passages: Iterable[Passage], folder: Path, corpus: str, engine: str) -> None:
    partial = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    partial.mkdir(parents=True)
    try:
        with StoreWriter(partial) as writer:
            for number, passage in enumerate(passages, 1):
                writer.add(passage)
                if not number % _AT_ONCE:
                    writer.flush(durable=False)
            writer.flush(durable=False)
        if twins := find_twins(partial):
            raise UsageError(f"the passages {twins.first} and {twins.second} have the same id, {twins.id!r}")
        name_store(partial, corpus)
        add_engine(partial, engine)
        os.rename(partial, folder)
    except OSError:
        if not (folder / MANIFEST).is_file():  # else another process was faster
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def name_store(folder: Path, corpus: str, **more: Any) -> None:
    """Write the manifest of a store without engines, which is whole then. Raises UsageError if it is empty."""
    manifest = {"format": FORMAT, "corpus": corpus, **more, **finish_store(folder), "engines": {}}
    write_json(folder / MANIFEST, manifest)
    (folder / IDS).unlink()  # not before: who is stopped in between goes on with it


def add_engine(
    folder: Path,
    engine: str,
    options: Mapping[str, Any] | None = None,
    see: Callable[[Path], PassageStore] = PassageStore,
) -> None:
    """Make an engine's part of an index, if it is not there: it is named when it is whole.

    Where an engine can go on with what a call before this began, it does. `options` are for the engine; `see` opens
    the passages. The caller holds the index's lock, or has it for itself. Raises UsageError if the part is there, but
    was made with other options.
    """
    manifest, options = read_manifest(folder), dict(options or {})
    if engine in manifest["engines"]:
        before = manifest["engines"][engine]["options"]
        if options not in ({}, before):
            raise UsageError(f"{engine} in {folder} was made with {before}, not {options}; --overwrite replaces it")
        return
    work = folder / f"{engine}.partial"
    work.mkdir(exist_ok=True)
    ENGINES[engine][1](work, see(folder), **options)
    made = folder / engine
    shutil.rmtree(made, ignore_errors=True)  # whole, but not named: the last call ended just there
    os.rename(work / engine, made)
    shutil.rmtree(work)
    files = sizes_of([path for path in made.rglob("*") if path.is_file()], folder)
    manifest["engines"][engine] = {"version": _version(engine), "options": options, "files": files}
    write_json(folder / MANIFEST, manifest)


def drop_engine(folder: Path, engine: str) -> None:
    """Take an engine's name out of an index, so that it can be made anew."""
    manifest = read_manifest(folder)
    if manifest["engines"].pop(engine, None) is not None:
        write_json(folder / MANIFEST, manifest)


@contextlib.contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a folder's lock, which ends with the process. Raises UsageError if another has it and `wait` is false."""
    try:
        import fcntl
    except ImportError:  # Windows: there two processes must not write to one index
        yield
        return
    with open(folder / LOCK, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise UsageError(f"another process is writing to {folder}; wait until it is done") from None
        yield


def _version(engine: str) -> str:
    try:
        return version(_PACKAGES.get(engine, engine))
    except PackageNotFoundError:
        return "unknown"

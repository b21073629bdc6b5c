"""An index: a folder with the passages of a corpus and what engines made of them.

`index.json` says what is whole: the format, the corpus, and for each engine its version and files. What it does not
name is never opened, so that nothing half-written is.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval import bm25s_engine, dense_engine, tantivy_engine
from agentgym_envs.search.retrieval.base import Passage, Retriever
from agentgym_envs.search.retrieval.local_base import damaged
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
_AT_ONCE = 1_000
_FORGOTTEN = 3_600
"""So many seconds after its last change, what a build left is taken for that of a process that was killed."""
_INDEX = "the index"
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


def check_engines(folder: Path, engines: Iterable[str]) -> Manifest:
    """What an index says of itself. Raises UsageError if it was not made for each of these engines."""
    manifest = read_manifest(folder)
    for engine in engines:
        if engine not in manifest["engines"]:
            made = ", ".join(manifest["engines"]) or "none"
            raise UsageError(
                f"the index {folder} was not made for the engine {engine!r} (only for {made}); "
                f"`agentgym search index {folder} --engine {engine}` adds it"
            )
    return manifest


@lru_cache(maxsize=16)
def _open(folder: Path, engine: str, changed: int) -> Retriever:
    manifest = check_engines(folder, [engine])
    check_sizes(folder, manifest["engines"][engine]["files"])
    return ENGINES[engine][0](folder, open_passages(folder, manifest))


def open_passages(folder: Path, manifest: Manifest) -> PassageStore:
    """The passages of an index. Raises RetrieverError if they are not those that the manifest tells of."""
    check_sizes(folder, manifest["files"])
    try:
        passages = PassageStore(folder)
    except (OSError, ValueError) as error:
        raise damaged(_INDEX, folder, error) from None
    if len(passages) != manifest["passages"]:
        raise damaged(_INDEX, folder, f"it does not hold {manifest['passages']} passages")
    return passages


def check_sizes(folder: Path, files: Mapping[str, int]) -> None:
    """Raise RetrieverError if a file is gone or is not as long as it was."""
    for name, size in files.items():
        try:
            found = (folder / name).stat().st_size
        except OSError as error:
            raise damaged(_INDEX, folder, f"{name}: {error.strerror}") from None
        if found != size:
            raise damaged(_INDEX, folder, f"{name} has {found} bytes instead of {size}")


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
    _remove_forgotten(folder)
    try:
        rest = iter(passages)
        with StoreWriter(partial) as writer, _begun(partial, engine) as index:
            while some := list(islice(rest, _AT_ONCE)):
                for passage in some:
                    writer.add(passage)
                index(some)
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


def _begun(folder: Path, engine: str) -> contextlib.AbstractContextManager[Callable[[Iterable[Passage]], None]]:
    """What begins the engine's part while passages are still written, if it can: Tantivy has a thread of its own."""
    if engine != "tantivy":
        return contextlib.nullcontext(lambda passages: None)
    return tantivy_engine.begun(_work(folder, engine))


def _work(folder: Path, engine: str) -> Path:
    """Where an engine's part is until it is whole."""
    work = folder / f"{engine}.partial"
    work.mkdir(exist_ok=True)
    return work


def _remove_forgotten(folder: Path) -> None:
    """Remove what killed processes left of building this index; never what may still be worked at."""
    for path in folder.parent.glob(f"{glob.escape(folder.name)}.*"):
        if re.fullmatch("[0-9a-f]{8}", path.name.removeprefix(f"{folder.name}.")) and _age(path) > _FORGOTTEN:
            shutil.rmtree(path, ignore_errors=True)


def _age(folder: Path) -> float:
    """Seconds since anything in a folder was changed; 0 if it cannot be told."""
    try:
        return time.time() - max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    except OSError:  # it is being moved or removed
        return 0.0


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
    *,
    overwrite: bool = False,
) -> None:
    """Make an engine's part of an index, if it is not there or with `overwrite`: it is named when it is whole.

    Where an engine can go on with what a call before this began, it does. `options` are for the engine; `see` opens
    the passages. The caller holds the index's lock, or has it for itself. What `overwrite` replaces stays until then.
    Raises UsageError if the part is there, but was made with other options.
    """
    manifest, options = read_manifest(folder), dict(options or {})
    if engine in manifest["engines"] and not overwrite:
        before = manifest["engines"][engine]["options"]
        if options not in ({}, before):
            raise UsageError(f"{engine} in {folder} was made with {before}, not {options}; --overwrite replaces it")
        return
    work = _work(folder, engine)
    ENGINES[engine][1](work, see(folder), **options)
    made = folder / engine
    if manifest["engines"].pop(engine, None) is not None:
        write_json(folder / MANIFEST, manifest)  # what is named is never half old and half new
    shutil.rmtree(made, ignore_errors=True)  # the old one, or one whose maker was stopped before it was named
    os.rename(work / engine, made)
    shutil.rmtree(work)
    files = sizes_of([path for path in made.rglob("*") if path.is_file()], folder)
    manifest["engines"][engine] = {"version": _version(engine), "options": options, "files": files}
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

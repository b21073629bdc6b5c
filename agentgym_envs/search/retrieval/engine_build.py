"""Adding the part of an engine to an index."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.engines import ENGINES
from agentgym_envs.search.retrieval.manifest import MANIFEST, read_manifest, sizes_of, write_json
from agentgym_envs.search.retrieval.passages import PassageStore


def add_engine(
    folder: Path,
    engine: str,
    options: Mapping[str, Any] | None = None,
    open_store: Callable[[Path], PassageStore] = PassageStore,
    *,
    overwrite: bool = False,
) -> None:
    """Build the part of an engine in an index, unless it exists and `overwrite` is false.

    The manifest names the part once it is complete; until then an old part stays in use. An engine that can resume
    an interrupted build does so. The caller holds the lock of the index, or is the only one that knows the folder.

    Args:
        folder: the folder of the index.
        engine: a name in `ENGINES`.
        options: arguments for the engine's build function.
        open_store: opens the passages.
        overwrite: replace an existing part.

    Raises:
        UsageError: the part exists and was built with other options.
    """
    manifest, options = read_manifest(folder), dict(options or {})
    if engine in manifest["engines"] and not overwrite:
        before = manifest["engines"][engine]["options"]
        if options not in ({}, before):
            raise UsageError(f"{engine} in {folder} was built with {before}, not {options}; --overwrite replaces it")
        return
    work = work_folder(folder, engine)
    ENGINES[engine].build(work, open_store(folder), **options)
    built = folder / engine
    if manifest["engines"].pop(engine, None) is not None:
        write_json(folder / MANIFEST, manifest)  # a part that the manifest names is never half old and half new
    shutil.rmtree(built, ignore_errors=True)  # the old part, or one whose builder stopped before naming it
    os.rename(work / engine, built)
    shutil.rmtree(work)
    files = sizes_of([path for path in built.rglob("*") if path.is_file()], folder)
    manifest["engines"][engine] = {"version": _version(engine), "options": options, "files": files}
    write_json(folder / MANIFEST, manifest)


def work_folder(folder: Path, engine: str) -> Path:
    """Create and return the folder where the part of an engine is built."""
    work = folder / f"{engine}.partial"
    work.mkdir(exist_ok=True)
    return work


def _version(engine: str) -> str:
    try:
        return version(ENGINES[engine].distribution)
    except PackageNotFoundError:
        return "unknown"

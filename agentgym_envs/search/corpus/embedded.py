"""The embedded corpus and its index, which is built on first use and stored in the user's cache folder."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from agentgym_envs.corpus.facts import VERSIONS, data_digest, files_of
from agentgym_envs.errors import RetrieverError, UsageError, missing_extra
from agentgym_envs.search.corpus.pages import embedded_passages
from agentgym_envs.search.retrieval.index import build_index
from agentgym_envs.search.retrieval.locking import locked
from agentgym_envs.search.retrieval.manifest import FORMAT, check_sizes, read_manifest
from agentgym_envs.task import canonical_hash

__all__ = ["corpus_digest", "embedded_index", "embedded_passages"]
CACHE = "AGENTGYM_CACHE"
"""The environment variable for another cache folder."""
NAME = "embedded"
NEWEST = VERSIONS[-1]
"""The version of the corpus by default."""
_log = logging.getLogger(__name__)


def embedded_index(engine: str = "tantivy", version: int = NEWEST, options: Mapping[str, Any] | None = None) -> Path:
    """Return the folder of the index for an engine with its options. Builds it the first time; takes some seconds.

    Several processes may call this at the same time. A damaged index is built again. If the cache is not writable, the
    index goes to a temporary folder of this process.

    Raises:
        UsageError: there is no such engine.
        MissingExtra: a package that it needs is not installed.
    """
    options = dict(options or {})
    suffix = f"-{canonical_hash(options)[:8]}" if options else ""
    folder = cache_folder() / f"{NAME}-{corpus_digest(version)[:16]}-{FORMAT}{suffix}"
    try:
        return folder if _has(folder, engine) else _build(folder, engine, version, options)
    except OSError as error:
        return _build(_temporary(str(error)) / folder.name, engine, version, options)


@lru_cache(maxsize=len(VERSIONS))
def corpus_digest(version: int = NEWEST) -> str:
    """SHA-256 of a version of the data and of the code that writes the passages."""
    here = files("agentgym_envs.search.corpus")
    code = [hashlib.sha256((here / name).read_bytes()).hexdigest() for name in ("pages.py", "values.py")]
    return hashlib.sha256(" ".join([data_digest(*files_of(version)), *code]).encode()).hexdigest()


def cache_folder() -> Path:
    """Return the folder where indexes are cached. Raises MissingExtra."""
    if chosen := os.environ.get(CACHE):
        return Path(chosen) / "search"
    try:
        from platformdirs import user_cache_dir
    except ModuleNotFoundError:
        raise missing_extra("the embedded corpus", "platformdirs", "search") from None
    return Path(user_cache_dir("agentgym-envs")) / "search"


def _has(folder: Path, engine: str) -> bool:
    """Return true if the index exists and was built for an engine. Removes a damaged index."""
    if not folder.exists():
        return False
    if not _is_intact(folder):
        with locked(folder.parent):  # so that no process removes an index that another has just built
            if folder.exists() and not _is_intact(folder):
                _remove(folder)
        return False
    return engine in read_manifest(folder)["engines"]


def _is_intact(folder: Path) -> bool:
    try:
        manifest = read_manifest(folder)
        for part in (manifest, *manifest["engines"].values()):
            check_sizes(folder, part["files"])
    except (UsageError, RetrieverError) as error:
        _log.warning("the search index is damaged and will be built again: %s", error)
        return False
    return True


def _remove(folder: Path) -> None:
    """Remove an index atomically, as other processes see it."""
    aside = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    os.rename(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)


def _build(folder: Path, engine: str, version: int, options: Mapping[str, Any]) -> Path:
    build_index(embedded_passages(version), folder, corpus=NAME, engine=engine, options=options)
    return folder


@lru_cache(maxsize=1)
def _temporary_folder() -> Path:
    """Create a folder that is removed when this process exits, but not when a forked child exits."""
    folder = Path(tempfile.mkdtemp(prefix="agentgym-search-"))
    atexit.register(_remove_if_owner, folder, os.getpid())
    return folder


def _remove_if_owner(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _temporary(why: str) -> Path:
    if not _temporary_folder.cache_info().currsize:
        _log.warning("the search index cannot be cached (%s), so each process builds its own; set %s", why, CACHE)
    return _temporary_folder()

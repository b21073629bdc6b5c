"""The embedded corpus and its index, which is made when it is first asked for and kept in the user's cache."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import secrets
import shutil
import tempfile
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from agentgym_envs.errors import RetrieverError, UsageError, missing_extra
from agentgym_envs.search.corpus.facts import FILES, data_digest
from agentgym_envs.search.corpus.pages import embedded_passages
from agentgym_envs.search.retrieval import index

__all__ = ["corpus_digest", "embedded_index", "embedded_passages"]
CACHE = "AGENTGYM_CACHE"
"""The environment variable that names another folder for what is cached."""
NAME = "embedded"
_log = logging.getLogger(__name__)


def embedded_index(engine: str = "tantivy") -> Path:
    """The folder of the corpus's index for an engine, which takes some seconds the first time.

    Processes may ask at once. One that is damaged is made anew. Where the cache cannot be written, the index goes to a
    temporary folder of this process.

    Raises:
        UsageError: there is no such engine.
        MissingExtra: a package that it needs is not installed.
    """
    folder = cache_folder() / f"{NAME}-{corpus_digest()[:16]}-{index.FORMAT}"
    try:
        return folder if _has(folder, engine) else _build(folder, engine)
    except OSError as error:
        return _build(_temporary(str(error)) / folder.name, engine)


@lru_cache(maxsize=1)
def corpus_digest() -> str:
    """SHA-256 of the data and of the code that writes passages from them."""
    here = files("agentgym_envs.search.corpus")
    code = [hashlib.sha256((here / name).read_bytes()).hexdigest() for name in ("pages.py", "values.py")]
    return hashlib.sha256(" ".join([data_digest(*FILES), *code]).encode()).hexdigest()


def cache_folder() -> Path:
    """Where indexes are kept between processes. Raises MissingExtra."""
    if chosen := os.environ.get(CACHE):
        return Path(chosen) / "search"
    try:
        from platformdirs import user_cache_dir
    except ModuleNotFoundError:
        raise missing_extra("the embedded corpus", "platformdirs", "search") from None
    return Path(user_cache_dir("agentgym-envs")) / "search"


def _has(folder: Path, engine: str) -> bool:
    """Whether the index is there and made for an engine. One that is damaged is removed."""
    if not folder.exists():
        return False
    if not _is_whole(folder):
        with index.locked(folder.parent):  # so that nobody removes what another has just made
            if folder.exists() and not _is_whole(folder):
                _remove(folder)
        return False
    return engine in index.read_manifest(folder)["engines"]


def _is_whole(folder: Path) -> bool:
    try:
        manifest = index.read_manifest(folder)
        for part in (manifest, *manifest["engines"].values()):
            index.check_sizes(folder, part["files"])
    except (UsageError, RetrieverError) as error:
        _log.warning("the search index is made anew: %s", error)
        return False
    return True


def _remove(folder: Path) -> None:
    """At once for all who look."""
    aside = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    os.rename(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)


def _build(folder: Path, engine: str) -> Path:
    index.build_index(embedded_passages(), folder, corpus=NAME, engine=engine)
    return folder


@lru_cache(maxsize=1)
def _temporary_folder() -> Path:
    """Goes away with the process that made it, and not with those that were forked from it."""
    folder = Path(tempfile.mkdtemp(prefix="agentgym-search-"))
    atexit.register(_leave, folder, os.getpid())
    return folder


def _leave(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _temporary(why: str) -> Path:
    if not _temporary_folder.cache_info().currsize:
        _log.warning("the search index cannot be kept (%s), so every process makes its own; set %s", why, CACHE)
    return _temporary_folder()

"""The embedded corpus and its index, which is made when it is first asked for and kept in the user's cache."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from agentgym_envs.errors import UsageError, missing_extra
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

    Processes may ask at once. Where the cache cannot be written, the index goes to a temporary folder of this process.

    Raises:
        UsageError: there is no such engine.
        MissingExtra: a package that it needs is not installed.
    """
    folder = _cache() / f"{NAME}-{corpus_digest()[:16]}-{index.FORMAT}"
    if _has(folder, engine):
        return folder
    try:
        return _build(folder, engine)
    except OSError as error:
        return _build(_temporary(str(error)) / folder.name, engine)


@lru_cache(maxsize=1)
def corpus_digest() -> str:
    """SHA-256 of the data and of the code that writes passages from them."""
    here = files("agentgym_envs.search.corpus")
    code = [hashlib.sha256((here / name).read_bytes()).hexdigest() for name in ("pages.py", "values.py")]
    return hashlib.sha256(" ".join([data_digest(*FILES), *code]).encode()).hexdigest()


def _cache() -> Path:
    if chosen := os.environ.get(CACHE):
        return Path(chosen) / "search"
    try:
        from platformdirs import user_cache_dir
    except ModuleNotFoundError:
        raise missing_extra("the embedded corpus", "platformdirs", "search") from None
    return Path(user_cache_dir("agentgym-envs")) / "search"


def _has(folder: Path, engine: str) -> bool:
    try:
        return engine in index.read_manifest(folder)["engines"]
    except UsageError:
        return False


def _build(folder: Path, engine: str) -> Path:
    index.build_index(embedded_passages(), folder, corpus=NAME, engine=engine)
    return folder


@lru_cache(maxsize=1)
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Goes away with the process."""
    return tempfile.TemporaryDirectory(prefix="agentgym-search-")


def _temporary(why: str) -> Path:
    if not _temporary_folder.cache_info().currsize:
        _log.warning("the search index cannot be kept (%s), so every process makes its own; set %s", why, CACHE)
    return Path(_temporary_folder().name)

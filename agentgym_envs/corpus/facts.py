"""The facts of the embedded corpus, in columns, as written by scripts/make_search_corpus.py.

Version 1 is what the sources state. Version 2 leaves out what is wrong or contradicted (`corrections`). Search uses
version 2 by default, and the encyclopedia of the web sites version 1, so that its pages and tasks stay the same.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

Columns = Mapping[str, Sequence[Any]]
FILES = ("world.json.xz", "pages.json.xz", "prose.json.xz")
CORRECTIONS = "corrections.json"
VERSIONS = (1, 2)


class WorldFacts(NamedTuple):
    """The tables that questions are about, each as columns of the same length; `data/README.md` describes them."""

    countries: Columns
    cities: Columns
    airports: Columns
    elements: Columns


@lru_cache(maxsize=len(VERSIONS))
def world_facts(version: int = VERSIONS[-1]) -> WorldFacts:
    """Return a version of the facts, read once per process."""
    found = _world()
    if version > 1:
        from agentgym_envs.corpus.corrections import correct_world

        found = correct_world(found)  # a copy
    return WorldFacts(found["countries"], found["cities"], found["airports"], found["elements"])


@lru_cache(maxsize=1)
def _world() -> dict[str, Any]:
    """The tables of version 1, which all versions start from, decompressed once per process."""
    return read("world.json.xz")


def read(name: str) -> dict[str, Any]:
    """Parse one of `FILES`."""
    found: dict[str, Any] = json.loads(lzma.decompress(raw(name)))
    return found


def page_facts(version: int = VERSIONS[-1]) -> dict[str, Any]:
    """Return a version of the facts that only pages state."""
    found = read("pages.json.xz")
    if version > 1:
        from agentgym_envs.corpus.corrections import correct_pages

        found = correct_pages(found)
    return found


def files_of(version: int) -> tuple[str, ...]:
    """Return the names of the files of a version."""
    return FILES if version == 1 else (*FILES, CORRECTIONS)


def raw(name: str) -> bytes:
    """Return the bytes of a file of the corpus."""
    return (files("agentgym_envs.corpus") / "data" / name).read_bytes()


@lru_cache(maxsize=8)
def data_digest(*names: str) -> str:
    """SHA-256 of files of the corpus."""
    return hashlib.sha256("".join(hashlib.sha256(raw(name)).hexdigest() for name in names).encode()).hexdigest()

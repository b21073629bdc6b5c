"""The facts of the embedded corpus, in columns, as written by scripts/make_search_corpus.py."""

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


class WorldFacts(NamedTuple):
    """The tables that questions are about, each as columns of the same length; `data/README.md` describes them."""

    countries: Columns
    cities: Columns
    airports: Columns
    elements: Columns


@lru_cache(maxsize=1)
def world_facts() -> WorldFacts:
    """Return the facts, read once per process."""
    found = read("world.json.xz")
    return WorldFacts(found["countries"], found["cities"], found["airports"], found["elements"])


def read(name: str) -> dict[str, Any]:
    """Parse one of `FILES`."""
    found: dict[str, Any] = json.loads(lzma.decompress(raw(name)))
    return found


def raw(name: str) -> bytes:
    """Return the bytes of a file of the corpus."""
    return (files("agentgym_envs.corpus") / "data" / name).read_bytes()


@lru_cache(maxsize=8)
def data_digest(*names: str) -> str:
    """SHA-256 of files of the corpus."""
    return hashlib.sha256("".join(hashlib.sha256(raw(name)).hexdigest() for name in names).encode()).hexdigest()

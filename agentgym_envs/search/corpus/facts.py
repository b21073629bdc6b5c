"""The facts of the embedded corpus, in columns, as scripts/make_search_corpus.py froze them."""

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


class World(NamedTuple):
    """What questions are about, each table as columns of the same length; `data/README.md` tells what each holds."""

    countries: Columns
    cities: Columns
    airports: Columns
    elements: Columns


@lru_cache(maxsize=1)
def world() -> World:
    """The facts, read once a process."""
    found = read("world.json.xz")
    return World(found["countries"], found["cities"], found["airports"], found["elements"])


def read(name: str) -> dict[str, Any]:
    """What one of `FILES` holds."""
    found: dict[str, Any] = json.loads(lzma.decompress(raw(name)))
    return found


def raw(name: str) -> bytes:
    """A file of the corpus as it is shipped."""
    return (files("agentgym_envs.search.corpus") / "data" / name).read_bytes()


@lru_cache(maxsize=8)
def data_digest(*names: str) -> str:
    """SHA-256 over shipped files."""
    return hashlib.sha256("".join(hashlib.sha256(raw(name)).hexdigest() for name in names).encode()).hexdigest()

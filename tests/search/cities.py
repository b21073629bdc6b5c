"""A corpus of cities in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from agentgym_envs.search.retrieval import building
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.index import open_index

CITIES = [Passage(f"c{i}", f'"City {i}"\nCity {i} lies on the river number {i % 7}.') for i in range(60)]


def line(passage: Passage) -> bytes:
    return json.dumps(passage._asdict()).encode() + b"\n"


def write(path: Path, lines: Iterable[bytes]) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def names(folder: Path, query: str = "river 3", engine: str = "tantivy") -> list[str]:
    return [hit.passage.id for hit in open_index(folder, engine).search([query], 5)[0]]


def stop_at_engine(stage: str, done: int, total: int) -> None:
    if stage == building.INDEXING:
        raise KeyboardInterrupt

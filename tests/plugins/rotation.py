"""Rotation: a sweep that is too long for every run is split into slices, and each run takes one.

The cases of a test that is marked `rotating` are dealt to `SLICES` slices in turn; a test without cases goes to one of
them. With `rotating(always=2)` the first two cases run every time. Tests that take turns with each other, one in each
run, have numbers: with `rotating(turns=(0, 2), of=3)` a test has two of three turns.

The run's key chooses the slice, so that any `SLICES` consecutive keys run everything:

- `AGENTGYM_SLICE=4` gives the key; `AGENTGYM_SLICE=all` runs every slice.
- Otherwise the key is the number of commits up to HEAD: the same commit runs the same slice, the next one the next.

A test that is named by its node id always runs. A loop inside a test takes `part(SEQUENCE, NAME)` of its sequence.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import pytest

SLICES = 40
VARIABLE = "AGENTGYM_SLICE"
ROOT = Path(__file__).parents[2]
ALL = "all"
MARKER = "rotating"
GROUPS = pytest.StashKey[dict[str, list[str]]]()
"""Every rotating test that was collected, and the ids of its cases."""

_T = TypeVar("_T")


def key_from(setting: str | None, commits: Callable[[], int]) -> int | None:
    """Return the key set by `VARIABLE`, or the number of commits; None means every slice.

    Raises:
        pytest.UsageError: the setting is neither `all` nor a whole number.
    """
    if not setting:
        return commits()
    if setting == ALL:
        return None
    if not setting.isdecimal():
        raise pytest.UsageError(f"{VARIABLE} must be {ALL!r} or a whole number such as 3, got {setting!r}")
    return int(setting)


def commits() -> int:
    """The number of commits up to HEAD; in a shallow clone a number from its hash; 0 outside a repository."""
    if _git("rev-parse", "--is-shallow-repository") == "true":
        return int(_git("rev-parse", "HEAD")[:8], 16)
    return int(_git("rev-list", "--count", "HEAD") or 0)


def _git(*command: str) -> str:
    try:
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def current_key() -> int | None:
    """The key of this run; None runs every slice."""
    return key_from(os.environ.get(VARIABLE), commits)


def in_slice(index: int, name: str, key: int | None) -> bool:
    """True if case `index` of the sweep `name` is in the slice of a key. Small sweeps start in different slices."""
    return key is None or (index + crc32(name.encode()) - key) % SLICES == 0


def has_turn(turns: Collection[int], of: int, key: int | None) -> bool:
    """True if one of these turns, of `of` in all, is that of a key."""
    if not all(0 <= turn < of <= SLICES for turn in turns):
        raise pytest.UsageError(f"turns are numbers from 0 to {of - 1}, of at most {SLICES}, got {[*turns]}")
    return key is None or key % SLICES % of in turns


def part(cases: Iterable[_T], name: str) -> list[_T]:
    """The cases of the sweep `name` that this run takes, in their order.

    At least one, so that no run skips the loop: of fewer than `SLICES` cases, one in turn.
    """
    every, key = list(cases), current_key()
    if key is None or not every:
        return every
    if len(every) < SLICES:
        return [every[(key + crc32(name.encode())) % len(every)]]
    return [case for index, case in enumerate(every) if in_slice(index, name, key)]


def chosen(groups: dict[str, list[_T]], key: int | None) -> list[_T]:
    """The cases of some sweeps, by name, that the run of a key takes."""
    return [case for name, cases in groups.items() for index, case in enumerate(cases) if in_slice(index, name, key)]


def pytest_configure(config: pytest.Config) -> None:
    """Fix the key in the environment, where the workers and the tests' own processes find it."""
    key = current_key()
    os.environ[VARIABLE] = ALL if key is None else str(key % SLICES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is in another slice."""
    groups, out_of_turn = _rotating(items)
    config.stash[GROUPS] = {name: [item.nodeid for item in cases] for name, cases in groups.items()}
    kept = set(map(id, chosen(groups, current_key())))
    left_out = [item for cases in groups.values() for item in cases if id(item) not in kept] + out_of_turn
    left_out = [item for item in left_out if not _is_named(item.nodeid, config.args)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in gone]


def _rotating(items: list[pytest.Item]) -> tuple[dict[str, list[pytest.Item]], list[pytest.Item]]:
    """The cases that are dealt to slices, by sweep, and the tests that do not have this run's turn."""
    groups: dict[str, list[pytest.Item]] = {}
    seen: Counter[str] = Counter()
    out_of_turn = []
    for item in items:
        if marker := item.get_closest_marker(MARKER):
            name = sweep_of(item.nodeid)
            seen[name] += 1
            if "of" in marker.kwargs:
                out_of_turn += [] if has_turn(**marker.kwargs, key=current_key()) else [item]
            elif seen[name] > marker.kwargs.get("always", 0):
                groups.setdefault(name, []).append(item)
    return groups, out_of_turn


def sweep_of(node_id: str) -> str:
    """The test function of a node id, which is the name of its sweep."""
    return node_id.partition("[")[0]


def _is_named(node_id: str, arguments: Sequence[str]) -> bool:
    """True if the command line names this test or its function, and not just its file or folder."""
    return any("::" in given and node_id.startswith(given) for given in arguments)

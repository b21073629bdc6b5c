"""Diffs of commits and merge requests."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.sites.code.repository import content, count_changed_lines, is_long
from agentgym_envs.webarena.sites.framework.context import RequestContext

MOST_LINES = 60
"""Maximum number of diff lines on one page."""


@dataclass(frozen=True, slots=True)
class _Hunk:
    """A part of a change: the lines to show, and the total numbers of added and deleted lines."""

    lines: list[tuple[str, str]]
    additions: int
    deletions: int


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The change of one file. `lines` are (kind, text) with kind "+", "-", " " or "@"; `hidden` more are left out."""

    path: str
    additions: int
    deletions: int
    lines: tuple[tuple[str, str], ...]
    hidden: int
    status: str


def changes_of(commits: Iterable[Any]) -> list[list[Any]]:
    """Combine the changes of commits (oldest first) to one or more entries per path, as in the column `changes`."""
    by_path: dict[str, list[list[Any]]] = {}
    for row in commits:
        for change in json.loads(row["changes"]):
            by_path.setdefault(change[0], []).append(change)
    together: list[list[Any]] = []
    for path, entries in sorted(by_path.items()):
        if any(entry[5] for entry in entries):
            together += entries
        else:
            together.append([path, 0, 0, entries[0][3], entries[-1][4], 0])
    return together


def file_diffs(context: RequestContext, changes: Sequence[Sequence[Any]]) -> list[FileDiff]:
    """Return the diffs of changes by file, truncated after `MOST_LINES` lines in all."""
    by_path: dict[str, list[_Hunk]] = {}
    statuses: dict[str, str] = {}
    for path, added, deleted, before, after, line in changes:
        by_path.setdefault(path, []).append(_hunk(context, added, deleted, before, after, line))
        statuses.setdefault(path, "deleted" if after is None else "new" if before is None and line < 2 else "changed")
    shown, room = [], MOST_LINES
    for path, hunks in by_path.items():
        lines = [line for hunk in hunks for line in hunk.lines]
        kept = lines[: max(room, 0)]
        room -= len(kept)
        added, deleted = sum(hunk.additions for hunk in hunks), sum(hunk.deletions for hunk in hunks)
        shown.append(FileDiff(path, added, deleted, tuple(kept), len(lines) - len(kept), statuses[path]))
    return shown


def _hunk(context: RequestContext, added: int, deleted: int, before: int | None, after: int | None, line: int) -> _Hunk:
    if line:
        return _make_hunk(_reconstructed(content(context, after).splitlines(), added, deleted, line))
    was, is_now = content(context, before), content(context, after)
    old, new = was.splitlines(), is_now.splitlines()
    if is_long(old, new):
        return _Hunk([("@", "This change is too large to show.")], *count_changed_lines(was, is_now))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    return _make_hunk([("@", text) if text.startswith("@@") else (text[:1], text[1:]) for text in lines])


def _make_hunk(lines: list[tuple[str, str]]) -> _Hunk:
    added, deleted = (sum(kind == sign for kind, _ in lines) for sign in "+-")
    return _Hunk(lines, added, deleted)


def _reconstructed(text: Sequence[str], added: int, deleted: int, line: int) -> list[tuple[str, str]]:
    """Return a diff from the added lines alone. The deleted lines are invented variants of the text."""
    first = line - 1
    new = text[first : first + added]
    old = [_earlier_version(text[(first + offset) % max(len(text), 1)]) for offset in range(deleted)] if text else []
    head = [("@", f"@@ -{line},{len(old)} +{line},{len(new)} @@")]
    around = [(" ", text[first - 1])] if 0 < first < len(text) else []
    return [*head, *around, *(("-", one) for one in old), *(("+", one) for one in new)]


def _earlier_version(line: str) -> str:
    """Invent an earlier version of a line: with another number, or without its last word."""
    if re.search(r"\d", line):
        return re.sub(r"\d+", lambda found: str(int(found[0]) // 2 + 1), line, count=1)
    return re.sub(r"(\S)\s+\S+$", r"\1", line)

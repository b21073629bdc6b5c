"""What a commit or a merge request changes, as pages show it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.sites.code.repository import content, counted, is_long
from agentgym_envs.webarena.sites.framework.context import RequestContext

MOST_LINES = 60
"""Of one page; the rest of a long change is only counted."""


@dataclass(frozen=True, slots=True)
class _Hunk:
    """A part of a change: its lines, and how many of all came and went."""

    lines: list[tuple[str, str]]
    additions: int
    deletions: int


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The change of one file. `lines` are (kind, text), of kind "+", "-", " " or "@"; `hidden` more are not shown."""

    path: str
    additions: int
    deletions: int
    lines: tuple[tuple[str, str], ...]
    hidden: int
    what: str


def changes_of(commits: Iterable[Any]) -> list[list[Any]]:
    """What some commits, oldest first, changed together: one or more entries for each path, as the column has them."""
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
    """Changes as pages show them, entries for one path together, cut after `MOST_LINES`."""
    by_path: dict[str, list[_Hunk]] = {}
    whats: dict[str, str] = {}
    for path, added, gone, before, after, line in changes:
        by_path.setdefault(path, []).append(_hunk(context, added, gone, before, after, line))
        whats.setdefault(path, "deleted" if after is None else "new" if before is None and line < 2 else "changed")
    shown, room = [], MOST_LINES
    for path, hunks in by_path.items():
        lines = [line for hunk in hunks for line in hunk.lines]
        kept = lines[: max(room, 0)]
        room -= len(kept)
        added, gone = sum(hunk.additions for hunk in hunks), sum(hunk.deletions for hunk in hunks)
        shown.append(FileDiff(path, added, gone, tuple(kept), len(lines) - len(kept), whats[path]))
    return shown


def _hunk(context: RequestContext, added: int, gone: int, before: int | None, after: int | None, line: int) -> _Hunk:
    if line:
        return _of(_written(content(context, after).splitlines(), added, gone, line))
    was, is_now = content(context, before), content(context, after)
    old, new = was.splitlines(), is_now.splitlines()
    if is_long(old, new):
        return _Hunk([("@", "This change is too large to show.")], *counted(was, is_now))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    return _of([("@", text) if text.startswith("@@") else (text[:1], text[1:]) for text in lines])


def _of(lines: list[tuple[str, str]]) -> _Hunk:
    added, gone = (sum(kind == sign for kind, _ in lines) for sign in "+-")
    return _Hunk(lines, added, gone)


def _written(text: Sequence[str], added: int, gone: int, line: int) -> list[tuple[str, str]]:
    """A change of which only the lines that it brought are known: those that went said the same in other words."""
    first = line - 1
    new = text[first : first + added]
    old = [_earlier(text[(first + place) % max(len(text), 1)]) for place in range(gone)] if text else []
    head = [("@", f"@@ -{line},{len(old)} +{line},{len(new)} @@")]
    around = [(" ", text[first - 1])] if 0 < first < len(text) else []
    return [*head, *around, *(("-", one) for one in old), *(("+", one) for one in new)]


def _earlier(line: str) -> str:
    """An earlier wording of a line: another number, or without its last word."""
    if re.search(r"\d", line):
        return re.sub(r"\d+", lambda found: str(int(found[0]) // 2 + 1), line, count=1)
    return re.sub(r"(\S)\s+\S+$", r"\1", line)

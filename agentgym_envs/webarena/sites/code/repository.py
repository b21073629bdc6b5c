"""The repository of a project: branches, files, history and commits."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code.access import Project
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound

HISTORY_CTE = """
WITH RECURSIVE line(branch, until) AS (
    SELECT ?1, '9999'
    UNION
    SELECT b.origin, MIN(b.started, line.until) FROM line JOIN code_branches b ON b.id = line.branch
    WHERE b.origin IS NOT NULL
)
"""
"""Start of queries on the history of branch ?1: its own commits, and those of the branches it started from."""
_IN_HISTORY = "FROM line JOIN code_commits c ON c.branch = line.branch AND c.moment <= line.until"
_COMMIT = f"""
{HISTORY_CTE} SELECT c.*, a.user, a.name AS author_name, a.colour {_IN_HISTORY} JOIN code_accounts a ON a.id = c.author
"""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*")
MOST_COMMITS = 400
"""Number of commits that pages search for the last change of a file."""
MOST_COMPARED = 2000
"""Lines of a file. Longer files are compared without their order, since an exact diff takes too long."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file or folder, with the last commit that changed it, if that is among the recent ones."""

    name: str
    path: str
    folder: bool
    commit: sqlite3.Row | None


def is_name(text: str) -> bool:
    """Return True if a branch or tag may have this name."""
    return len(text) <= 100 and _NAME.fullmatch(text) is not None and ".." not in text


def is_path(text: str) -> bool:
    """Return True if a file may have this path."""
    parts = text.split("/")
    return 0 < len(text) <= 200 and all(part.strip() == part and part not in ("", ".", "..") for part in parts)


def branches(context: RequestContext, project: Project) -> list[sqlite3.Row]:
    """Return all branches of a project, the default branch first."""
    query = "SELECT * FROM code_branches WHERE project = ? ORDER BY name <> ?, name"
    return context.rows(query, project.id, project.default_branch)


def branch_named(context: RequestContext, project: Project, name: str) -> sqlite3.Row:
    """Return the branch with this name. Raises NotFound."""
    return context.one("SELECT * FROM code_branches WHERE project = ? AND name = ?", project.id, name)


def branch_and_path(context: RequestContext, project: Project, rest: str) -> tuple[sqlite3.Row, str]:
    """Split the end of a URL into a branch and a path in it. Branch names may contain slashes. Raises NotFound."""
    rest = rest.strip("/")
    for branch in sorted(branches(context, project), key=lambda branch: -len(branch["name"])):
        if rest == branch["name"] or rest.startswith(f"{branch['name']}/"):
            return branch, rest[len(branch["name"]) + 1 :]
    raise NotFound


def files(context: RequestContext, branch: int) -> dict[str, int]:
    """Return the blobs at the head of a branch by path."""
    return dict(map(tuple, context.rows("SELECT path, blob FROM code_files WHERE branch = ? ORDER BY path", branch)))


def content(context: RequestContext, blob: int | None) -> str:
    """Return the text of a blob; "" for None."""
    return str(context.value("SELECT content FROM code_blobs WHERE id = ?", blob) or "")


def listing(context: RequestContext, branch: int, folder: str) -> list[TreeEntry]:
    """Return the entries of a folder, folders first. Raises NotFound if the folder does not exist."""
    prefix = f"{folder}/" if folder else ""
    inside = [path for path in files(context, branch) if path.startswith(prefix)]
    if folder and not inside:
        raise NotFound
    names = dict.fromkeys(path[len(prefix) :].partition("/")[::2] for path in inside)
    kinds = {name: bool(rest) for name, rest in names}
    last = _last_commits(context, branch, {prefix + name for name in kinds})
    entries = [TreeEntry(name, prefix + name, is_folder, last.get(prefix + name)) for name, is_folder in kinds.items()]
    return sorted(entries, key=lambda entry: (not entry.folder, entry.name))


def history(
    context: RequestContext,
    branch: int,
    *,
    size: int,
    skipped: int = 0,
    author: str = "",
    search: str = "",
    path: str = "",
) -> list[sqlite3.Row]:
    """Return commits of a branch, newest first, filtered by author, text or path."""
    where = f"{_conditions()} ORDER BY c.moment DESC, c.id DESC LIMIT ?5 OFFSET ?6"
    return context.rows(f"{_COMMIT} {where}", branch, author, search, _in_json(path), size, skipped)


def count_history(context: RequestContext, branch: int, *, author: str = "", search: str = "", path: str = "") -> int:
    """Return the number of commits that `history` would return without pagination."""
    query = f"{HISTORY_CTE} SELECT COUNT(*) {_IN_HISTORY} JOIN code_accounts a ON a.id = c.author {_conditions()}"
    return int(context.value(query, branch, author, search, _in_json(path)))


def contributors(context: RequestContext, branch: int) -> list[sqlite3.Row]:
    """Return the authors of a branch with their commits, additions and deletions, most commits first."""
    return context.rows(
        f"""{HISTORY_CTE} SELECT a.user, a.name, a.email, a.colour, COUNT(*) AS commits, SUM(c.additions) AS additions,
        SUM(c.deletions) AS deletions, MIN(c.moment) AS first, MAX(c.moment) AS last
        {_IN_HISTORY} JOIN code_accounts a ON a.id = c.author GROUP BY a.id ORDER BY commits DESC, a.name""",
        branch,
    )


def own_commits(context: RequestContext, branch: int) -> list[sqlite3.Row]:
    """Return the commits made on the branch itself, newest first."""
    return context.rows(
        """SELECT c.*, a.user, a.name AS author_name, a.colour FROM code_commits c
        JOIN code_accounts a ON a.id = c.author WHERE c.branch = ? ORDER BY c.moment DESC, c.id DESC""",
        branch,
    )


def commit(context: RequestContext, branch: sqlite3.Row, message: str, changes: Mapping[str, str | None]) -> str:
    """Commit the new texts of files, where None deletes a file. Returns the SHA."""
    there, entries = files(context, branch["id"]), []
    for path, text in changes.items():
        before = there.get(path)
        after = None if text is None else context.write("INSERT INTO code_blobs (content) VALUES (?)", text)
        _put(context, branch["id"], path, after)
        added, deleted = count_changed_lines(content(context, before), text or "")
        entries.append([path, added, deleted, before, after, 0])
    return record(context, branch["id"], message, entries)


def record(
    context: RequestContext, branch: int, message: str, changes: Sequence[Sequence[Any]], request: int | None = None
) -> str:
    """Insert the row of a commit by the visitor; return its SHA."""
    number = context.value("SELECT MAX(id) + 1 FROM code_commits")
    name = hashlib.sha1(f"{number}/{branch}/{message}".encode(), usedforsecurity=False).hexdigest()
    context.write(
        """INSERT INTO code_commits (branch, sha, author, message, moment, additions, deletions, changes, merge_request)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        branch, name, context.account, message, stamp(), sum(change[1] for change in changes),
        sum(change[2] for change in changes), json.dumps(list(changes), separators=(",", ":")), request,
    )  # fmt: skip
    return name


def start_branch(context: RequestContext, project: Project, name: str, origin: sqlite3.Row) -> sqlite3.Row:
    """Create a branch at the head of another one."""
    context.write(
        "INSERT INTO code_branches (project, name, origin, started, protected) VALUES (?, ?, ?, ?, 0)",
        project.id, name, origin["id"], stamp(),
    )  # fmt: skip
    branch = branch_named(context, project, name)
    copy_files(context, origin["id"], branch["id"])
    return branch


def copy_files(context: RequestContext, origin: int, branch: int) -> None:
    """Copy the files of a branch to a new one."""
    context.write(
        "INSERT INTO code_files (branch, path, blob) SELECT ?, path, blob FROM code_files WHERE branch = ? ORDER BY id",
        branch, origin,
    )  # fmt: skip


def drop_branch(context: RequestContext, branch: sqlite3.Row) -> None:
    """Delete a branch with its own commits. Branches that started from it are attached to its origin."""
    context.write("UPDATE code_branches SET origin = ? WHERE origin = ?", branch["origin"], branch["id"])
    for table in ("code_files", "code_commits"):
        context.write(f"DELETE FROM {table} WHERE branch = ?", branch["id"])
    context.write("DELETE FROM code_branches WHERE id = ?", branch["id"])


def put(context: RequestContext, branch: int, blobs: Mapping[str, int | None]) -> None:
    """Set the blobs at these paths of a branch; None deletes a file."""
    for path, blob in blobs.items():
        _put(context, branch, path, blob)


def count_changed_lines(before: str, after: str) -> tuple[int, int]:
    """Return the numbers of added and deleted lines."""
    old, new = before.splitlines(), after.splitlines()
    if is_long(old, new):
        same = (Counter(old) & Counter(new)).total()
    else:
        same = sum(block.size for block in difflib.SequenceMatcher(None, old, new).get_matching_blocks())
    return len(new) - same, len(old) - same


def is_long(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return True if the texts are too long for an exact diff."""
    return max(len(old), len(new)) > MOST_COMPARED


def _put(context: RequestContext, branch: int, path: str, blob: int | None) -> None:
    if blob is None:
        context.write("DELETE FROM code_files WHERE branch = ? AND path = ?", branch, path)
        return
    context.write(
        "INSERT INTO code_files (branch, path, blob) VALUES (?1, ?2, ?3) "
        "ON CONFLICT (branch, path) DO UPDATE SET blob = ?3",
        branch, path, blob,
    )  # fmt: skip


def _conditions() -> str:
    return (
        "WHERE (?2 = '' OR a.user = ?2 COLLATE NOCASE) AND (?3 = '' OR INSTR(LOWER(c.message), LOWER(?3)))"
        " AND (?4 = '' OR INSTR(c.changes, ?4))"
    )


def _in_json(path: str) -> str:
    """Return the start of a path's entry in the column `changes`."""
    return f"[{json.dumps(path)}," if path else ""


def _last_commits(context: RequestContext, branch: int, paths: set[str]) -> dict[str, sqlite3.Row]:
    """Return the last commit that changed each path, or something below it."""
    last: dict[str, sqlite3.Row] = {}
    for row in history(context, branch, size=MOST_COMMITS):
        for change in json.loads(row["changes"]):
            path = change[0]
            while path:
                if path in paths:
                    last.setdefault(path, row)
                path = path.rpartition("/")[0]
        if len(last) == len(paths):
            break
    return last

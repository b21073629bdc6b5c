"""Merges: the changes, the conflicts, and the merge itself."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import repository
from agentgym_envs.webarena.sites.code.access import Project
from agentgym_envs.webarena.sites.framework.context import RequestContext


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The result of a merge: `blobs` before and after by path; `conflicts` are paths that both branches changed."""

    blobs: dict[str, tuple[int | None, int | None]]
    conflicts: tuple[str, ...]

    @property
    def changes(self) -> list[list[Any]]:
        """Entries of the column `changes`."""
        return [[path, 0, 0, before, after, 0] for path, (before, after) in self.blobs.items()]


def plan(context: RequestContext, source: sqlite3.Row, target: sqlite3.Row) -> MergePlan:
    """Plan a merge of two branches by comparing both with their common base.

    The base version of a path is the one before the first commit that changed it on either branch. A path that neither
    branch changed is the same as in the base.
    """
    theirs, ours = repository.files(context, source["id"]), repository.files(context, target["id"])
    differing = [path for path in sorted({*theirs, *ours}) if theirs.get(path) != ours.get(path)]
    if not differing:
        return MergePlan({}, ())
    by_source, by_target = _base_blobs(context, source["id"]), _base_blobs(context, target["id"])
    blobs: dict[str, tuple[int | None, int | None]] = {}
    conflicts = []
    for path in differing:
        base = by_source[path] if path in by_source else by_target.get(path, ours.get(path))
        if theirs.get(path) == base:
            continue
        blobs[path] = base, theirs.get(path)
        if ours.get(path) != base:
            conflicts.append(path)
    return MergePlan(blobs, tuple(conflicts))


def branches_of(
    context: RequestContext, project: Project, request: Any
) -> tuple[sqlite3.Row | None, sqlite3.Row | None]:
    """Return the source and target branches of a merge request; None for a deleted one."""
    query = "SELECT * FROM code_branches WHERE project = ? AND name = ?"
    source, target = (context.row(query, project.id, request[end]) for end in ("source", "target"))
    return source, target


def commits_of(context: RequestContext, request: Any, source: sqlite3.Row | None) -> Sequence[sqlite3.Row]:
    """Return the commits that a merge request brought or would bring, newest first."""
    if request["state"] != "merged":
        return repository.own_commits(context, source["id"]) if source else ()
    return context.rows(
        """SELECT c.*, a.user, a.name AS author_name, a.colour FROM code_commits c
        JOIN code_accounts a ON a.id = c.author WHERE c.merge_request = ? AND c.changes <> '[]'
        ORDER BY c.moment DESC, c.id DESC""",
        request["id"],
    )


def merge(
    context: RequestContext, project: Project, request: Any, source: sqlite3.Row, target: sqlite3.Row, *, drops: bool
) -> None:
    """Merge: move the commits to the target, add a merge commit, and close the issue that it resolves."""
    blobs = {path: after for path, (_, after) in plan(context, source, target).blobs.items()}
    repository.put(context, target["id"], blobs)
    context.write(
        "UPDATE code_commits SET branch = ?, merge_request = ? WHERE branch = ?",
        target["id"],
        request["id"],
        source["id"],
    )
    message = f"Merge branch '{source['name']}' into '{target['name']}'\n\n{request['title']}\n\n"
    message += f"See merge request {project.url[1:]}!{request['number']}"
    repository.record(context, target["id"], message, [], request["id"])
    _update_source_branch(context, source, target, drops=drops)
    context.write(
        "UPDATE code_merge_requests SET state = 'merged', ended = ?, ended_by = ? WHERE id = ?",
        stamp(), context.account, request["id"],
    )  # fmt: skip
    if request["closes"] and target["name"] == project.default_branch:
        context.write(
            "UPDATE code_issues SET state = 'closed', closed = ?, closed_by = ? WHERE id = ? AND state = 'open'",
            stamp(), context.account, request["closes"],
        )  # fmt: skip


def _update_source_branch(context: RequestContext, source: sqlite3.Row, target: sqlite3.Row, *, drops: bool) -> None:
    """After a merge, delete the source branch or restart it at the target."""
    context.write(
        "UPDATE code_branches SET origin = ? WHERE origin = ? AND id <> ?", target["id"], source["id"], target["id"]
    )
    if drops:
        context.write("DELETE FROM code_files WHERE branch = ?", source["id"])
        context.write("DELETE FROM code_branches WHERE id = ?", source["id"])
    elif target["origin"] != source["id"]:
        context.write(
            "UPDATE code_branches SET origin = ?, started = ? WHERE id = ?", target["id"], stamp(), source["id"]
        )


def _base_blobs(context: RequestContext, branch: int) -> dict[str, int | None]:
    """Return the blob of each changed path before the first commit on a branch, as far as it is known."""
    base: dict[str, int | None] = {}
    for row in reversed(repository.own_commits(context, branch)):
        for path, _, _, before, _, line in json.loads(row["changes"]):
            if not line:
                base.setdefault(path, before)
    return base

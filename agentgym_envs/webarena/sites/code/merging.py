"""What a merge would change, whether it can be done, and doing it."""

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
class Plan:
    """What merging would do to a branch: `blobs` before and after by path; `conflicts` are paths that both changed."""

    blobs: dict[str, tuple[int | None, int | None]]
    conflicts: tuple[str, ...]

    @property
    def changes(self) -> list[list[Any]]:
        """As entries of the column `changes`."""
        return [[path, 0, 0, before, after, 0] for path, (before, after) in self.blobs.items()]


def plan(context: RequestContext, source: sqlite3.Row, target: sqlite3.Row) -> Plan:
    """What merging one branch into another would do, by comparing both with what they came from.

    What lay at a path before both is what the first commit of either says it found there; a path that neither changed
    is as it was.
    """
    theirs, ours = repository.files(context, source["id"]), repository.files(context, target["id"])
    differing = [path for path in sorted({*theirs, *ours}) if theirs.get(path) != ours.get(path)]
    if not differing:
        return Plan({}, ())
    by_source, by_target = _found_at(context, source["id"]), _found_at(context, target["id"])
    blobs: dict[str, tuple[int | None, int | None]] = {}
    conflicts = []
    for path in differing:
        base = by_source[path] if path in by_source else by_target.get(path, ours.get(path))
        if theirs.get(path) == base:
            continue
        blobs[path] = base, theirs.get(path)
        if ours.get(path) != base:
            conflicts.append(path)
    return Plan(blobs, tuple(conflicts))


def branches_of(
    context: RequestContext, project: Project, request: Any
) -> tuple[sqlite3.Row | None, sqlite3.Row | None]:
    """The branches that a merge request is from and to; None for one that is gone."""
    query = "SELECT * FROM code_branches WHERE project = ? AND name = ?"
    source, target = (context.row(query, project.id, request[end]) for end in ("source", "target"))
    return source, target


def commits_of(context: RequestContext, request: Any, source: sqlite3.Row | None) -> Sequence[sqlite3.Row]:
    """The commits of a merge request, newest first: those that it brought, or those it would bring."""
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
    """Merge: the commits move to the target, with one more that says so; an issue that it closes is closed."""
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
    _settle_source(context, source, target, drops=drops)
    context.write(
        "UPDATE code_merge_requests SET state = 'merged', ended = ?, ended_by = ? WHERE id = ?",
        stamp(), context.account, request["id"],
    )  # fmt: skip
    if request["closes"] and target["name"] == project.default_branch:
        context.write(
            "UPDATE code_issues SET state = 'closed', closed = ?, closed_by = ? WHERE id = ? AND state = 'open'",
            stamp(), context.account, request["closes"],
        )  # fmt: skip


def _settle_source(context: RequestContext, source: sqlite3.Row, target: sqlite3.Row, *, drops: bool) -> None:
    """After a merge a branch either goes, or begins anew where the target is."""
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


def _found_at(context: RequestContext, branch: int) -> dict[str, int | None]:
    """What the first commits on a branch found at each path that they changed, as far as that is known."""
    found: dict[str, int | None] = {}
    for row in reversed(repository.own_commits(context, branch)):
        for path, _, _, before, _, line in json.loads(row["changes"]):
            if not line:
                found.setdefault(path, before)
    return found

"""Creation, forking and deletion of projects."""

from __future__ import annotations

import re
from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import repository
from agentgym_envs.webarena.sites.code.access import Project
from agentgym_envs.webarena.sites.framework.context import RequestContext

VISIBILITIES = (
    ("private", "Private: only members can see it"),
    ("internal", "Internal: everybody who is signed in can see it"),
    ("public", "Public: everybody can see it"),
)
_SLUG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_OF_ISSUES = "SELECT id FROM code_issues WHERE project = ?"
_OF_REQUESTS = "SELECT id FROM code_merge_requests WHERE project = ?"
_OF_BRANCHES = "SELECT id FROM code_branches WHERE project = ?"
_BELONGINGS = (
    ("code_todos", f"issue IN ({_OF_ISSUES})"),
    ("code_todos", f"merge_request IN ({_OF_REQUESTS})"),
    ("code_comments", f"issue IN ({_OF_ISSUES})"),
    ("code_comments", f"merge_request IN ({_OF_REQUESTS})"),
    ("code_issue_labels", f"issue IN ({_OF_ISSUES})"),
    ("code_merge_request_labels", f"merge_request IN ({_OF_REQUESTS})"),
    ("code_reviewers", f"merge_request IN ({_OF_REQUESTS})"),
    ("code_merge_requests", "project = ?"),
    ("code_issues", "project = ?"),
    ("code_milestones", "project = ?"),
    ("code_labels", "project = ?"),
    ("code_releases", "tag IN (SELECT id FROM code_tags WHERE project = ?)"),
    ("code_tags", "project = ?"),
    ("code_commits", f"branch IN ({_OF_BRANCHES})"),
    ("code_files", f"branch IN ({_OF_BRANCHES})"),
    ("code_branches", "project = ?"),
    ("code_members", "project = ?"),
    ("code_stars", "project = ?"),
    ("code_projects", "id = ?"),
)
"""Rows to delete with a project, in this order."""


def spaces(context: RequestContext) -> list[tuple[int, str]]:
    """Return the namespaces in which the visitor may create projects: their own, and groups that they maintain."""
    rows = context.rows(
        """SELECT n.id, n.path FROM code_namespaces n LEFT JOIN code_group_members g
        ON g.namespace = n.id AND g.account = ?1 AND g.role IN ('Maintainer', 'Owner')
        WHERE n.account = ?1 OR g.account IS NOT NULL ORDER BY n.account IS NULL, n.path""",
        context.account,
    )
    return [(row["id"], row["path"]) for row in rows]


def slug_of(name: str) -> str:
    """Derive a slug from a name: "tide-watch" from "Tide Watch"."""
    return re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-.")


def is_slug(text: str) -> bool:
    """Return True if a project, group or label may have this slug."""
    return _SLUG.fullmatch(text) is not None and not text.endswith(".")


def problem(context: RequestContext, name: str, slug: str, space: int) -> str:
    """Return the reason why a project cannot be created, or ""."""
    if not name:
        return "The project needs a name."
    if not is_slug(slug):
        return "The address may have letters, digits, dots, dashes and underscores only."
    if space not in dict(spaces(context)):
        return "Choose where the project is to be."
    query = "SELECT 1 FROM code_projects WHERE namespace = ? AND slug = ? COLLATE NOCASE"
    return "There is already a project with this address." if context.row(query, space, slug) else ""


def create(context: RequestContext, *, readme: bool, **values: Any) -> str:
    """Create a project owned by the visitor; return its path."""
    number = _add_project(context, **values, topics="", licence="", default_branch="main", forked_from=None)
    context.write(
        "INSERT INTO code_branches (project, name, origin, started, protected) VALUES (?, 'main', NULL, ?, 1)",
        number, stamp(),
    )  # fmt: skip
    branch = context.one("SELECT * FROM code_branches WHERE project = ?", number)
    if readme:
        text = f"# {values['name']}\n\n{values['description']}".strip() + "\n"
        repository.commit(context, branch, "Initial commit", {"README.md": text})
    return _address(context, number)


def fork(context: RequestContext, project: Project, **values: Any) -> str:
    """Fork the default branch of a project; return the path of the fork."""
    kept = {name: project.row[name] for name in ("topics", "licence", "default_branch")}
    number = _add_project(context, **values, **kept, forked_from=project.id)
    origin = context.row(
        "SELECT * FROM code_branches WHERE project = ? AND name = ?", project.id, project.default_branch
    )
    context.write(
        "INSERT INTO code_branches (project, name, origin, started, protected) VALUES (?, ?, ?, ?, 1)",
        number, project.default_branch, origin and origin["id"], stamp(),
    )  # fmt: skip
    if origin:
        branch = context.one("SELECT * FROM code_branches WHERE project = ?", number)
        repository.copy_files(context, origin["id"], branch["id"])
    return _address(context, number)


def delete(context: RequestContext, project: Project) -> None:
    """Delete a project with its content. Forks remain, without the history before the fork."""
    query = (
        f"UPDATE code_branches SET origin = NULL WHERE project <> ?1 AND origin IN ({_OF_BRANCHES.replace('?', '?1')})"
    )
    context.write(query, project.id)
    context.write("UPDATE code_projects SET forked_from = NULL WHERE forked_from = ?", project.id)
    for table, condition in _BELONGINGS:
        context.write(f"DELETE FROM {table} WHERE {condition}", project.id)


def _add_project(context: RequestContext, **values: Any) -> int:
    number = context.insert("code_projects", {**values, "archived": 0, "created": stamp()})
    context.write(
        "INSERT INTO code_members (project, account, role, since) VALUES (?, ?, 'Owner', ?)",
        number, context.account, stamp(),
    )  # fmt: skip
    return number


def _address(context: RequestContext, number: int) -> str:
    query = "SELECT n.path, p.slug FROM code_projects p JOIN code_namespaces n ON n.id = p.namespace WHERE p.id = ?"
    path, slug = context.one(query, number)
    return f"/{path}/{slug}"

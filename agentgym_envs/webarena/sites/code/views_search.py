"""The global search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentgym_envs.webarena.sites.code.access import VISIBLE
from agentgym_envs.webarena.sites.code.lists import without_empty_fields
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_IN = f"JOIN code_projects p ON p.id = {{}}.project JOIN code_namespaces n ON n.id = p.namespace WHERE {VISIBLE}"
_OPEN = "(NOT i.confidential OR i.author = ?1 OR i.assignee = ?1)"
_SCOPES = {
    "projects": (
        "Projects",
        "p.*, n.path, n.name AS space, (SELECT COUNT(*) FROM code_stars s WHERE s.project = p.id) AS stars",
        f"code_projects p JOIN code_namespaces n ON n.id = p.namespace WHERE {VISIBLE} AND "
        "INSTR(LOWER(n.name || ' / ' || p.name || ' ' || p.slug || ' ' || p.description || ' ' || p.topics),"
        " LOWER(?2))",
        "INSTR(LOWER(p.name || ' ' || p.slug), LOWER(?2)) = 0, stars DESC, p.id",
    ),
    "issues": (
        "Issues",
        "i.*, p.slug, n.path, p.name AS project_name",
        f"code_issues i {_IN.format('i')} AND {_OPEN} AND INSTR(LOWER(i.title || ' ' || i.body), LOWER(?2))",
        "INSTR(LOWER(i.title), LOWER(?2)) = 0, i.created DESC",
    ),
    "merge_requests": (
        "Merge requests",
        "i.*, p.slug, n.path, p.name AS project_name",
        f"code_merge_requests i {_IN.format('i')} AND INSTR(LOWER(i.title || ' ' || i.body), LOWER(?2))",
        "INSTR(LOWER(i.title), LOWER(?2)) = 0, i.created DESC",
    ),
    "commits": (
        "Commits",
        "c.*, p.slug, n.path, p.name AS project_name, a.name AS author_name",
        "code_commits c JOIN code_branches b ON b.id = c.branch JOIN code_accounts a ON a.id = c.author "
        f"{_IN.format('b')} AND INSTR(LOWER(c.message || ' ' || c.sha), LOWER(?2))",
        "c.moment DESC, c.id DESC",
    ),
    "files": (
        "Files",
        "f.path AS file, b.name AS branch, p.slug, n.path, p.name AS project_name",
        "code_files f JOIN code_branches b ON b.id = f.branch "
        f"{_IN.format('b')} AND b.name = p.default_branch AND INSTR(LOWER(f.path), LOWER(?2))",
        "p.name, f.path",
    ),
    "users": (
        "Users",
        "a.*",
        "code_accounts a WHERE ?1 >= 0 AND INSTR(LOWER(a.name || ' ' || a.user || ' ' || a.email), LOWER(?2))",
        "a.name",
    ),
    "milestones": (
        "Milestones",
        "m.*, p.slug, n.path, p.name AS project_name",
        f"code_milestones m {_IN.format('m')} AND INSTR(LOWER(m.title || ' ' || m.description), LOWER(?2))",
        "m.state DESC, m.due DESC, m.id",
    ),
}
"""Heading, columns, tables with conditions (visitor ?1, text ?2), and order, by scope."""


@routes.get("/search")
def search(context: RequestContext) -> Response:
    """List the results in one scope, with the numbers of results in all scopes."""
    if again := without_empty_fields(context):
        return again
    text = context.query.text("search", most=200)
    scope = context.query.choice("scope", list(_SCOPES), "projects")
    counts = {name: context.value(f"SELECT COUNT(*) FROM {tables}", context.account, text) if text else 0
              for name, (_, _, tables, _) in _SCOPES.items()}  # fmt: skip
    paging = Paging.of(context.query, counts[scope], 10)
    rows = _found(context.rows, scope, paging, context.account, text) if text else []
    headings = {name: scope[0] for name, scope in _SCOPES.items()}
    return context.page(
        "search.html", text=text, scope=scope, counts=counts, rows=rows, paging=paging, headings=headings
    )


def _found(rows: Callable[..., Any], scope: str, paging: Paging, account: int, text: str) -> Any:
    _, columns, tables, order = _SCOPES[scope]
    return rows(
        f"SELECT {columns} FROM {tables} ORDER BY {order} LIMIT {paging.size} OFFSET {paging.skipped}", account, text
    )

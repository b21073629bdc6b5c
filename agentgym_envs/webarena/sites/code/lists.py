"""Lists of projects, issues and merge requests, with filters and sorting."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgym_envs.webarena.sites.code.access import VISIBLE
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect

SIZE = 15
"""Rows per page."""
STATES = (("open", "Open"), ("closed", "Closed"), ("all", "All"))
REQUEST_STATES = (("open", "Open"), ("merged", "Merged"), ("closed", "Closed"), ("all", "All"))
_COMMENT_COUNT = "(SELECT COUNT(*) FROM code_comments c WHERE c.{kind} = i.id)"
_LABELS = (
    "(SELECT JSON_GROUP_ARRAY(JSON_ARRAY(l.name, l.colour)) FROM code_{kind}_labels x"
    " JOIN code_labels l ON l.id = x.label WHERE x.{kind} = i.id)"
)
_COMMON = f"""
    i.*, p.slug, n.path, p.name AS project_name, a.name AS author_name, m.title AS milestone_title,
    s.name AS assignee_name, {_COMMENT_COUNT} AS comments, {_LABELS} AS labels"""
_TABLES = """
    code_{kind}s i JOIN code_projects p ON p.id = i.project JOIN code_namespaces n ON n.id = p.namespace
    JOIN code_accounts a ON a.id = i.author LEFT JOIN code_accounts s ON s.id = i.assignee
    LEFT JOIN code_milestones m ON m.id = i.milestone"""
_LAST_COMMENT = "COALESCE((SELECT MAX(c.moment) FROM code_comments c WHERE c.{kind} = i.id), '')"
_LATEST = f"MAX(i.created, COALESCE(i.{{end}}, ''), {_LAST_COMMENT})"
ISSUE_ORDERS = {
    "created_desc": ("Newest first", "i.created DESC"),
    "created_asc": ("Oldest first", "i.created"),
    "updated_desc": ("Last updated", _LATEST.format(kind="issue", end="closed") + " DESC"),
    "due_date": ("Due date", "i.due IS NULL, i.due"),
    "weight_desc": ("Weight", "COALESCE(i.weight, -1) DESC"),
    "comments_desc": ("Most comments", _COMMENT_COUNT.format(kind="issue") + " DESC"),
    "title_asc": ("Title", "i.title"),
}
REQUEST_ORDERS = {
    "created_desc": ("Newest first", "i.created DESC"),
    "created_asc": ("Oldest first", "i.created"),
    "updated_desc": ("Last updated", _LATEST.format(kind="merge_request", end="ended") + " DESC"),
    "comments_desc": ("Most comments", _COMMENT_COUNT.format(kind="merge_request") + " DESC"),
    "title_asc": ("Title", "i.title"),
}
PROJECT_ORDERS = {
    "updated_desc": ("Last updated", "updated DESC"),
    "created_desc": ("Newest first", "p.created DESC"),
    "created_asc": ("Oldest first", "p.created"),
    "name_asc": ("Name", "p.name COLLATE NOCASE"),
    "stars_desc": ("Most stars", "stars DESC, p.name COLLATE NOCASE"),
}
_PROJECTS = """
SELECT p.*, n.path, n.name AS space, n.account AS owner,
    (SELECT COUNT(*) FROM code_stars WHERE project = p.id) AS stars,
    (SELECT COUNT(*) FROM code_projects WHERE forked_from = p.id) AS forks,
    (SELECT COUNT(*) FROM code_issues x WHERE x.project = p.id AND x.state = 'open') AS open_issues,
    (SELECT COUNT(*) FROM code_merge_requests x WHERE x.project = p.id AND x.state = 'open') AS open_requests,
    MAX(p.created, COALESCE((SELECT MAX(c.moment) FROM code_branches b JOIN code_commits c ON c.branch = b.id
        WHERE b.project = p.id), '')) AS updated,
    (SELECT role FROM code_members WHERE project = p.id AND account = ?1) AS role
FROM code_projects p JOIN code_namespaces n ON n.id = p.namespace
"""


@dataclass
class QueryConditions:
    """SQL conditions joined by AND, with their arguments. The first argument ?1 is always the visitor."""

    account: int
    conditions: list[str] = field(default_factory=lambda: [VISIBLE])
    arguments: list[Any] = field(default_factory=list)

    def add(self, condition: str, *arguments: Any) -> None:
        """Add a condition with "{}" for each of its arguments."""
        first = len(self.arguments) + 2
        self.conditions.append(condition.format(*(f"?{first + offset}" for offset in range(len(arguments)))))
        self.arguments += arguments

    def __str__(self) -> str:
        return " AND ".join(self.conditions)


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list; `counts` are the numbers of entries by state."""

    rows: Sequence[sqlite3.Row]
    paging: Paging
    counts: Mapping[str, int] = field(default_factory=dict)


def without_empty_fields(context: RequestContext) -> Redirect | None:
    """Redirect to the URL without empty fields, so that a list has one URL. Return None without such fields."""
    empty = {name: None for name, value in context.query if not value.strip()}
    if not empty:
        return None
    rest = context.query.changed(**empty)
    return Redirect(context.path + (rest if len(rest) > 1 else ""))


def issues(context: RequestContext, where: QueryConditions, *, include_confidential: bool = False) -> ListPage:
    """Return the issues that match the query string.

    Confidential issues are included for their authors and assignees, and with `include_confidential` for all.
    """
    if not include_confidential:
        where.add("(NOT i.confidential OR i.author = ?1 OR i.assignee = ?1)")
    if context.query.choice("confidential", ("yes", "no")):
        where.add("i.confidential = {}", int(context.query.text("confidential") == "yes"))
    return _listed(context, where, "issue", dict(ISSUE_ORDERS), STATES)


def requests(context: RequestContext, where: QueryConditions) -> ListPage:
    """Return the merge requests that match the query string."""
    if draft := context.query.choice("draft", ("yes", "no")):
        where.add("i.draft = {}", int(draft == "yes"))
    if reviewer := context.query.text("reviewer", most=100):
        where.add(
            "EXISTS (SELECT 1 FROM code_reviewers v JOIN code_accounts r ON r.id = v.account "
            "WHERE v.merge_request = i.id AND r.user = {} COLLATE NOCASE)", reviewer,
        )  # fmt: skip
    return _listed(context, where, "merge_request", dict(REQUEST_ORDERS), REQUEST_STATES)


def filters(context: RequestContext, project: int, kind: str) -> dict[str, Any]:
    """Return the choices of a project's filters: authors and milestones."""
    query = f"""SELECT DISTINCT a.user, a.name FROM code_{kind}s i JOIN code_accounts a ON a.id = i.author
    WHERE i.project = ? ORDER BY a.name"""
    milestones = context.rows("SELECT title FROM code_milestones WHERE project = ? ORDER BY id DESC", project)
    return {"authors": context.rows(query, project), "milestones": milestones}


def projects(
    context: RequestContext, where: QueryConditions, *, size: int = 10, order: str = "updated_desc"
) -> ListPage:
    """Return the projects that match the name, language or topic of the query string."""
    if name := context.query.text("name", most=100):
        where.add("(INSTR(LOWER(p.name || ' ' || p.slug), LOWER({})))", name)
    if topic := context.query.text("topic", most=100):
        where.add("INSTR(', ' || LOWER(p.topics) || ', ', ', ' || LOWER({}) || ', ')", topic)
    count = context.value(f"SELECT COUNT(*) FROM code_projects p WHERE {where}", where.account, *where.arguments)
    paging = Paging.of(context.query, count, size)
    order = PROJECT_ORDERS[context.query.choice("sort", list(PROJECT_ORDERS), order)][1]
    query = f"{_PROJECTS} WHERE {where} ORDER BY {order}, p.id DESC LIMIT {paging.size} OFFSET {paging.skipped}"
    return ListPage(context.rows(query, where.account, *where.arguments), paging)


def _listed(
    context: RequestContext,
    where: QueryConditions,
    kind: str,
    orders: Mapping[str, tuple[str, str]],
    states: Sequence[tuple[str, str]],
) -> ListPage:
    _filter(context.query, where, kind)
    tables = _TABLES.format(kind=kind)
    query = f"SELECT i.state, COUNT(*) FROM {tables} WHERE {where} GROUP BY i.state"
    counts = dict(map(tuple, context.rows(query, where.account, *where.arguments)))
    counts = {state: counts.get(state, 0) for state, _ in states[:-1]} | {"all": sum(counts.values())}
    state = context.query.choice("state", [name for name, _ in states], "open")
    if state != "all":
        where.add("i.state = {}", state)
    paging = Paging.of(context.query, counts[state], SIZE)
    order = orders[context.query.choice("sort", list(orders), "created_desc")][1]
    columns = _COMMON.format(kind=kind)
    query = (
        f"SELECT {columns} FROM {tables} WHERE {where} ORDER BY {order}, i.id DESC LIMIT {SIZE} OFFSET {paging.skipped}"
    )
    return ListPage(context.rows(query, where.account, *where.arguments), paging, counts)


def _filter(query: Fields, where: QueryConditions, kind: str) -> None:
    """Add the conditions of the fields that all lists have; the value "none" selects entries without a value."""
    if search := query.text("search", most=200):
        where.add("INSTR(LOWER(i.title || ' ' || i.body), LOWER({}))", search)
    for name in query.all("label"):
        where.add(_has_label(kind, name.strip()), *([] if name.strip() == "none" else [name.strip()]))
    for field_name, column in (("author", "a.user"), ("assignee", "s.user"), ("milestone", "m.title")):
        if value := query.text(field_name, most=200):
            if value == "none":
                where.add(f"{column} IS NULL")
            else:
                where.add(f"{column} = {{}} COLLATE NOCASE", value)


def _has_label(kind: str, name: str) -> str:
    labels = f"SELECT 1 FROM code_{kind}_labels x JOIN code_labels l ON l.id = x.label WHERE x.{kind} = i.id"
    return f"NOT EXISTS ({labels})" if name == "none" else f"EXISTS ({labels} AND l.name = {{}} COLLATE NOCASE)"

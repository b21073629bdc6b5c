"""The code hosting site: its routes, accounts and layout."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.webarena.sites.code import (
    views_account,
    views_branches,
    views_commits,
    views_discussion,
    views_files,
    views_groups,
    views_home,
    views_issues,
    views_merging,
    views_people,
    views_planning,
    views_projects,
    views_releases,
    views_requests,
    views_search,
    views_settings,
)
from agentgym_envs.webarena.sites.code.markdown import markdown
from agentgym_envs.webarena.sites.framework import login
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.site import Site

_VIEWS = (
    views_home,
    views_search,
    views_account,
    views_groups,
    views_projects,
    views_issues,
    views_discussion,
    views_planning,
    views_requests,
    views_merging,
    views_files,
    views_branches,
    views_commits,
    views_releases,
    views_settings,
    views_people,
)
"""Modules with general path patterns come last. The framework's own routes come first, since `/{path}` matches them."""


def _layout(context: RequestContext) -> Mapping[str, Any]:
    """Return the visitor, with counts of open issues, merge requests and to-dos."""
    if not context.account:
        return {"me": None}
    me = context.one(
        """SELECT *,
        (SELECT COUNT(*) FROM code_issues WHERE assignee = ?1 AND state = 'open') AS issues,
        (SELECT COUNT(*) FROM code_merge_requests r WHERE r.state = 'open' AND (r.assignee = ?1 OR EXISTS
            (SELECT 1 FROM code_reviewers v WHERE v.merge_request = r.id AND v.account = ?1))) AS requests,
        (SELECT COUNT(*) FROM code_todos WHERE account = ?1 AND NOT done) AS todos
        FROM code_accounts WHERE id = ?1""",
        context.account,
    )
    return {"me": me}


def _pairs(rows: Sequence[Any], value: str, text: str) -> list[tuple[Any, Any]]:
    """Return two columns of rows as options of a menu."""
    return [(row[value], row[text]) for row in rows]


def _sorts(orders: Mapping[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the sort orders of a list as options of a menu."""
    return [(name, text) for name, (text, _) in orders.items()]


def _account(database: sqlite3.Connection, name: str) -> int:
    query = "SELECT id FROM code_accounts WHERE user = ?1 COLLATE NOCASE OR email = ?1 COLLATE NOCASE"
    row = database.execute(query, (name,)).fetchone()
    return int(row[0]) if row else 0


SITE = Site(
    name="code",
    title="Hammerfold",
    routes=(*login.ROUTES, *(route for views in _VIEWS for route in views.routes.all)),
    layout=_layout,
    find_account=_account,
    default_account=lambda database: 1,
    filters={"markdown": markdown, "from_json": json.loads, "pairs": _pairs, "sorts": _sorts},
)

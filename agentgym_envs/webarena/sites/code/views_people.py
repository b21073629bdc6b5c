"""Pages of users and groups, which share a URL pattern, and following."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.code import lists
from agentgym_envs.webarena.sites.code.access import VISIBLE, find_group
from agentgym_envs.webarena.sites.code.lists import QueryConditions
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_IN = f"JOIN code_projects p ON p.id = {{}}.project JOIN code_namespaces n ON n.id = p.namespace WHERE {VISIBLE}"
_ACTIVITY = f"""
SELECT * FROM (
    SELECT c.moment, 'pushed' AS what, c.message AS title, c.sha AS mark, p.name, p.slug, n.path
    FROM code_commits c JOIN code_branches b ON b.id = c.branch {_IN.format("b")} AND c.author = ?2
    UNION ALL SELECT i.created, 'opened issue', i.title, i.number, p.name, p.slug, n.path
    FROM code_issues i {_IN.format("i")} AND i.author = ?2 AND NOT i.confidential
    UNION ALL SELECT r.created, 'opened merge request', r.title, r.number, p.name, p.slug, n.path
    FROM code_merge_requests r {_IN.format("r")} AND r.author = ?2
) ORDER BY moment DESC LIMIT 15
"""
_TABS = ("overview", "projects", "starred", "followers", "following")


@routes.get("/{path}")
def profile(context: RequestContext, path: str) -> Response:
    """Show the page of a user or group."""
    space = context.one("SELECT * FROM code_namespaces WHERE path = ? COLLATE NOCASE", path)
    if space["account"] is None:
        return _group(context, path)
    person = context.one(
        """SELECT a.*, (SELECT COUNT(*) FROM code_follows WHERE follows = a.id) AS followers,
        (SELECT COUNT(*) FROM code_follows WHERE account = a.id) AS following,
        (SELECT COUNT(*) FROM code_follows WHERE account = ?2 AND follows = a.id) AS followed
        FROM code_accounts a WHERE a.id = ?1""",
        space["account"], context.account,
    )  # fmt: skip
    tab = context.query.choice("tab", _TABS, "overview")
    where = QueryConditions(context.account)
    if tab == "starred":
        where.add("EXISTS (SELECT 1 FROM code_stars s WHERE s.project = p.id AND s.account = {})", person["id"])
    else:
        where.add("p.namespace = {}", space["id"])
    return context.page(
        "person.html", person=person, tab=tab, tabs=_TABS, people=_people(context, tab, person["id"]),
        listed=lists.projects(context, where, size=8 if tab == "overview" else 10),
        activity=context.rows(_ACTIVITY, context.account, person["id"]) if tab == "overview" else [],
    )  # fmt: skip


@routes.post("/{path}/-/follow")
def follow(context: RequestContext, path: str) -> Response:
    """Follow a user, or unfollow them."""
    account = context.require_login()
    person = context.one("SELECT * FROM code_accounts WHERE user = ? COLLATE NOCASE", path)
    context.require(person["id"] != account, "Nobody can follow themselves.")
    pair = (account, person["id"])
    if context.row("SELECT 1 FROM code_follows WHERE account = ? AND follows = ?", *pair):
        context.write("DELETE FROM code_follows WHERE account = ? AND follows = ?", *pair)
    else:
        context.write("INSERT INTO code_follows (account, follows) VALUES (?, ?)", *pair)
    return Redirect(f"/{person['user']}")


def _group(context: RequestContext, path: str) -> Response:
    group = find_group(context, path)
    where = QueryConditions(context.account)
    where.add("p.namespace = {}", group.row["id"])
    count = context.value("SELECT COUNT(*) FROM code_group_members WHERE namespace = ?", group.row["id"])
    return context.page("group.html", group=group, listed=lists.projects(context, where), members=count)


def _people(context: RequestContext, tab: str, account: int) -> list[sqlite3.Row]:
    if tab not in ("followers", "following"):
        return []
    mine, theirs = ("follows", "account") if tab == "followers" else ("account", "follows")
    query = f"""SELECT a.* FROM code_follows f JOIN code_accounts a ON a.id = f.{theirs}
    WHERE f.{mine} = ? ORDER BY a.name"""
    return context.rows(query, account)

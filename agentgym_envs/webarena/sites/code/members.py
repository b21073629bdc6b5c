"""Members of projects and groups, and changes of their roles."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code.access import ROLES, Group, Project
from agentgym_envs.webarena.sites.framework.context import RequestContext

_TABLES = {Project: ("code_members", "project"), Group: ("code_group_members", "namespace")}


def members(context: RequestContext, of: Project | Group) -> list[sqlite3.Row]:
    """Return the direct members of a project or group, most powerful first."""
    table, column = _TABLES[type(of)]
    ranks = " ".join(f"WHEN '{role}' THEN {rank}" for rank, role in enumerate(ROLES))
    return context.rows(
        f"""SELECT m.role, m.since, a.* FROM {table} m JOIN code_accounts a ON a.id = m.account
        WHERE m.{column} = ? ORDER BY CASE m.role {ranks} END DESC, a.name""",
        of.row["id"],
    )


def people_of(context: RequestContext, project: Project) -> list[sqlite3.Row]:
    """Return the direct members of a project and those of its group."""
    return context.rows(
        """SELECT a.* FROM code_accounts a WHERE a.id IN (SELECT account FROM code_members WHERE project = ?1
        UNION SELECT account FROM code_group_members WHERE namespace = ?2) ORDER BY a.name""",
        project.id, project.namespace,
    )  # fmt: skip


def outsiders(context: RequestContext, of: Project | Group) -> list[sqlite3.Row]:
    """Return all accounts that could be invited."""
    table, column = _TABLES[type(of)]
    query = f"""SELECT * FROM code_accounts WHERE id NOT IN
    (SELECT account FROM {table} WHERE {column} = ?) ORDER BY name"""
    return context.rows(query, of.row["id"])


def invite(context: RequestContext, of: Project | Group, name: str, role: str) -> str:
    """Add a member by user name, e-mail address or full name. Return an error message, or ""."""
    accounts = context.rows(
        """SELECT * FROM code_accounts WHERE user = ?1 COLLATE NOCASE OR email = ?1 COLLATE NOCASE
        OR name = ?1 COLLATE NOCASE""",
        name.removeprefix("@"),
    )
    if len(accounts) != 1:
        return f"There is nobody called '{name}'." if name else "Say whom you want to invite."
    if role not in ROLES or not _may_give(of, role):
        return "Choose a role that you may give."
    table, column = _TABLES[type(of)]
    if context.row(f"SELECT 1 FROM {table} WHERE {column} = ? AND account = ?", of.row["id"], accounts[0]["id"]):
        return f"{accounts[0]['name']} is already a member."
    query = f"INSERT INTO {table} ({column}, account, role, since) VALUES (?, ?, ?, ?)"
    context.write(query, of.row["id"], accounts[0]["id"], role, stamp())
    context.flash(f"{accounts[0]['name']} was added as {role}.")
    return ""


def change(context: RequestContext, of: Project | Group, account: int, role: str) -> None:
    """Change the role of a member, or remove them if the role is "". Shows the result as a message."""
    table, column = _TABLES[type(of)]
    member = context.one(
        f"""SELECT m.role, a.name FROM {table} m JOIN code_accounts a ON a.id = m.account
        WHERE m.{column} = ? AND m.account = ?""",
        of.row["id"], account,
    )  # fmt: skip
    context.require(role == "" or role in ROLES, "There is no such role.")
    leaving = account == context.account and not role
    context.require(leaving or (_may_give(of, member["role"]) and _may_give(of, role or "Guest")))
    if member["role"] == "Owner" and _is_last_owner(context, of):
        context.flash("The last owner can neither leave nor change their role.", "error")
    elif role:
        context.write(f"UPDATE {table} SET role = ? WHERE {column} = ? AND account = ?", role, of.row["id"], account)
        context.flash(f"{member['name']} is now {role}.")
    else:
        context.write(f"DELETE FROM {table} WHERE {column} = ? AND account = ?", of.row["id"], account)
        context.flash("You left." if leaving else f"{member['name']} was removed.")


def _may_give(of: Project | Group, role: str) -> bool:
    """Return True if the visitor may grant or revoke the role. Only owners may do so with the role of owner."""
    return of.may("Owner" if role == "Owner" else "Maintainer")


def _is_last_owner(context: RequestContext, of: Project | Group) -> bool:
    table, column = _TABLES[type(of)]
    query = f"SELECT COUNT(*) FROM {table} WHERE {column} = ? AND role = 'Owner'"
    return bool(context.value(query, of.row["id"]) < 2)

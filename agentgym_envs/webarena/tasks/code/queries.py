"""What the tasks of code hosting know of a world: the projects that can be seen, and what lies in them."""

from __future__ import annotations

import datetime
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.template import Params, Template

ORIGIN = ORIGINS["code"]
REPORTER, DEVELOPER, MAINTAINER = 2, 3, 4
"""What the agent may do in a project: its `level`, 1 for a guest, 0 for who is no member and 5 for an owner."""
ANY = re.compile(".+", re.DOTALL)
"""Whatever text there is."""
_PLAIN = "title NOT LIKE '%\"%' AND title NOT LIKE '%`%'"
_TABLES = f"""
WITH ranks (role, level) AS (
    VALUES ('Guest', 1), ('Reporter', 2), ('Developer', 3), ('Maintainer', 4), ('Owner', 5)
), roles AS (
    SELECT project, account, role FROM code_members
    UNION ALL
    SELECT p.id, g.account, g.role FROM code_projects p JOIN code_group_members g ON g.namespace = p.namespace
), levels AS (
    SELECT project, MAX(level) AS level FROM roles JOIN ranks USING (role) WHERE account = 1 GROUP BY project
), projects AS (
    SELECT p.*, n.name || ' / ' || p.name AS path, n.path || '/' || p.slug AS place,
    COALESCE(l.level, 0) AS level, b.id AS head
    FROM code_projects p JOIN code_namespaces n ON n.id = p.namespace LEFT JOIN levels l ON l.project = p.id
    JOIN code_branches b ON b.project = p.id AND b.name = p.default_branch
    WHERE p.visibility != 'private' OR l.level IS NOT NULL
), issues AS (
    SELECT i.*, p.path, p.level, p.archived, a.name AS author_name, s.name AS assignee_name
    FROM code_issues i JOIN projects p ON p.id = i.project JOIN code_accounts a ON a.id = i.author
    LEFT JOIN code_accounts s ON s.id = i.assignee
    WHERE NOT i.confidential AND i.{_PLAIN.replace("AND ", "AND i.")}
    AND (SELECT COUNT(*) FROM code_issues o WHERE o.project = i.project AND o.title = i.title) = 1
), requests AS (
    SELECT m.*, p.path, p.level, p.archived, a.name AS author_name
    FROM code_merge_requests m JOIN projects p ON p.id = m.project JOIN code_accounts a ON a.id = m.author
    WHERE m.{_PLAIN.replace("AND ", "AND m.")}
    AND (SELECT COUNT(*) FROM code_merge_requests o WHERE o.project = m.project AND o.title = m.title) = 1
)
"""


class CodeTemplate(Template):
    """A kind of task in code hosting."""

    group, sites = "code-and-forum", ("code",)


def select(world: World, query: str, *arguments: Any) -> list[dict[str, Any]]:
    """The rows of a query, which may read from `projects`, `issues` and `requests`.

    These are what the agent can see and what can be told apart: `path` is how pages call a project ("Open Parish /
    Stacks"), `place` where its pages are, `head` its default branch, `level` what the agent may do there; titles are
    unique in their project.
    """
    return [dict(row) for row in world.rows(_TABLES + query, *arguments)]


def column(world: World, query: str, *arguments: Any) -> list[Any]:
    """The first column of such a query."""
    return [row[0] for row in world.rows(_TABLES + query, *arguments)]


def project(world: World, path: str) -> sqlite3.Row:
    """The project of that name."""
    return world.rows(f"{_TABLES} SELECT * FROM projects WHERE path = ?", path)[0]


def issue(world: World, path: str, title: str) -> sqlite3.Row:
    """The issue of a project that has a title."""
    return world.rows(f"{_TABLES} SELECT * FROM issues WHERE path = ? AND title = ?", path, title)[0]


def request(world: World, path: str, title: str) -> sqlite3.Row:
    """The merge request of a project that has a title."""
    return world.rows(f"{_TABLES} SELECT * FROM requests WHERE path = ? AND title = ?", path, title)[0]


def account(world: World, name: str) -> int:
    """The number of the account of a person."""
    return int(world.value("SELECT id FROM code_accounts WHERE name = ?", name))


def people_except(world: World, params: Params, *names: str) -> list[str]:
    """The names of all people but these, and but those that the intent tells: the project may be somebody's own."""
    told = " / ".join(map(str, params.values()))
    rows = world.rows("SELECT name FROM code_accounts ORDER BY id")
    return [row["name"] for row in rows if row["name"] not in names and row["name"] not in told]


def address(world: World, path: str, *more: object) -> str:
    """The URL of a project's page."""
    return "/".join((ORIGIN, project(world, path)["place"], *(("-",) if more else ()), *map(str, more)))


def with_choices(rows: Iterable[dict[str, Any]], rng: Random, **choices: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows, each with one of each of the choices."""
    return [{**row, **{name: rng.choice(some) for name, some in choices.items()}} for row in rows]


def unique_by(rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The rows whose value of that name no other row has, without it."""
    counts = Counter(row[name] for row in rows)
    return [{key: row[key] for key in row if key != name} for row in rows if counts[row[name]] == 1]


def month_of(told: str) -> str:
    """The beginning of stored moments of a month: "2026-02-" of "February 2026"."""
    return f"{datetime.datetime.strptime(told, '%B %Y'):%Y-%m-}"


def month(stored: str) -> str:
    """A month as people tell it, of a stored moment."""
    return f"{datetime.datetime.fromisoformat(stored[:10]):%B %Y}"


def stored(told: str) -> str:
    """A day as databases and date fields hold it: "2026-04-03" of "April 3, 2026" and of "Apr 3, 2026"."""
    name, _, rest = told.partition(" ")
    return f"{datetime.datetime.strptime(f'{name[:3]} {rest}', '%b %d, %Y'):%Y-%m-%d}"

"""Database queries for tasks in code hosting: the visible projects and their contents."""

from __future__ import annotations

import datetime
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks import instances
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import Choices, Instances
from agentgym_envs.webarena.tasks.template import Params, Template

ORIGIN = ORIGINS["code"]
REPORTER, DEVELOPER, MAINTAINER = 2, 3, 4
"""Levels of the agent's role in a project: 0 is no member, 1 a guest, 5 an owner."""
ANY = re.compile(".+", re.DOTALL)
"""Any text."""
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
    SELECT p.*, n.name || ' / ' || p.name AS path, n.path || '/' || p.slug AS url_path,
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


CodeTemplate = partial(Template, "code-and-forum", ("code",))
"""A task in code hosting."""


def rows(query: str, *, sample: int = 0, rounds: int = 1, **choices: Choices) -> Instances:
    """Return the rows of a query like those of `select` as instances (`tasks.instances.rows`)."""
    return instances.rows(_TABLES + query, sample=sample, rounds=rounds, **choices)


def select(world: World, query: str, *arguments: Any) -> list[dict[str, Any]]:
    """Return the rows of a query that may read from `projects`, `issues` and `requests`.

    These tables hold what the agent can see and identify. `path` is the name of a project on pages ("Open Parish /
    Stacks"), `url_path` the path of its URL, `head` its default branch, and `level` the agent's role. Titles are unique
    within their project.
    """
    return [dict(row) for row in world.rows(_TABLES + query, *arguments)]


def column(world: World, query: str, *arguments: Any) -> list[Any]:
    """Return the first column of such a query."""
    return [row[0] for row in world.rows(_TABLES + query, *arguments)]


def project(world: World, path: str) -> sqlite3.Row:
    """Return the project with this path."""
    return world.rows(f"{_TABLES} SELECT * FROM projects WHERE path = ?", path)[0]


def issue(world: World, path: str, title: str) -> sqlite3.Row:
    """Return the issue of a project by title."""
    return world.rows(f"{_TABLES} SELECT * FROM issues WHERE path = ? AND title = ?", path, title)[0]


def request(world: World, path: str, title: str) -> sqlite3.Row:
    """Return the merge request of a project by title."""
    return world.rows(f"{_TABLES} SELECT * FROM requests WHERE path = ? AND title = ?", path, title)[0]


def account(world: World, name: str) -> int:
    """Return the id of a person's account."""
    return int(world.value("SELECT id FROM code_accounts WHERE name = ?", name))


def people_except(world: World, params: Params, *names: str) -> list[str]:
    """Return the names of all people except these and those in the intent, such as the owner of the project."""
    named = " / ".join(map(str, params.values()))
    rows = world.rows("SELECT name FROM code_accounts ORDER BY id")
    return [row["name"] for row in rows if row["name"] not in names and row["name"] not in named]


def says_people(world: World, params: Params, *names: str) -> Says:
    """Return an evaluator for an answer with these people and no others."""
    return says(*names, others=people_except(world, params, *names))


def address(world: World, path: str, *more: object) -> str:
    """Return the URL of a project's page."""
    return "/".join((ORIGIN, project(world, path)["url_path"], *(("-",) if more else ()), *map(str, more)))


def project_url(world: World, project: str) -> str:
    """Return the URL of a project's first page."""
    return address(world, project)


def issue_url(world: World, project: str, title: str) -> str:
    """Return the URL of an issue."""
    return address(world, project, "issues", issue(world, project, title)["number"])


def request_url(world: World, project: str, title: str) -> str:
    """Return the URL of a merge request."""
    return address(world, project, "merge_requests", request(world, project, title)["number"])


def unique_by(rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the rows with a unique value in this column, with the column removed."""
    counts = Counter(row[name] for row in rows)
    return [{key: row[key] for key in row if key != name} for row in rows if counts[row[name]] == 1]


def month_of(month_name: str) -> str:
    """Return the prefix of stored times of a month: "2026-02-" for "February 2026"."""
    return f"{datetime.datetime.strptime(month_name, '%B %Y'):%Y-%m-}"


def month(stored: str) -> str:
    """Return the month of a stored time, as pages write it: "February 2026"."""
    return f"{datetime.datetime.fromisoformat(stored[:10]):%B %Y}"


def stored(date: str) -> str:
    """Return a date in its stored form: "2026-04-03" for "April 3, 2026" or "Apr 3, 2026"."""
    name, _, rest = date.partition(" ")
    return f"{datetime.datetime.strptime(f'{name[:3]} {rest}', '%b %d, %Y'):%Y-%m-%d}"

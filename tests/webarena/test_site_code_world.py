"""Worlds of the code hosting site are reproducible, consistent and different from each other."""

from __future__ import annotations

import json
import random
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from agentgym_envs.webarena.sites.code import seed_data
from agentgym_envs.webarena.sites.country import make_country
from agentgym_envs.webarena.sites.people import make_people
from agentgym_envs.webarena.sites.world import SeedInputs, connect
from tests.webarena.embedded import printed_by_two_processes

pytestmark = pytest.mark.slow

DIGEST = """
import hashlib, random
from importlib.resources import files
from agentgym_envs.webarena.sites import code, country, people, world
from agentgym_envs.webarena.sites.code import seed_data

database = world.connect()
database.executescript(files(code).joinpath("schema.sql").read_text())
where = country.make_country(random.Random("a"))
seed_data.fill(database, world.SeedInputs(where, people.make_people(random.Random("b"), where), random.Random("c")))
print(hashlib.sha256("".join(database.iterdump()).encode()).hexdigest())
"""


@cache
def made(seed: str) -> Any:
    database = connect()
    folder = files("agentgym_envs.webarena.sites.code")
    database.executescript(folder.joinpath("schema.sql").read_text(encoding="utf-8"))
    country = make_country(random.Random(seed))
    seed_data.fill(database, SeedInputs(country, make_people(random.Random(seed), country), random.Random(seed)))
    return database


def count(database: Any, query: str) -> int:
    return int(database.execute(query).fetchone()[0])


def test_worlds_are_reproducible() -> None:
    printed_by_two_processes(DIGEST)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_worlds_are_consistent(seed: str) -> None:
    database = made(seed)
    never = [
        "SELECT COUNT(*) FROM code_issues WHERE (state = 'closed') <> (closed IS NOT NULL) OR closed < created",
        "SELECT COUNT(*) FROM code_merge_requests WHERE (state = 'open') <> (ended IS NULL) OR ended < created",
        "SELECT COUNT(*) FROM code_comments c JOIN code_issues i ON i.id = c.issue WHERE c.moment < i.created",
        "SELECT COUNT(*) FROM code_commits WHERE moment > '2026-03-16 10:30:00'",
        "SELECT COUNT(*) FROM code_issues i JOIN code_milestones m ON m.id = i.milestone WHERE m.project <> i.project",
        "SELECT COUNT(*) FROM code_issue_labels x JOIN code_issues i ON i.id = x.issue "
        "JOIN code_labels l ON l.id = x.label WHERE l.project <> i.project",
        "SELECT COUNT(*) FROM code_merge_requests r LEFT JOIN code_branches b "
        "ON b.project = r.project AND b.name = r.source WHERE r.state = 'open' AND b.id IS NULL",
        "SELECT COUNT(*) FROM code_files f JOIN code_blobs b ON b.id = f.blob WHERE b.content LIKE '%gizmo%' OR "
        "b.content LIKE '%cogwheel%' OR b.content LIKE '%$%ONE-LINE%'",
        "SELECT COUNT(*) FROM (SELECT 1 FROM code_issues GROUP BY project, title HAVING COUNT(*) > 1)",
    ]
    assert [count(database, query) for query in never] == [0] * len(never)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    for additions, deletions, changes in database.execute("SELECT additions, deletions, changes FROM code_commits"):
        changed_files = json.loads(changes)
        assert (sum(c[1] for c in changed_files), sum(c[2] for c in changed_files)) == (additions, deletions)
        assert all(c[1] >= 0 and c[2] >= 0 for c in changed_files)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_each_project_has_one_top_contributor(seed: str) -> None:
    rows = made(seed).execute(
        """SELECT b.project, c.author, COUNT(*) AS many FROM code_commits c JOIN code_branches b ON b.id = c.branch
        WHERE b.protected GROUP BY b.project, c.author ORDER BY b.project, many DESC"""
    )
    by_project: dict[int, list[int]] = {}
    for project, _, many in rows:
        by_project.setdefault(project, []).append(many)
    assert all(len(many) < 2 or many[0] > many[1] for many in by_project.values())


def test_worlds_differ_and_are_large() -> None:
    names = [{row[0] for row in made(seed).execute("SELECT slug FROM code_projects")} for seed in ("1", "2")]
    assert len(names[0] & names[1]) < 15
    for seed in ("1", "2"):
        database = made(seed)
        assert count(database, "SELECT COUNT(*) FROM code_projects") == 29
        assert count(database, "SELECT COUNT(*) FROM code_issues") > 400
        assert count(database, "SELECT COUNT(*) FROM code_commits") > 900
        assert count(database, "SELECT COUNT(*) FROM code_merge_requests WHERE state = 'open'") > 15
        assert count(database, "SELECT COUNT(*) FROM code_issues WHERE assignee = 1 AND state = 'open'") > 5
        assert count(database, "SELECT COUNT(*) FROM code_todos WHERE NOT done") > 5
        assert count(database, "SELECT COUNT(*) FROM code_projects WHERE namespace = 1") == 4

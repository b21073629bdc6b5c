"""Changes to the agent's account, and to what it follows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable
from agentgym_envs.webarena.tasks.code import phrases, queries, steps
from agentgym_envs.webarena.tasks.code.queries import ORIGIN, CodeTemplate, rows
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, click, do, expand, not_offered, turn_to, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

_TODOS = """
    , todos AS (
        SELECT t.*, COALESCE(i.title, m.title) AS title FROM code_todos t LEFT JOIN code_issues i ON i.id = t.issue
        LEFT JOIN code_merge_requests m ON m.id = t.merge_request WHERE t.account = 1
    )
"""

star_project = CodeTemplate(
    "code-star",
    "change",
    "easy",
    records=True,
    intents=(
        "Star the project {project}.",
        "Add {project} to the projects that I have starred.",
        "Give {project} a star.",
    ),
    instances=rows(
        """
        SELECT path AS project FROM projects p
        WHERE NOT EXISTS (SELECT 1 FROM code_stars WHERE project = p.id AND account = 1)
        """
    ),
    expected=lambda world, project: [
        Added("code_stars", {"account": 1, "project": queries.project(world, project)["id"]}),
        Requested(queries.address(world, project, "star"), method="POST"),
    ],
    solution=[do(steps.open_project, "{project}"), click("button", "Star")],
)


def _follow_contributor_instances(world: World) -> list[Params]:
    query = "SELECT path AS project FROM projects WHERE forked_from IS NULL"
    return [row for row in queries.select(world, query) if _best(world, row["project"])]


def _follow(page: PageReader, project: str, rank: int) -> Iterator[str]:
    yield from steps.open_project(page, project)
    yield from follow_here(page, rank)


def follow_here(page: PageReader, rank: int) -> Iterator[str]:
    """Follow a contributor to the project on the page, by rank."""
    yield from steps.open_section(page, "Contributors")
    yield page.click("link", page.table()[rank]["Name"])
    if page.has("button", "Follow"):
        yield page.click("button", "Follow")


def _best(world: World, path: str) -> int | None:
    """Return the person with the most commits; None on a tie, or if it is the agent or already followed."""
    query = "SELECT author, COUNT(*) AS n FROM code_commits WHERE branch = ? GROUP BY 1 ORDER BY 2 DESC"
    first, second, *_ = [*queries.select(world, query, queries.project(world, path)["head"]), None, None]
    known = (1, *queries.column(world, "SELECT follows FROM code_follows WHERE account = 1"))
    if first is None or second is None or first["n"] == second["n"] or first["author"] in known:
        return None
    return int(first["author"])


follow_contributor = CodeTemplate(
    "code-follow-contributor",
    "change",
    "medium",
    intents=(
        "Follow the person who has made the most commits to {project}.",
        "Look up who has contributed the most commits to the default branch of {project}, and follow them.",
        "Follow the contributor to {project} with the greatest number of commits.",
    ),
    instances=_follow_contributor_instances,
    expected=lambda world, project: Added("code_follows", {"account": 1, "follows": _best(world, project)}),
    solution=[do(_follow, "{project}", 0)],
    mistake=do(_follow, "{project}", 1),
)


def _set_status_expected(world: World, status: str) -> ExpectedResult:
    user = world.value("SELECT user FROM code_accounts WHERE id = 1")
    shown = PageHolds(f"{ORIGIN}/{user}", "document.querySelector('main').innerText", (status,))
    return [Updated("code_accounts", {"id": 1}, {"status": status}), shown]


set_status = CodeTemplate(
    "code-status",
    "change",
    "easy",
    intents=(
        'Set my status here to "{status}".',
        'Let people see "{status}" as my status.',
        'Change my status to "{status}".',
    ),
    instances=lambda: [{"status": status} for status in phrases.STATUSES],
    expected=_set_status_expected,
    solution=[
        expand(re.compile(r"Account of .+")),
        click("link", "Set status"),
        type_text("What is your status?", "{status}", enter=True),
    ],
)

edit_profile = CodeTemplate(
    "code-edit-profile",
    "change",
    "medium",
    intents=(
        'Change my profile: my job is now "{job}", and my organisation "{company}".',
        'I have a new job. Put "{job}" as job title and "{company}" as organisation into my profile.',
        'In my profile, set the organisation to "{company}" and the job title to "{job}".',
    ),
    instances=choose(lambda: [{"job": job} for job in phrases.JOBS], times=3, company=phrases.COMPANIES),
    expected=lambda job, company: Updated("code_accounts", {"id": 1}, {"job": job, "organisation": company}),
    solution=[
        expand(re.compile(r"Account of .+")),
        click("link", "Edit profile"),
        type_text("Job title", "{job}"),
        type_text("Organisation", "{company}"),
        click("button", "Update profile settings"),
    ],
)

tick_todo = CodeTemplate(
    "code-todo",
    "change",
    "easy",
    intents=(
        'Mark "{title}" on my to-do list as done.',
        'I have finished the item "{title}" on my to-do list. Mark it as done.',
        'Tick off the item "{title}" of my to-do list.',
    ),
    instances=rows(f"{_TODOS} SELECT title FROM todos WHERE NOT done GROUP BY title HAVING COUNT(*) = 1"),
    expected=lambda world, title: Updated(
        "code_todos",
        {"id": queries.column(world, f"{_TODOS} SELECT id FROM todos WHERE NOT done AND title = ?", title)[0]},
        {"done": 1},
    ),
    solution=[
        click("link", "To-do list"),
        turn_to("link", "{title}"),
        click("button", "Mark as done", after="{title}"),
    ],
)

fork_missing = CodeTemplate(
    "code-fork-missing",
    "change",
    "easy",
    intents=(
        "Fork the project {space} / {name} into my own namespace.",
        "I would like a fork of {space} / {name} under my own name.",
        "Make a fork of {space} / {name} for me.",
    ),
    instances=choose(
        lambda: [{"name": name} for name in phrases.PROJECTS],
        space=lambda world: queries.column(world, "SELECT name FROM code_namespaces WHERE id != 1 ORDER BY id"),
    ),
    expected=NotAchievable,
    solution=[do(steps.search, "{name}"), not_offered("link", "{space} / {name}")],
    mistake=[answer("Done")],
)

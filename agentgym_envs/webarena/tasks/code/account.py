"""Changes to the agent's account, and to what it follows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable
from agentgym_envs.webarena.tasks.code import phrases, steps
from agentgym_envs.webarena.tasks.code.queries import (
    ORIGIN,
    CodeTemplate,
    address,
    column,
    project,
    select,
    with_choices,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_TODOS = """
    , todos AS (
        SELECT t.*, COALESCE(i.title, m.title) AS title FROM code_todos t LEFT JOIN code_issues i ON i.id = t.issue
        LEFT JOIN code_merge_requests m ON m.id = t.merge_request WHERE t.account = 1
    )
"""


class StarProject(CodeTemplate):
    """Star a project."""

    name, kind, difficulty = "code-star", "change", "easy"
    records = True
    intents = (
        "Star the project {project}.",
        "Add {project} to the projects that I have starred.",
        "Give {project} a star.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT path AS project FROM projects p
            WHERE NOT EXISTS (SELECT 1 FROM code_stars WHERE project = p.id AND account = 1)
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = project(world, params["project"])["id"]
        star = Requested(address(world, params["project"], "star"), method="POST")
        return [changed(Added("code_stars", {"account": 1, "project": number})), star]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield page.click("button", "Star")
        yield page.stop()


class FollowContributor(CodeTemplate):
    """Follow the person with the most commits to a project."""

    name, kind, difficulty = "code-follow-contributor", "change", "medium"
    intents = (
        "Follow the person who has made the most commits to {project}.",
        "Look up who has contributed the most commits to the default branch of {project}, and follow them.",
        "Follow the contributor to {project} with the greatest number of commits.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = "SELECT path AS project FROM projects WHERE forked_from IS NULL"
        return [row for row in select(world, query) if self._best(world, row["project"])]

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        best = self._best(world, params["project"])
        return [changed(Added("code_follows", {"account": 1, "follows": best}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._follow(page, params, 0)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._follow(page, params, 1)

    def _follow(self, page: PageReader, params: Params, rank: int) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Contributors")
        yield page.click("link", page.table()[rank]["Name"])
        if page.has("button", "Follow"):
            yield page.click("button", "Follow")
        yield page.stop()

    def _best(self, world: World, path: str) -> int | None:
        """Return the person with the most commits; None on a tie, or if it is the agent or already followed."""
        query = "SELECT author, COUNT(*) AS n FROM code_commits WHERE branch = ? GROUP BY 1 ORDER BY 2 DESC"
        first, second, *_ = [*select(world, query, project(world, path)["head"]), None, None]
        known = (1, *column(world, "SELECT follows FROM code_follows WHERE account = 1"))
        if first is None or second is None or first["n"] == second["n"] or first["author"] in known:
            return None
        return int(first["author"])


class SetStatus(CodeTemplate):
    """Set the status of the agent's account."""

    name, kind, difficulty = "code-status", "change", "easy"
    intents = (
        'Set my status here to "{status}".',
        'Let people see "{status}" as my status.',
        'Change my status to "{status}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return [{"status": status} for status in phrases.STATUSES]

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        user = world.value("SELECT user FROM code_accounts WHERE id = 1")
        shown = PageHolds(f"{ORIGIN}/{user}", "document.querySelector('main').innerText", (params["status"],))
        return [changed(Updated("code_accounts", {"id": 1}, {"status": params["status"]})), shown]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from page.expand(re.compile(r"Account of .+"))
        yield page.click("link", "Set status")
        yield page.type("What is your status?", params["status"], enter=True)
        yield page.stop()


class EditProfile(CodeTemplate):
    """Change the job and the organisation in the agent's profile."""

    name, kind, difficulty = "code-edit-profile", "change", "medium"
    intents = (
        'Change my profile: my job is now "{job}", and my organisation "{company}".',
        'I have a new job. Put "{job}" as job title and "{company}" as organisation into my profile.',
        'In my profile, set the organisation to "{company}" and the job title to "{job}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return with_choices([{"job": job} for job in phrases.JOBS for _ in range(3)], rng, company=phrases.COMPANIES)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        values = {"job": params["job"], "organisation": params["company"]}
        return [changed(Updated("code_accounts", {"id": 1}, values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from page.expand(re.compile(r"Account of .+"))
        yield page.click("link", "Edit profile")
        yield page.type("Job title", params["job"])
        yield page.type("Organisation", params["company"])
        yield page.click("button", "Update profile settings")
        yield page.stop()


class TickTodo(CodeTemplate):
    """Mark an item of the to-do list as done."""

    name, kind, difficulty = "code-todo", "change", "easy"
    intents = (
        'Mark "{title}" on my to-do list as done.',
        'I have finished the item "{title}" on my to-do list. Mark it as done.',
        'Tick off the item "{title}" of my to-do list.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return select(world, f"{_TODOS} SELECT title FROM todos WHERE NOT done GROUP BY title HAVING COUNT(*) = 1")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = column(world, f"{_TODOS} SELECT id FROM todos WHERE NOT done AND title = ?", params["title"])[0]
        return [changed(Updated("code_todos", {"id": number}, {"done": 1}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "To-do list")
        while not page.has("link", params["title"]):
            yield page.click("link", "Next")
        yield page.click("button", "Mark as done", after=params["title"])
        yield page.stop()


class ForkMissing(CodeTemplate):
    """Fork a project that does not exist."""

    name, kind, difficulty = "code-fork-missing", "change", "easy"
    intents = (
        "Fork the project {space} / {name} into my own namespace.",
        "I would like a fork of {space} / {name} under my own name.",
        "Make a fork of {space} / {name} for me.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        spaces = column(world, "SELECT name FROM code_namespaces WHERE id != 1 ORDER BY id")
        return with_choices([{"name": name} for name in phrases.PROJECTS], rng, space=spaces)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.search(page, params["name"])
        there = page.has("link", f"{params['space']} / {params['name']}")
        yield page.stop("It is there.") if there else page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.stop("Done")


TEMPLATES: Sequence[CodeTemplate] = (
    StarProject(),
    FollowContributor(),
    SetStatus(),
    EditProfile(),
    TickTodo(),
    ForkMissing(),
)

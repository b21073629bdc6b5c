"""Changes to repositories: branches, files and merge requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.code import phrases, steps
from agentgym_envs.webarena.tasks.code.queries import (
    ANY,
    DEVELOPER,
    MAINTAINER,
    CodeTemplate,
    project,
    request,
    select,
    with_choices,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_WRITABLE = f"level >= {DEVELOPER} AND NOT archived"


class NewBranch(CodeTemplate):
    """Create a branch from the default branch."""

    name, kind, difficulty = "code-new-branch", "change", "medium"
    intents = (
        "Create the branch {branch} in {project}, starting from its default branch.",
        "Start a new branch called {branch} from the default branch of {project}.",
        "In {project}, make a branch named {branch} off the default branch.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        found = select(world, f"SELECT path AS project FROM projects WHERE {_WRITABLE}")
        return with_choices(found * 3, rng, branch=phrases.BRANCHES)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = project(world, params["project"])
        number = world.value("SELECT MAX(id) + 1 FROM code_branches")
        files = world.value("SELECT COUNT(*) FROM code_files WHERE branch = ?", found["head"])
        branch = {"id": number, "project": found["id"], "name": params["branch"], "origin": found["head"]}
        return [changed(Added("code_branches", branch), Added("code_files", {"branch": number}, files))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Branches")
        yield page.click("link", "New branch")
        yield page.type("Branch name", params["branch"])
        yield page.click("button", "Create branch")
        yield page.stop()


class EditFile(CodeTemplate):
    """Replace the contents of a file."""

    name, kind, difficulty = "code-edit-file", "change", "hard"
    intents = (
        'Change the default branch of {project}: the file {file} is to hold only the line "{line}". '
        'The message of the commit is "{message}".',
        'Replace everything in {file} of {project}, on the default branch, by the one line "{line}", and commit that '
        'with the message "{message}".',
        'On the default branch of {project}, edit {file} so that nothing but "{line}" stands in it. As commit message, '
        'write "{message}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT p.path AS project, f.path AS file FROM projects p JOIN code_files f ON f.branch = p.head
            WHERE {_WRITABLE} AND level >= {MAINTAINER} AND f.path LIKE 'docs/%.md'
        """
        return with_choices(select(world, query) * 4, rng, line=phrases.LINES, message=phrases.MESSAGES)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        head = project(world, params["project"])["head"]
        blob = world.value("SELECT MAX(id) + 1 FROM code_blobs")
        text = re.compile(re.escape(params["line"]))
        made = (
            Added("code_blobs", {"id": blob, "content": text}),
            Updated("code_files", {"branch": head, "path": params["file"]}, {"blob": blob}),
            Added("code_commits", {"branch": head, "author": 1, "message": params["message"]}),
        )
        return [changed(*made)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_file(page, params["file"])
        yield page.click("link", "Edit")
        yield page.type("Content of the file", params["line"])
        yield page.type("Commit message", params["message"])
        yield page.click("button", "Commit changes")
        yield page.stop()


class NewMergeRequest(CodeTemplate):
    """Open a merge request."""

    name, kind, difficulty = "code-new-request", "change", "hard"
    intents = (
        'Open a merge request in {project} for the branch {branch} into the default branch. Its title is "{title}".',
        'Create the merge request "{title}" in {project}: from {branch} into the default branch.',
        'In {project}, ask for {branch} to be merged into the default branch, by a merge request titled "{title}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT p.path AS project, b.name AS branch FROM projects p JOIN code_branches b ON b.project = p.id
            WHERE {_WRITABLE} AND b.id != p.head AND NOT EXISTS (SELECT 1 FROM code_merge_requests m
            WHERE m.project = p.id AND m.source = b.name AND m.state = 'open')
        """
        return with_choices(select(world, query) * 3, rng, title=phrases.TITLES)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = project(world, params["project"])
        values = {"project": found["id"], "title": params["title"], "source": params["branch"], "author": 1, "draft": 0}
        return [changed(Added("code_merge_requests", {**values, "target": found["default_branch"], "state": "open"}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Merge requests")
        yield page.click("link", "New merge request")
        yield page.choose("Source branch", params["branch"])
        yield page.click("button", "Compare branches and continue")
        yield page.type("Title", params["title"])
        yield page.click("button", "Create merge request")
        yield page.stop()


class ApproveRequest(CodeTemplate):
    """Approve a merge request."""

    name, kind, difficulty = "code-approve", "change", "medium"
    intents = (
        'Approve the merge request "{title}" of {project}.',
        'I have looked at "{title}", a merge request of {project}, and it is fine. Approve it.',
        'Give my approval to the merge request "{title}" in {project}.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT path AS project, title FROM requests m WHERE state = 'open' AND author != 1 AND {_WRITABLE}
            AND NOT EXISTS (SELECT 1 FROM code_reviewers WHERE merge_request = m.id AND account = 1 AND approved)
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        row = {"merge_request": request(world, params["project"], params["title"])["id"], "account": 1}
        query = "SELECT 1 FROM code_reviewers WHERE merge_request = ? AND account = 1"
        if world.value(query, row["merge_request"]):
            return [changed(Updated("code_reviewers", row, {"approved": 1}))]
        return [changed(Added("code_reviewers", {**row, "approved": 1}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_request(page, params["title"])
        yield page.click("button", "Approve")
        yield page.stop()


class MergeOpenRequest(CodeTemplate):
    """Merge a merge request."""

    name, kind, difficulty = "code-merge", "change", "medium"
    intents = (
        'Merge the merge request "{title}" of {project}.',
        'The merge request "{title}" in {project} is fine. Merge it.',
        'Please merge "{title}", which is an open merge request of {project}.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT m.path AS project, m.title FROM requests m JOIN projects p ON p.id = m.project
            WHERE m.state = 'open' AND NOT m.draft AND m.level >= {MAINTAINER} AND NOT m.archived
            AND m.target = p.default_branch AND m.source IN (SELECT name FROM code_branches WHERE project = p.id)
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = request(world, params["project"], params["title"])
        query = "SELECT id FROM code_branches WHERE project = ? AND name = ?"
        source, target = (world.value(query, found["project"], found[end]) for end in ("source", "target"))
        brought = world.value("SELECT COUNT(*) FROM code_commits WHERE branch = ?", source)
        here = {"branch": target, "merge_request": found["id"]}
        merged = {"state": "merged", "ended": ANY, "ended_by": 1}
        expected: list[Expected] = [
            Updated("code_merge_requests", {"id": found["id"]}, merged),
            Updated("code_commits", {"branch": source}, here, brought),
            Added("code_commits", {**here, "author": 1}),
        ]
        if world.value("SELECT 1 FROM code_issues WHERE id = ? AND state = 'open'", found["closes"]):
            closed = {"state": "closed", "closed": ANY, "closed_by": 1}
            expected.append(Updated("code_issues", {"id": found["closes"]}, closed))
        return [changed(*expected, free=("code_branches", "code_files"))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_request(page, params["title"])
        yield page.click("button", "Merge")
        yield page.stop()


TEMPLATES: Sequence[CodeTemplate] = (
    NewBranch(),
    EditFile(),
    NewMergeRequest(),
    ApproveRequest(),
    MergeOpenRequest(),
)

"""Changes to repositories: branches, files and merge requests."""

from __future__ import annotations

import re

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.code import phrases, queries, steps
from agentgym_envs.webarena.tasks.code.queries import ANY, DEVELOPER, MAINTAINER, CodeTemplate, rows
from agentgym_envs.webarena.tasks.steps import choose_option, click, do, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult

_WRITABLE = f"level >= {DEVELOPER} AND NOT archived"


def _new_branch_expected(world: World, project: str, branch: str) -> ExpectedResult:
    found = queries.project(world, project)
    number = world.value("SELECT MAX(id) + 1 FROM code_branches")
    files = world.value("SELECT COUNT(*) FROM code_files WHERE branch = ?", found["head"])
    row = {"id": number, "project": found["id"], "name": branch, "origin": found["head"]}
    return [Added("code_branches", row), Added("code_files", {"branch": number}, files)]


new_branch = CodeTemplate(
    "code-new-branch",
    "change",
    "medium",
    intents=(
        "Create the branch {branch} in {project}, starting from its default branch.",
        "Start a new branch called {branch} from the default branch of {project}.",
        "In {project}, make a branch named {branch} off the default branch.",
    ),
    instances=rows(f"SELECT path AS project FROM projects WHERE {_WRITABLE}", rounds=3, branch=phrases.BRANCHES),
    expected=_new_branch_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Branches"),
        click("link", "New branch"),
        type_text("Branch name", "{branch}"),
        click("button", "Create branch"),
    ],
)


def _edit_file_expected(world: World, project: str, line: str, file: str, message: str) -> ExpectedResult:
    head = queries.project(world, project)["head"]
    blob = world.value("SELECT MAX(id) + 1 FROM code_blobs")
    text = re.compile(re.escape(line))
    return [
        Added("code_blobs", {"id": blob, "content": text}),
        Updated("code_files", {"branch": head, "path": file}, {"blob": blob}),
        Added("code_commits", {"branch": head, "author": 1, "message": message}),
    ]


edit_file = CodeTemplate(
    "code-edit-file",
    "change",
    "hard",
    intents=(
        'Change the default branch of {project}: the file {file} is to hold only the line "{line}". '
        'The message of the commit is "{message}".',
        'Replace everything in {file} of {project}, on the default branch, by the one line "{line}", and commit that '
        'with the message "{message}".',
        'On the default branch of {project}, edit {file} so that nothing but "{line}" stands in it. As commit message, '
        'write "{message}".',
    ),
    instances=rows(
        f"""
        SELECT p.path AS project, f.path AS file FROM projects p JOIN code_files f ON f.branch = p.head
        WHERE {_WRITABLE} AND level >= {MAINTAINER} AND f.path LIKE 'docs/%.md'
        """,
        rounds=4,
        line=phrases.LINES,
        message=phrases.MESSAGES,
    ),
    expected=_edit_file_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_file, "{file}"),
        click("link", "Edit"),
        type_text("Content of the file", "{line}"),
        type_text("Commit message", "{message}"),
        click("button", "Commit changes"),
    ],
)


OPEN_REQUEST_FORM = (
    do(steps.open_project, "{project}"),
    do(steps.open_section, "Merge requests"),
    click("link", "New merge request"),
    choose_option("Source branch", "{branch}"),
    click("button", "Compare branches and continue"),
)
"""The steps to the form of a merge request from a branch into the default branch."""


def _new_merge_request_expected(world: World, project: str, title: str, branch: str) -> ExpectedResult:
    found = queries.project(world, project)
    values = {"project": found["id"], "title": title, "source": branch, "author": 1, "draft": 0}
    return Added("code_merge_requests", {**values, "target": found["default_branch"], "state": "open"})


new_merge_request = CodeTemplate(
    "code-new-request",
    "change",
    "hard",
    intents=(
        'Open a merge request in {project} for the branch {branch} into the default branch. Its title is "{title}".',
        'Create the merge request "{title}" in {project}: from {branch} into the default branch.',
        'In {project}, ask for {branch} to be merged into the default branch, by a merge request titled "{title}".',
    ),
    instances=rows(
        f"""
        SELECT p.path AS project, b.name AS branch FROM projects p JOIN code_branches b ON b.project = p.id
        WHERE {_WRITABLE} AND b.id != p.head AND NOT EXISTS (SELECT 1 FROM code_merge_requests m
        WHERE m.project = p.id AND m.source = b.name AND m.state = 'open')
        """,
        rounds=3,
        title=phrases.TITLES,
    ),
    expected=_new_merge_request_expected,
    solution=[
        *OPEN_REQUEST_FORM,
        type_text("Title", "{title}"),
        click("button", "Create merge request"),
    ],
)


def _approve_request_expected(world: World, project: str, title: str) -> ExpectedResult:
    row = {"merge_request": queries.request(world, project, title)["id"], "account": 1}
    query = "SELECT 1 FROM code_reviewers WHERE merge_request = ? AND account = 1"
    if world.value(query, row["merge_request"]):
        return Updated("code_reviewers", row, {"approved": 1})
    return Added("code_reviewers", {**row, "approved": 1})


approve_request = CodeTemplate(
    "code-approve",
    "change",
    "medium",
    intents=(
        'Approve the merge request "{title}" of {project}.',
        'I have looked at "{title}", a merge request of {project}, and it is fine. Approve it.',
        'Give my approval to the merge request "{title}" in {project}.',
    ),
    instances=rows(
        f"""
        SELECT path AS project, title FROM requests m WHERE state = 'open' AND author != 1 AND {_WRITABLE}
        AND NOT EXISTS (SELECT 1 FROM code_reviewers WHERE merge_request = m.id AND account = 1 AND approved)
        """
    ),
    expected=_approve_request_expected,
    solution=[do(steps.open_project, "{project}"), do(steps.open_request, "{title}"), click("button", "Approve")],
)


def _merge_open_request_expected(world: World, project: str, title: str) -> ExpectedResult:
    found = queries.request(world, project, title)
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
    return expected


merge_open_request = CodeTemplate(
    "code-merge",
    "change",
    "medium",
    intents=(
        'Merge the merge request "{title}" of {project}.',
        'The merge request "{title}" in {project} is fine. Merge it.',
        'Please merge "{title}", which is an open merge request of {project}.',
    ),
    instances=rows(
        f"""
        SELECT m.path AS project, m.title FROM requests m JOIN projects p ON p.id = m.project
        WHERE m.state = 'open' AND NOT m.draft AND m.level >= {MAINTAINER} AND NOT m.archived
        AND m.target = p.default_branch AND m.source IN (SELECT name FROM code_branches WHERE project = p.id)
        """
    ),
    expected=_merge_open_request_expected,
    free=("code_branches", "code_files"),
    solution=[do(steps.open_project, "{project}"), do(steps.open_request, "{title}"), click("button", "Merge")],
)

"""Tasks that fill in several fields: issues with a due date, milestones, merge requests with a reviewer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.code import phrases, queries, steps, working
from agentgym_envs.webarena.tasks.code.queries import DEVELOPER, REPORTER, CodeTemplate
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.steps import choose_option, click, do, expand, given, type_text
from agentgym_envs.webarena.tasks.template import Params

_WRITABLE = f"level >= {REPORTER} AND NOT archived"


def _due_issues(world: World, rng: Random) -> Iterator[Params]:
    query = f"""SELECT p.path AS project, a.name AS person FROM projects p JOIN code_members r ON r.project = p.id
        JOIN code_accounts a ON a.id = r.account WHERE {_WRITABLE} AND a.id != 1"""
    for row in queries.select(world, query):
        yield {**row, "title": rng.choice(phrases.TITLES), "day": rng.choice(phrases.DAYS)}


def _due_issue(world: World, project: str, title: str, person: str, day: str) -> Added:
    values = {"project": queries.project(world, project)["id"], "title": title, "author": 1, "state": "open"}
    return Added("code_issues", {**values, "assignee": queries.account(world, person), "due": queries.stored(day)})


issue_with_due_date = CodeTemplate(
    "code-issue-with-due-date",
    "change",
    "hard",
    since=2,
    intents=(
        'Create an issue in {project} with the title "{title}". Assign it to {person}, and set the due date to {day}.',
        'In {project}, open "{title}" as an issue for {person} that is due on {day}.',
        'Open the issue "{title}" in {project}; {person} is its assignee, and {day} the day on which it is due.',
    ),
    instances=choose(_due_issues, sample=60),
    expected=_due_issue,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Issues"),
        click("link", "New issue"),
        type_text("Title", "{title}"),
        choose_option("Assignee", "{person}"),
        type_text(re.compile("Due date.*"), given(lambda day: queries.stored(day))),
        click("button", "Create issue"),
    ],
)

_SITES = (
    "https://egg.example/tart",
    "https://notes.example",
    "https://rivers.example/about",
    "https://a-homepage.example",
)

set_homepage = CodeTemplate(
    "code-homepage",
    "change",
    "medium",
    since=2,
    intents=(
        "Set the website on my profile here to {url}.",
        "My homepage is {url}. Put that into my profile.",
        "Let my profile link to {url} as my website, and change nothing else in it.",
    ),
    instances=lambda: [{"url": url} for url in _SITES],
    expected=lambda url: Updated("code_accounts", {"id": 1}, {"website": url}),
    solution=[
        expand(re.compile(r"Account of .+")),
        click("link", "Edit profile"),
        type_text("Website", "{url}"),
        click("button", "Update profile settings"),
    ],
)


def _spans(world: World, rng: Random) -> Iterator[Params]:
    for path in queries.column(world, f"SELECT path FROM projects WHERE {_WRITABLE}"):
        for title in rng.sample(phrases.MILESTONES, 3):
            first, last = sorted(rng.sample(range(len(phrases.DAYS)), 2), key=lambda n: queries.stored(phrases.DAYS[n]))
            yield {"project": path, "title": title, "start": phrases.DAYS[first], "end": phrases.DAYS[last]}


milestone_with_span = CodeTemplate(
    "code-milestone-with-span",
    "change",
    "medium",
    since=2,
    intents=(
        'Create a milestone for the upcoming "{title}" in {project}, starting on {start} and ending on {end}.',
        'In {project}, add the milestone "{title}": it starts on {start} and is due on {end}.',
        'The milestone "{title}" of {project} goes from {start} to {end}. Create it with both dates.',
    ),
    instances=_spans,
    expected=lambda world, project, title, start, end: Added(
        "code_milestones",
        {
            "project": queries.project(world, project)["id"],
            "title": title,
            "start": queries.stored(start),
            "due": queries.stored(end),
        },
    ),
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Milestones"),
        click("link", "New milestone"),
        type_text("Title", "{title}"),
        type_text(re.compile("Start date.*"), given(lambda start: queries.stored(start))),
        type_text(re.compile("Due date.*"), given(lambda end: queries.stored(end))),
        click("button", "Create milestone"),
    ],
)


def _reviewable(world: World, rng: Random) -> Iterator[Params]:
    query = f"""SELECT p.id, p.path AS project, b.name AS branch FROM projects p
        JOIN code_branches b ON b.project = p.id
        WHERE level >= {DEVELOPER} AND NOT archived AND b.id != p.head AND NOT EXISTS (SELECT 1 FROM
        code_merge_requests m WHERE m.project = p.id AND m.source = b.name AND m.state = 'open')"""
    for row in queries.select(world, query):
        people = world.rows(
            "SELECT a.name FROM code_members m JOIN code_accounts a ON a.id = m.account WHERE m.project = ? AND a.id "
            "<> 1",
            row.pop("id"),
        )
        yield {**row, "person": rng.choice(people)[0]}


def _request_added(world: World, project: str, branch: str, person: str) -> list[Expected]:
    found = queries.project(world, project)
    number = 1 + int(world.value("SELECT MAX(id) FROM code_merge_requests"))
    values = {"project": found["id"], "source": branch, "target": found["default_branch"], "author": 1}
    return [
        Added("code_merge_requests", {"id": number, **values, "state": "open"}),
        Added("code_reviewers", {"merge_request": number, "account": queries.account(world, person)}),
    ]


request_with_reviewer = CodeTemplate(
    "code-request-with-reviewer",
    "change",
    "hard",
    since=2,
    intents=(
        "Submit a merge request for the branch {branch} of {project} to be merged into the default branch, with "
        "{person} as the reviewer. Any title will do.",
        "In {project}, ask for {branch} to be merged into the default branch, and let {person} review it.",
        "Open a merge request from {branch} into the default branch of {project}; {person} is its only reviewer.",
    ),
    instances=_reviewable,
    expected=_request_added,
    solution=[
        *working.OPEN_REQUEST_FORM,
        type_text("Title", "Please merge this"),
        choose_option("Reviewer", "{person}"),
        click("button", "Create merge request"),
    ],
)

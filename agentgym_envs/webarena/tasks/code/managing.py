"""Changes to issues, labels and milestones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable
from agentgym_envs.webarena.tasks.code import parsing, phrases, queries, steps
from agentgym_envs.webarena.tasks.code.queries import ANY, DEVELOPER, REPORTER, CodeTemplate, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, expand, given, not_offered, type_text

_WRITABLE = f"level >= {REPORTER} AND NOT archived"
_LABEL = "SELECT id FROM code_labels WHERE project = ? AND name = ?"
_MILESTONE = "SELECT id FROM code_milestones WHERE project = ? AND title = ?"

comment_on_issue = CodeTemplate(
    "code-comment",
    "change",
    "medium",
    intents=(
        'Comment on the issue "{title}" of {project}: "{text}"',
        'Write the comment "{text}" below the issue "{title}" in {project}.',
        'Answer the issue "{title}" of {project} with the comment "{text}"',
    ),
    instances=rows(
        "SELECT path AS project, title FROM issues WHERE state = 'open' AND NOT archived", text=phrases.COMMENTS
    ),
    expected=lambda world, title, project, text: Added(
        "code_comments",
        {"issue": queries.issue(world, project, title)["id"], "merge_request": None, "author": 1, "text": text},
    ),
    solution=[do(steps.open_project, "{project}"), do(steps.open_issue, "{title}"), do(steps.add_comment, "{text}")],
)

close_issue = CodeTemplate(
    "code-close-issue",
    "change",
    "medium",
    intents=(
        'Close the issue "{title}" of {project}.',
        'The issue "{title}" in {project} is settled. Close it.',
        'Find the issue "{title}" in {project} and close it.',
    ),
    instances=rows(f"SELECT path AS project, title FROM issues WHERE state = 'open' AND {_WRITABLE}"),
    expected=lambda world, title, project: closed(queries.issue(world, project, title)["id"]),
    solution=[do(steps.open_project, "{project}"), do(steps.open_issue, "{title}"), click("button", "Close issue")],
)


def _close_all(page: PageReader, author: str) -> Iterator[str]:
    titles = _titles(page, author)
    for title in titles:
        yield page.click("link", title)
        yield page.click("button", "Close issue")
        if title != titles[-1]:
            yield from steps.open_section(page, "Issues")


def _titles(page: PageReader, author: str) -> list[str]:
    by = re.compile(rf".* by {re.escape(author)}(?: ·.*)?")
    return [title for title, texts in parsing.items(page).items() if by.fullmatch(texts[0])]


close_all = CodeTemplate(
    "code-close-all",
    "change",
    "hard",
    held_out=True,
    intents=(
        "Close all open issues that {author} opened in {project}.",
        "Every issue in {project} by {author} that is still open is settled now. Close them all.",
        "In {project}, close each of the open issues whose author is {author}.",
    ),
    instances=rows(
        f"""
        SELECT i.path AS project, i.author_name AS author FROM issues i WHERE i.state = 'open' AND {_WRITABLE}
        GROUP BY 1, 2 HAVING COUNT(*) BETWEEN 2 AND 3 AND COUNT(*) = (SELECT COUNT(*) FROM code_issues o
        WHERE o.project = i.project AND o.author = i.author AND o.state = 'open')
        AND (SELECT COUNT(*) FROM code_issues o WHERE o.project = i.project AND o.state = 'open') <= 15
        """
    ),
    expected=lambda world, author, project: map(
        closed,
        queries.column(
            world, "SELECT id FROM issues WHERE path = ? AND author_name = ? AND state = 'open'", project, author
        ),
    ),
    solution=[do(steps.open_project, "{project}"), do(steps.open_section, "Issues"), do(_close_all, "{author}")],
    mistake=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Issues"),
        click("link", given(lambda page, author: _titles(page, author)[0])),
        click("button", "Close issue"),
    ],
)

new_issue = CodeTemplate(
    "code-new-issue",
    "change",
    "medium",
    intents=(
        'Open an issue in {project} with the title "{title}" and the description "{text}"',
        'Report an issue titled "{title}" to {project}. As its description, write "{text}"',
        'In {project}, create the issue "{title}" with the description "{text}"',
    ),
    instances=rows(
        "SELECT path AS project FROM projects WHERE NOT archived AND forked_from IS NULL",
        title=phrases.TITLES,
        text=phrases.BODIES,
    ),
    expected=lambda world, project, title, text: _opened(world, project, title, body=text),
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Issues"),
        click("link", "New issue"),
        type_text("Title", "{title}"),
        type_text("Description", "{text}"),
        click("button", "Create issue"),
    ],
)


def _full_issue(world: World, project: str, title: str, person: str, label: str, milestone: str) -> list[Expected]:
    number = queries.project(world, project)["id"]
    values = {"assignee": queries.account(world, person), "milestone": world.value(_MILESTONE, number, milestone)}
    label_row = {"label": world.value(_LABEL, number, label)}
    return [_opened(world, project, title, body="", **values), Added("code_issue_labels", label_row)]


new_full_issue = CodeTemplate(
    "code-new-full-issue",
    "change",
    "hard",
    intents=(
        'In {project}, open the issue "{title}", assign it to {person}, and give it the label "{label}" and the '
        'milestone "{milestone}".',
        'Create an issue titled "{title}" in {project}. Its assignee is {person}, its label "{label}", its milestone '
        '"{milestone}".',
        'Please open "{title}" as an issue of {project}, for {person} to work on, labelled "{label}", for the '
        'milestone "{milestone}".',
    ),
    instances=rows(
        f"""
        SELECT p.path AS project, l.name AS label, m.title AS milestone, a.name AS person
        FROM projects p JOIN code_labels l ON l.project = p.id JOIN code_milestones m ON m.project = p.id
        JOIN code_members r ON r.project = p.id JOIN code_accounts a ON a.id = r.account
        WHERE {_WRITABLE} AND m.state = 'open' AND a.id != 1
        """,
        sample=60,
        title=phrases.TITLES,
    ),
    expected=_full_issue,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Issues"),
        click("link", "New issue"),
        type_text("Title", "{title}"),
        choose_option("Assignee", "{person}"),
        choose_option("Milestone", "{milestone}"),
        click("checkbox", "{label}"),
        click("button", "Create issue"),
    ],
)


def _labels_added(world: World, project: str, title: str, label: str, other: str) -> Iterator[Expected]:
    found = queries.issue(world, project, title)
    for name in (label, other):
        row = {"issue": found["id"], "label": world.value(_LABEL, found["project"], name)}
        yield Added("code_issue_labels", row)


label_issue = CodeTemplate(
    "code-label",
    "change",
    "hard",
    intents=(
        'Add the labels "{label}" and "{other}" to the issue "{title}" of {project}.',
        'Give the issue "{title}" in {project} two more labels, besides those that it has: "{label}" and "{other}".',
        'Label the issue "{title}" of {project} with "{label}" and "{other}" as well.',
    ),
    instances=rows(
        f"""
        SELECT i.path AS project, i.title, l.name AS label, o.name AS other FROM issues i
        JOIN code_labels l ON l.project = i.project JOIN code_labels o ON o.project = i.project AND o.id > l.id
        WHERE i.state = 'open' AND {_WRITABLE}
        AND NOT EXISTS (SELECT 1 FROM code_issue_labels WHERE issue = i.id AND label IN (l.id, o.id))
        """,
        sample=60,
    ),
    expected=_labels_added,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_issue, "{title}"),
        expand("Edit labels"),
        click("checkbox", "{label}"),
        click("checkbox", "{other}"),
        click("button", "Save"),
    ],
)

assign_issue = CodeTemplate(
    "code-assign",
    "change",
    "medium",
    intents=(
        'Assign the issue "{title}" of {project} to {person}.',
        'Let {person} work on the issue "{title}" of {project}: make them its assignee.',
        'In {project}, {person} is to become the assignee of the issue "{title}".',
    ),
    instances=rows(
        f"""
        SELECT i.path AS project, i.title, a.name AS person FROM issues i
        JOIN code_members r ON r.project = i.project JOIN code_accounts a ON a.id = r.account
        WHERE i.state = 'open' AND {_WRITABLE} AND a.id != 1 AND a.id IS NOT i.assignee
        """,
        sample=60,
    ),
    expected=lambda world, title, project, person: Updated(
        "code_issues", {"id": queries.issue(world, project, title)["id"]}, {"assignee": queries.account(world, person)}
    ),
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_issue, "{title}"),
        do(steps.set_field, "Assignee", "{person}"),
    ],
)

assign_issue_to_stranger = CodeTemplate(
    "code-assign-stranger",
    "change",
    "medium",
    intents=assign_issue.intents,
    instances=rows(
        f"SELECT path AS project, title FROM issues WHERE state = 'open' AND {_WRITABLE}", person=phrases.STRANGERS
    ),
    expected=NotAchievable,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_issue, "{title}"),
        expand("Edit assignee"),
        not_offered("option", "{person}"),
    ],
    mistake=[answer("Done")],
)


def _scheduled(world: World, project: str, title: str, milestone: str, day: str) -> Updated:
    found = queries.issue(world, project, title)
    number = world.value(_MILESTONE, found["project"], milestone)
    return Updated("code_issues", {"id": found["id"]}, {"milestone": number, "due": queries.stored(day)})


schedule_issue = CodeTemplate(
    "code-plan",
    "change",
    "hard",
    intents=(
        'Put the issue "{title}" of {project} into the milestone "{milestone}", and let it be due on {day}.',
        'Plan the issue "{title}" in {project} for the milestone "{milestone}", with {day} as its due date.',
        'The issue "{title}" of {project} belongs in the milestone "{milestone}" and is due on {day}. Record both.',
    ),
    instances=rows(
        f"""
        SELECT i.path AS project, i.title, m.title AS milestone FROM issues i
        JOIN code_milestones m ON m.project = i.project
        WHERE i.state = 'open' AND m.state = 'open' AND m.id IS NOT i.milestone AND {_WRITABLE}
        """,
        sample=60,
        day=phrases.DAYS,
    ),
    expected=_scheduled,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_issue, "{title}"),
        do(steps.set_field, "Milestone", "{milestone}"),
        expand("Edit due"),
        type_text(re.compile(r"Due date .+"), given(lambda day: queries.stored(day)), enter=True),
    ],
)

new_milestone = CodeTemplate(
    "code-new-milestone",
    "change",
    "medium",
    intents=(
        'Create the milestone "{milestone}" in {project}, due on {day}.',
        'Add a milestone to {project}: its title is "{milestone}", and it is due on {day}.',
        'In {project}, make a new milestone called "{milestone}" with {day} as its due date.',
    ),
    instances=rows(
        f"SELECT path AS project FROM projects WHERE {_WRITABLE} AND level >= {DEVELOPER}",
        rounds=3,
        milestone=phrases.MILESTONES,
        day=phrases.DAYS,
    ),
    expected=lambda world, milestone, project, day: Added(
        "code_milestones",
        {
            "project": queries.project(world, project)["id"],
            "title": milestone,
            "due": queries.stored(day),
            "start": None,
            "description": "",
            "state": "open",
        },
    ),
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.create_milestone, "{milestone}", given(lambda day: queries.stored(day))),
    ],
)


def closed(number: int) -> Updated:
    """Return the change that closes an issue."""
    return Updated("code_issues", {"id": number}, {"state": "closed", "closed": ANY, "closed_by": 1})


def _opened(world: World, project: str, title: str, **values: Any) -> Added:
    number = queries.project(world, project)["id"]
    plain = {"project": number, "title": title, "author": 1, "state": "open", "confidential": 0}
    return Added("code_issues", {**plain, "assignee": None, "milestone": None, "due": None, "weight": None, **values})

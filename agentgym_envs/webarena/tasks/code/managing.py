"""Changes to issues, labels and milestones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable
from agentgym_envs.webarena.tasks.code import parsing, phrases, steps
from agentgym_envs.webarena.tasks.code.queries import (
    ANY,
    DEVELOPER,
    REPORTER,
    CodeTemplate,
    account,
    column,
    issue,
    project,
    select,
    stored,
    with_choices,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_WRITABLE = f"level >= {REPORTER} AND NOT archived"


class CommentOnIssue(CodeTemplate):
    """Comment on an issue."""

    name, kind, difficulty = "code-comment", "change", "medium"
    intents = (
        'Comment on the issue "{title}" of {project}: "{text}"',
        'Write the comment "{text}" below the issue "{title}" in {project}.',
        'Answer the issue "{title}" of {project} with the comment "{text}"',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = "SELECT path AS project, title FROM issues WHERE state = 'open' AND NOT archived"
        return with_choices(select(world, query), rng, text=phrases.COMMENTS)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = issue(world, params["project"], params["title"])["id"]
        comment = {"issue": number, "merge_request": None, "author": 1, "text": params["text"]}
        return [changed(Added("code_comments", comment))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_issue(page, params["title"])
        yield from steps.add_comment(page, params["text"])
        yield page.stop()


class CloseIssue(CodeTemplate):
    """Close an issue."""

    name, kind, difficulty = "code-close-issue", "change", "medium"
    intents = (
        'Close the issue "{title}" of {project}.',
        'The issue "{title}" in {project} is settled. Close it.',
        'Find the issue "{title}" in {project} and close it.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return select(world, f"SELECT path AS project, title FROM issues WHERE state = 'open' AND {_WRITABLE}")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = issue(world, params["project"], params["title"])["id"]
        return [changed(_closed(number))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_issue(page, params["title"])
        yield page.click("button", "Close issue")
        yield page.stop()


class CloseAll(CodeTemplate):
    """Close all open issues of a project by one author."""

    name, kind, difficulty = "code-close-all", "change", "hard"
    held_out = True
    intents = (
        "Close all open issues that {author} opened in {project}.",
        "Every issue in {project} by {author} that is still open is settled now. Close them all.",
        "In {project}, close each of the open issues whose author is {author}.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT i.path AS project, i.author_name AS author FROM issues i WHERE i.state = 'open' AND {_WRITABLE}
            GROUP BY 1, 2 HAVING COUNT(*) BETWEEN 2 AND 3 AND COUNT(*) = (SELECT COUNT(*) FROM code_issues o
            WHERE o.project = i.project AND o.author = i.author AND o.state = 'open')
            AND (SELECT COUNT(*) FROM code_issues o WHERE o.project = i.project AND o.state = 'open') <= 15
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = "SELECT id FROM issues WHERE path = ? AND author_name = ? AND state = 'open'"
        return [changed(*map(_closed, column(world, query, params["project"], params["author"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Issues")
        titles = self._titles(page, params)
        for title in titles:
            yield page.click("link", title)
            yield page.click("button", "Close issue")
            if title != titles[-1]:
                yield from steps.open_section(page, "Issues")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Issues")
        yield page.click("link", self._titles(page, params)[0])
        yield page.click("button", "Close issue")
        yield page.stop()

    def _titles(self, page: PageReader, params: Params) -> list[str]:
        by = re.compile(rf".* by {re.escape(params['author'])}(?: ·.*)?")
        return [title for title, texts in parsing.items(page).items() if by.fullmatch(texts[0])]


class NewIssue(CodeTemplate):
    """Open an issue."""

    name, kind, difficulty = "code-new-issue", "change", "medium"
    intents = (
        'Open an issue in {project} with the title "{title}" and the description "{text}"',
        'Report an issue titled "{title}" to {project}. As its description, write "{text}"',
        'In {project}, create the issue "{title}" with the description "{text}"',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = "SELECT path AS project FROM projects WHERE NOT archived AND forked_from IS NULL"
        return with_choices(select(world, query), rng, title=phrases.TITLES, text=phrases.BODIES)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [changed(_opened(world, params, body=params["text"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Issues")
        yield page.click("link", "New issue")
        yield page.type("Title", params["title"])
        yield page.type("Description", params["text"])
        yield page.click("button", "Create issue")
        yield page.stop()


class NewFullIssue(CodeTemplate):
    """Open an issue with a label, an assignee and a milestone."""

    name, kind, difficulty = "code-new-full-issue", "change", "hard"
    intents = (
        'In {project}, open the issue "{title}", assign it to {person}, and give it the label "{label}" and the '
        'milestone "{milestone}".',
        'Create an issue titled "{title}" in {project}. Its assignee is {person}, its label "{label}", its milestone '
        '"{milestone}".',
        'Please open "{title}" as an issue of {project}, for {person} to work on, labelled "{label}", for the '
        'milestone "{milestone}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT p.path AS project, l.name AS label, m.title AS milestone, a.name AS person
            FROM projects p JOIN code_labels l ON l.project = p.id JOIN code_milestones m ON m.project = p.id
            JOIN code_members r ON r.project = p.id JOIN code_accounts a ON a.id = r.account
            WHERE {_WRITABLE} AND m.state = 'open' AND a.id != 1
        """
        found = select(world, query)
        return with_choices(rng.sample(found, min(len(found), 60)), rng, title=phrases.TITLES)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = project(world, params["project"])["id"]
        milestone = world.value(_MILESTONE, number, params["milestone"])
        label = world.value(_LABEL, number, params["label"])
        opened = _opened(world, params, body="", assignee=account(world, params["person"]), milestone=milestone)
        return [changed(opened, Added("code_issue_labels", {"label": label}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Issues")
        yield page.click("link", "New issue")
        yield page.type("Title", params["title"])
        yield page.choose("Assignee", params["person"])
        yield page.choose("Milestone", params["milestone"])
        yield page.click("checkbox", params["label"])
        yield page.click("button", "Create issue")
        yield page.stop()


class LabelIssue(CodeTemplate):
    """Add two labels to an issue."""

    name, kind, difficulty = "code-label", "change", "hard"
    intents = (
        'Add the labels "{label}" and "{other}" to the issue "{title}" of {project}.',
        'Give the issue "{title}" in {project} two more labels, besides those that it has: "{label}" and "{other}".',
        'Label the issue "{title}" of {project} with "{label}" and "{other}" as well.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT i.path AS project, i.title, l.name AS label, o.name AS other FROM issues i
            JOIN code_labels l ON l.project = i.project JOIN code_labels o ON o.project = i.project AND o.id > l.id
            WHERE i.state = 'open' AND {_WRITABLE}
            AND NOT EXISTS (SELECT 1 FROM code_issue_labels WHERE issue = i.id AND label IN (l.id, o.id))
        """
        found = select(world, query)
        return rng.sample(found, min(len(found), 60))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = issue(world, params["project"], params["title"])
        labels = (world.value(_LABEL, found["project"], params[name]) for name in ("label", "other"))
        return [changed(*(Added("code_issue_labels", {"issue": found["id"], "label": label}) for label in labels))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_issue(page, params["title"])
        yield from page.expand("Edit labels")
        yield page.click("checkbox", params["label"])
        yield page.click("checkbox", params["other"])
        yield page.click("button", "Save")
        yield page.stop()


class AssignIssue(CodeTemplate):
    """Assign an issue to a person."""

    name, kind, difficulty = "code-assign", "change", "medium"
    intents = (
        'Assign the issue "{title}" of {project} to {person}.',
        'Let {person} work on the issue "{title}" of {project}: make them its assignee.',
        'In {project}, {person} is to become the assignee of the issue "{title}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT i.path AS project, i.title, a.name AS person FROM issues i
            JOIN code_members r ON r.project = i.project JOIN code_accounts a ON a.id = r.account
            WHERE i.state = 'open' AND {_WRITABLE} AND a.id != 1 AND a.id IS NOT i.assignee
        """
        found = select(world, query)
        return rng.sample(found, min(len(found), 60))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = issue(world, params["project"], params["title"])["id"]
        return [changed(Updated("code_issues", {"id": number}, {"assignee": account(world, params["person"])}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_issue(page, params["title"])
        yield from steps.set_field(page, "Assignee", params["person"])
        yield page.stop()


class AssignIssueToStranger(CodeTemplate):
    """Assign an issue to a person without an account, which is impossible."""

    name, kind, difficulty = "code-assign-stranger", "change", "medium"
    intents = AssignIssue.intents

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"SELECT path AS project, title FROM issues WHERE state = 'open' AND {_WRITABLE}"
        return with_choices(select(world, query), rng, person=phrases.STRANGERS)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_issue(page, params["title"])
        yield from page.expand("Edit assignee")
        there = page.has("option", params["person"])
        yield page.stop("They are there.") if there else page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.stop("Done")


class ScheduleIssue(CodeTemplate):
    """Put an issue into a milestone, with a due date."""

    name, kind, difficulty = "code-plan", "change", "hard"
    intents = (
        'Put the issue "{title}" of {project} into the milestone "{milestone}", and let it be due on {day}.',
        'Plan the issue "{title}" in {project} for the milestone "{milestone}", with {day} as its due date.',
        'The issue "{title}" of {project} belongs in the milestone "{milestone}" and is due on {day}. Record both.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT i.path AS project, i.title, m.title AS milestone FROM issues i
            JOIN code_milestones m ON m.project = i.project
            WHERE i.state = 'open' AND m.state = 'open' AND m.id IS NOT i.milestone AND {_WRITABLE}
        """
        found = select(world, query)
        return with_choices(rng.sample(found, min(len(found), 60)), rng, day=phrases.DAYS)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = issue(world, params["project"], params["title"])
        milestone = world.value(_MILESTONE, found["project"], params["milestone"])
        return [
            changed(Updated("code_issues", {"id": found["id"]}, {"milestone": milestone, "due": stored(params["day"])}))
        ]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_issue(page, params["title"])
        yield from steps.set_field(page, "Milestone", params["milestone"])
        yield from page.expand("Edit due")
        yield page.type(re.compile(r"Due date .+"), stored(params["day"]), enter=True)
        yield page.stop()


class NewMilestone(CodeTemplate):
    """Create a milestone."""

    name, kind, difficulty = "code-new-milestone", "change", "medium"
    intents = (
        'Create the milestone "{milestone}" in {project}, due on {day}.',
        'Add a milestone to {project}: its title is "{milestone}", and it is due on {day}.',
        'In {project}, make a new milestone called "{milestone}" with {day} as its due date.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        found = select(world, f"SELECT path AS project FROM projects WHERE {_WRITABLE} AND level >= {DEVELOPER}")
        return with_choices(found * 3, rng, milestone=phrases.MILESTONES, day=phrases.DAYS)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = project(world, params["project"])["id"]
        values = {"project": number, "title": params["milestone"], "due": stored(params["day"]), "start": None}
        return [changed(Added("code_milestones", {**values, "description": "", "state": "open"}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.create_milestone(page, params["milestone"], stored(params["day"]))
        yield page.stop()


_LABEL = "SELECT id FROM code_labels WHERE project = ? AND name = ?"
_MILESTONE = "SELECT id FROM code_milestones WHERE project = ? AND title = ?"


def _closed(number: int) -> Updated:
    return Updated("code_issues", {"id": number}, {"state": "closed", "closed": ANY, "closed_by": 1})


def _opened(world: World, params: Params, **values: Any) -> Added:
    number = project(world, params["project"])["id"]
    plain = {"project": number, "title": params["title"], "author": 1, "state": "open", "confidential": 0}
    return Added("code_issues", {**plain, "assignee": None, "milestone": None, "due": None, "weight": None, **values})


TEMPLATES: Sequence[CodeTemplate] = (
    CommentOnIssue(),
    CloseIssue(),
    CloseAll(),
    NewIssue(),
    NewFullIssue(),
    LabelIssue(),
    AssignIssue(),
    AssignIssueToStranger(),
    ScheduleIssue(),
    NewMilestone(),
)

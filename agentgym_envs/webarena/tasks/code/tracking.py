"""Questions about issues, milestones and merge requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable, says
from agentgym_envs.webarena.tasks.code import parsing, steps
from agentgym_envs.webarena.tasks.code.queries import CodeTemplate, column, issue, people_except, request, select
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params

_LABELLED = """
    FROM issues i JOIN code_issue_labels t ON t.issue = i.id JOIN code_labels l ON l.id = t.label
    WHERE i.state = 'open' AND NOT EXISTS (SELECT 1 FROM code_issues o WHERE o.project = i.project AND o.confidential)
"""


_COUNT_LABELLED = """
    SELECT COUNT(*) FROM code_issues x JOIN projects q ON q.id = x.project
    JOIN code_issue_labels y ON y.issue = x.id JOIN code_labels z ON z.id = y.label
    WHERE q.path = {} AND z.name = {} AND x.state = 'open'
"""
_UNIQUE_TITLE = "(SELECT COUNT(*) FROM code_issues o WHERE o.title = i.title) = 1"
"""A condition for titles that are unique in all projects."""


class IssueAuthor(CodeTemplate):
    """Name the person who opened an issue."""

    name, kind, difficulty = "code-issue-author", "information", "easy"
    intents = (
        'Who opened the issue "{title}" of {project}?',
        'Tell me the name of the person who reported "{title}" in {project}.',
        'The issue "{title}" of {project}: by whom was it opened?',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return select(
            world, f"SELECT path AS project, title FROM issues i WHERE assignee != author AND {_UNIQUE_TITLE}"
        )

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = issue(world, params["project"], params["title"])
        return [says(found["author_name"], others=people_except(world, params, found["author_name"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Issues", params["title"])
        yield page.stop(parsing.author(page))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Issues", params["title"])
        yield page.stop(parsing.people(page, "Assignee")[0])


class IssueCloser(CodeTemplate):
    """Name the person who closed an issue."""

    name, kind, difficulty = "code-issue-closer", "information", "easy"
    intents = (
        'Who closed the issue "{title}" of {project}?',
        'By whom was "{title}", an issue of {project}, closed?',
        'Name the person who closed the issue "{title}" in {project}.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = "SELECT path AS project, title FROM issues i WHERE state = 'closed' AND closed_by != author"
        return select(world, f"{query} AND {_UNIQUE_TITLE}")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = issue(world, params["project"], params["title"])
        closer = world.value("SELECT name FROM code_accounts WHERE id = ?", found["closed_by"])
        return [says(closer, others=people_except(world, params, closer))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Issues", params["title"])
        yield page.stop(page.search(r"closed .+ by (.+)")[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Issues", params["title"])
        yield page.stop(parsing.author(page))


class IssueDue(CodeTemplate):
    """Name the due date of an issue."""

    name, kind, difficulty = "code-issue-due", "information", "easy"
    intents = (
        'When is the issue "{title}" of {project} due?',
        'By which day should the issue "{title}" in {project} be settled?',
        'Tell me the due date of the issue "{title}" of {project}.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return select(world, f"SELECT path AS project, title FROM issues i WHERE due IS NOT NULL AND {_UNIQUE_TITLE}")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = issue(world, params["project"], params["title"])
        return [says(found["due"], others=[found["created"][:10]])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Issues", params["title"])
        yield page.stop(next(text for text in page.texts(after="Due date") if re.fullmatch(r"\w+ \d+, \d+", text)))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Issues", params["title"])
        yield page.stop(page.search(r"created (\w+ \d+, \d+)")[0])


class LabelCount(CodeTemplate):
    """Count the open issues with a label."""

    name, kind, difficulty = "code-label-count", "information", "easy"
    intents = (
        'How many open issues of {project} have the label "{label}"?',
        'Count the issues labelled "{label}" that are open in {project}.',
        'In {project}, how many of the open issues carry the label "{label}"?',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT i.path AS project, l.name AS label {_LABELLED} GROUP BY 1, 2
            HAVING COUNT(*) = ({_COUNT_LABELLED.format("i.path", "l.name")}) AND COUNT(*) <
            (SELECT COUNT(*) FROM code_issues o WHERE o.project = i.project AND o.state = 'open')
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [says(*column(world, _COUNT_LABELLED.format("?", "?"), params["project"], params["label"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Labels")
        while not page.has("cell", params["label"]):
            yield page.click("link", "Next")
        yield page.stop(next(row["Open issues"] for row in page.table() if row["Label"] == params["label"]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield page.stop(parsing.count(page, "Issues"))


class OldestLabelled(CodeTemplate):
    """Name the oldest open issue with a label."""

    name, kind, difficulty = "code-oldest-labelled", "information", "medium"
    intents = (
        'What is the title of the oldest open issue of {project} with the label "{label}"?',
        'Which of the open issues labelled "{label}" in {project} was opened first? Give its title.',
        'Of the open issues in {project} that have the label "{label}", tell me the title of the oldest.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"SELECT i.path AS project, l.name AS label {_LABELLED} GROUP BY 1, 2 HAVING COUNT(*) > 1"
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = f"SELECT i.title {_LABELLED} AND i.path = ? AND l.name = ? ORDER BY i.created"
        oldest, *others = column(world, query, params["project"], params["label"])
        return [says(oldest, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_filtered(page, "Issues", label=params["label"])
        yield from steps.sort_list(page, "Oldest first")
        yield page.stop(parsing.titles(page)[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_filtered(page, "Issues", label=params["label"])
        yield page.stop(parsing.titles(page)[0])


class AssignedIssues(CodeTemplate):
    """Name the open issues of a project that are assigned to a person."""

    name, kind, difficulty = "code-assigned-to", "information", "medium"
    intents = (
        "Which open issues of {project} are assigned to {person}? Give all titles.",
        "List the titles of the open issues in {project} that {person} is assigned to.",
        "Tell me the titles of all open issues of {project} whose assignee is {person}.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT i.path AS project, i.assignee_name AS person FROM issues i
            WHERE i.state = 'open' AND i.assignee IS NOT NULL GROUP BY i.project, i.assignee
            HAVING COUNT(*) BETWEEN 1 AND 4 AND COUNT(*) = (SELECT COUNT(*) FROM code_issues o
            WHERE o.project = i.project AND o.assignee = i.assignee AND o.state = 'open')
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = "SELECT title FROM issues WHERE path = ? AND {} (state = 'open' AND assignee_name IS ?)"
        others = column(world, query.format("NOT"), params["project"], params["person"])
        return [says(*column(world, query.format(""), params["project"], params["person"]), others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_filtered(page, "Issues", assignee=params["person"])
        yield page.stop("; ".join(parsing.titles(page)))


class MilestoneDue(CodeTemplate):
    """Name the due date of a milestone."""

    name, kind, difficulty = "code-milestone-due", "information", "medium"
    intents = (
        "When is the milestone {milestone} of {project} due?",
        "On which day is milestone {milestone} of {project} due?",
        "Tell me the due date of the milestone {milestone} in {project}.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project, m.title AS milestone FROM code_milestones m JOIN projects p ON p.id = m.project
            WHERE m.due IS NOT NULL AND (SELECT COUNT(*) FROM code_milestones o WHERE o.due = m.due) = 1
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT m.due FROM code_milestones m JOIN projects p ON p.id = m.project
            WHERE m.due IS NOT NULL AND p.path = ? AND m.title {} ?
        """
        others = column(world, query.format("!="), params["project"], params["milestone"])
        return [says(*column(world, query.format("="), params["project"], params["milestone"]), others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.find_milestone(page, params["milestone"])
        yield page.stop(parsing.milestones(page)[params["milestone"]])


class PendingReviewer(CodeTemplate):
    """Name the reviewer who has not yet approved a merge request."""

    name, kind, difficulty = "code-unreviewed", "information", "easy"
    intents = (
        'Who was asked to review the merge request "{title}" of {project} and has not approved it yet?',
        'Whose approval of "{title}", a merge request of {project}, is still to come? Name all such reviewers.',
        'Name the reviewers of the merge request "{title}" in {project} who have not approved it so far.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT m.path AS project, m.title FROM requests m JOIN code_reviewers r ON r.merge_request = m.id
            WHERE m.state = 'open' AND (SELECT COUNT(*) FROM code_merge_requests o WHERE o.title = m.title) = 1
            GROUP BY 1, 2 HAVING MIN(r.approved) = 0
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = request(world, params["project"], params["title"])
        query = """
            SELECT a.name FROM code_reviewers r JOIN code_accounts a ON a.id = r.account
            WHERE r.merge_request = ? AND NOT r.approved
        """
        names = column(world, query, found["id"])
        return [says(*names, others=people_except(world, params, *names))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Merge requests", params["title"])
        yield page.stop(", ".join(name for name, approved in parsing.reviewers(page).items() if not approved))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Merge requests", params["title"])
        yield page.stop(parsing.author(page))


class LastCommenter(CodeTemplate):
    """Name the author of the last comment on an issue."""

    name, kind, difficulty = "code-last-word", "information", "easy"
    intents = (
        'Who wrote the last comment on the issue "{title}" of {project}?',
        'By whom is the newest comment on "{title}", an issue of {project}?',
        'Find the issue "{title}" in {project}. Who was the last to comment on it?',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT i.path AS project, i.title FROM issues i WHERE i.state = 'open' AND {_UNIQUE_TITLE}
            AND (SELECT COUNT(*) FROM code_comments c WHERE c.issue = i.id) > 1
            AND ({self._last("i.id")}) NOT IN (i.author_name, IFNULL(i.assignee_name, ''))
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = issue(world, params["project"], params["title"])
        last = column(world, self._last("?"), found["id"])[0]
        return [says(last, others=people_except(world, params, last))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Issues", params["title"])
        yield page.stop(parsing.commenters(page)[-1])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_search_result(page, "Issues", params["title"])
        yield page.stop(parsing.author(page))

    def _last(self, number: str) -> str:
        return f"""
            SELECT a.name FROM code_comments c JOIN code_accounts a ON a.id = c.author
            WHERE c.issue = {number} ORDER BY c.moment DESC, c.id DESC LIMIT 1
        """


class MissingMilestone(CodeTemplate):
    """Name the due date of a milestone that does not exist."""

    name, kind, difficulty = "code-missing-milestone", "information", "medium"
    intents = (
        "When is the milestone {milestone} of {project} due?",
        "Tell me the due date of milestone {milestone} in {project}.",
        "By which day is {milestone} of {project} to be finished, according to its milestone?",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project, o.title AS milestone FROM projects p JOIN code_milestones o
            WHERE p.id IN (SELECT project FROM code_milestones) AND o.title LIKE 'v%'
            AND o.title NOT IN (SELECT title FROM code_milestones WHERE project = p.id)
            AND o.title NOT IN (SELECT name FROM code_tags WHERE project = p.id)
        """
        found = select(world, query)
        return rng.sample(found, min(len(found), 40))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.find_milestone(page, params["milestone"])
        there = params["milestone"] in parsing.milestones(page)
        yield page.stop("It is there.") if there else page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.stop("April 1, 2026")


TEMPLATES: Sequence[CodeTemplate] = (
    IssueAuthor(),
    IssueCloser(),
    IssueDue(),
    LabelCount(),
    OldestLabelled(),
    AssignedIssues(),
    MilestoneDue(),
    PendingReviewer(),
    LastCommenter(),
    MissingMilestone(),
)

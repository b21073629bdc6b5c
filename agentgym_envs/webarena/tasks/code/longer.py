"""Tasks of several steps, each of which decides what the next is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.code import phrases, ways
from agentgym_envs.webarena.tasks.code.places import (
    ANY,
    MAINTAINER,
    REPORTER,
    CodeTemplate,
    account,
    asked,
    column,
    issue,
    project,
    stored,
    with_each,
)
from agentgym_envs.webarena.tasks.sight import Sight
from agentgym_envs.webarena.tasks.template import Params, changed

_MINE = f"level >= {REPORTER} AND NOT archived"


class Sprint(CodeTemplate):
    """Add a milestone and put an issue into it."""

    name, kind, difficulty = "code-sprint", "change", "hard"
    held_out = True
    intents = (
        'Create the milestone "{milestone}" in {project}, due on {day}, and put the issue "{title}" into it.',
        'The issue "{title}" of {project} is to be part of a new milestone, "{milestone}", which is due on {day}. '
        "Create the milestone and assign the issue to it.",
        'Add the milestone "{milestone}" (due on {day}) to {project}. Then choose it for the issue "{title}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        found = asked(world, f"SELECT path AS project, title FROM issues WHERE state = 'open' AND {_MINE}")
        return with_each(found, rng, milestone=phrases.MILESTONES, day=phrases.DAYS)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = issue(world, params["project"], params["title"])
        number = world.value("SELECT MAX(id) + 1 FROM code_milestones")
        values = {"id": number, "project": found["project"], "title": params["milestone"], "due": stored(params["day"])}
        planned = Updated("code_issues", {"id": found["id"]}, {"milestone": number})
        return [changed(Added("code_milestones", values), planned)]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.new_milestone(sight, params["milestone"], stored(params["day"]))
        yield from ways.to_issue(sight, params["title"])
        yield from ways.set_milestone(sight, params["milestone"])
        yield sight.stop()


class InviteTwo(CodeTemplate):
    """Make two people members of a project, with a role of their own each."""

    name, kind, difficulty = "code-invite-two", "change", "hard"
    intents = (
        "Invite {person} as {role} and {other} as {other_role} to the project {project}.",
        "Add two people to the members of {project}: {person}, as {role}, and {other}, as {other_role}.",
        "Two people are to join {project}. {person} becomes {role}, {other} becomes {other_role}. Invite them.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT p.path AS project, a.name AS person, b.name AS other FROM projects p
            JOIN code_accounts a JOIN code_accounts b ON a.id != b.id
            WHERE level >= {MAINTAINER} AND NOT archived
            AND NOT EXISTS (SELECT 1 FROM roles r WHERE r.project = p.id AND r.account IN (a.id, b.id))
        """
        found = asked(world, query)
        roles = ("Guest", "Reporter", "Developer", "Maintainer")
        return with_each(rng.sample(found, min(len(found), 60)), rng, role=roles, other_role=roles)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = project(world, params["project"])["id"]
        one = {"project": number, "account": account(world, params["person"]), "role": params["role"]}
        other = {"project": number, "account": account(world, params["other"]), "role": params["other_role"]}
        return [changed(Added("code_members", one), Added("code_members", other))]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.invite(sight, params["person"], params["role"])
        yield from ways.invite(sight, params["other"], params["other_role"])
        yield sight.stop()


class HandOver(CodeTemplate):
    """Give all open issues of one person to another."""

    name, kind, difficulty = "code-hand-over", "change", "hard"
    intents = (
        "Assign all open issues of {project} that are assigned to {person} to {other} instead.",
        "{person} is leaving {project}. Hand their open issues there over to {other}, who becomes the assignee.",
        "In {project}, make {other} the assignee of each open issue that {person} is assigned to now.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT i.path AS project, i.assignee_name AS person, a.name AS other FROM issues i
            JOIN code_members m ON m.project = i.project JOIN code_accounts a ON a.id = m.account
            WHERE i.state = 'open' AND i.assignee IS NOT NULL AND a.id NOT IN (1, i.assignee) AND {_MINE}
            GROUP BY i.project, i.assignee, a.id HAVING COUNT(*) BETWEEN 2 AND 3 AND COUNT(*) = (SELECT COUNT(*)
            FROM code_issues o WHERE o.project = i.project AND o.assignee = i.assignee AND o.state = 'open')
        """
        return asked(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = "SELECT id FROM issues WHERE path = ? AND assignee_name = ? AND state = 'open'"
        other = {"assignee": account(world, params["other"])}
        numbers = column(world, query, params["project"], params["person"])
        return [changed(*(Updated("code_issues", {"id": number}, other) for number in numbers))]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.to_assigned(sight, params["person"])
        titles = ways.issue_titles(sight)
        for title in titles:
            yield sight.click("link", title)
            yield from ways.assign(sight, params["other"])
            if title != titles[-1]:
                yield from ways.to_assigned(sight, params["person"])
        yield sight.stop()


class AnswerOldest(CodeTemplate):
    """Comment on the oldest open issue with a label, and close it."""

    name, kind, difficulty = "code-settle-oldest", "change", "hard"
    intents = (
        'Find the oldest open issue of {project} with the label "{label}", comment on it "{text}", and close it.',
        'In {project}, the open issue labelled "{label}" that was opened first is settled. Leave the comment "{text}" '
        "on it and close it.",
        'Close the oldest of the open issues in {project} that have the label "{label}". Also comment on it: "{text}"',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT i.path AS project, l.name AS label FROM issues i JOIN code_issue_labels t ON t.issue = i.id
            JOIN code_labels l ON l.id = t.label WHERE i.state = 'open' AND {_MINE}
            AND NOT EXISTS (SELECT 1 FROM code_issues o WHERE o.project = i.project AND o.confidential)
            GROUP BY 1, 2 HAVING COUNT(*) > 1
        """
        return with_each(asked(world, query), rng, text=phrases.COMMENTS)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT i.id FROM code_issues i JOIN projects p ON p.id = i.project
            JOIN code_issue_labels t ON t.issue = i.id JOIN code_labels l ON l.id = t.label
            WHERE i.state = 'open' AND p.path = ? AND l.name = ? ORDER BY i.created
        """
        oldest = column(world, query, params["project"], params["label"])[0]
        closed = Updated("code_issues", {"id": oldest}, {"state": "closed", "closed": ANY, "closed_by": 1})
        comment = {"issue": oldest, "merge_request": None, "author": 1, "text": params["text"]}
        return [changed(closed, Added("code_comments", comment))]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.to_labelled(sight, params["label"])
        yield from ways.oldest_first(sight)
        yield from self._settle(sight, params)

    def wrong(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.to_labelled(sight, params["label"])
        yield from self._settle(sight, params)

    def _settle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield sight.click("link", ways.issue_titles(sight)[0])
        yield from ways.comment(sight, params["text"])
        yield from ways.close(sight)
        yield sight.stop()


class Remaining(CodeTemplate):
    """How much weight is left in a milestone."""

    name, kind, difficulty = "code-remaining-weight", "information", "hard"
    intents = (
        'What is the total weight of the open issues in the milestone "{milestone}" of {project}?',
        'Add up the weights of all open issues that belong to the milestone "{milestone}" in {project}.',
        'How much weight do the open issues of the milestone "{milestone}" of {project} have in all?',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project, m.title AS milestone FROM code_issues i JOIN projects p ON p.id = i.project
            JOIN code_milestones m ON m.id = i.milestone WHERE i.state = 'open' AND NOT i.confidential
            GROUP BY 1, 2 HAVING COUNT(*) BETWEEN 2 AND 4 AND COUNT(i.weight) > 0
        """
        return asked(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT SUM(i.weight) FROM code_issues i JOIN projects p ON p.id = i.project
            JOIN code_milestones m ON m.id = i.milestone WHERE i.state = 'open' AND p.path = ? AND m.title = ?
        """
        return [says(*column(world, query, params["project"], params["milestone"]))]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        total = yield from self._add_up(sight, params)
        yield sight.stop(total)

    def wrong(self, sight: Sight, params: Params) -> Iterator[str]:
        total = yield from self._add_up(sight, params)
        yield sight.stop(total + 1)

    def _add_up(self, sight: Sight, params: Params) -> ways.Way[int]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.to_milestone(sight, params["milestone"])
        total = 0
        for title in ways.open_issues(sight):
            yield from ways.to_issue_of_milestone(sight, title)
            total += ways.weight(sight)
            yield from ways.to_milestone_of_issue(sight, params["milestone"])
        return total


TEMPLATES: Sequence[CodeTemplate] = (
    Sprint(),
    InviteTwo(),
    HandOver(),
    AnswerOldest(),
    Remaining(),
)

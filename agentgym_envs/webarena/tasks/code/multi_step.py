"""Tasks in which each step determines the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.code import parsing, phrases, steps
from agentgym_envs.webarena.tasks.code.queries import (
    ANY,
    MAINTAINER,
    REPORTER,
    CodeTemplate,
    account,
    column,
    issue,
    people_except,
    project,
    select,
    stored,
    with_choices,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.template import Params, changed

_WRITABLE = f"level >= {REPORTER} AND NOT archived"


class PlanSprint(CodeTemplate):
    """Create a milestone and put an issue into it."""

    name, kind, difficulty = "code-sprint", "change", "hard"
    held_out = True
    intents = (
        'Create the milestone "{milestone}" in {project}, due on {day}, and put the issue "{title}" into it.',
        'The issue "{title}" of {project} is to be part of a new milestone, "{milestone}", which is due on {day}. '
        "Create the milestone and put the issue into it.",
        'Add the milestone "{milestone}" (due on {day}) to {project}. Then choose it for the issue "{title}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        found = select(world, f"SELECT path AS project, title FROM issues WHERE state = 'open' AND {_WRITABLE}")
        return with_choices(found, rng, milestone=phrases.MILESTONES, day=phrases.DAYS)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = issue(world, params["project"], params["title"])
        number = world.value("SELECT MAX(id) + 1 FROM code_milestones")
        values = {"id": number, "project": found["project"], "title": params["milestone"], "due": stored(params["day"])}
        planned = Updated("code_issues", {"id": found["id"]}, {"milestone": number})
        return [changed(Added("code_milestones", values), planned)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.create_milestone(page, params["milestone"], stored(params["day"]))
        yield from steps.open_issue(page, params["title"])
        yield from steps.set_field(page, "Milestone", params["milestone"])
        yield page.stop()


class InviteTwo(CodeTemplate):
    """Invite two members with different roles."""

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
        found = select(world, query)
        roles = ("Guest", "Reporter", "Developer", "Maintainer")
        return with_choices(rng.sample(found, min(len(found), 60)), rng, role=roles, other_role=roles)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = project(world, params["project"])["id"]
        one = {"project": number, "account": account(world, params["person"]), "role": params["role"]}
        other = {"project": number, "account": account(world, params["other"]), "role": params["other_role"]}
        return [changed(Added("code_members", one), Added("code_members", other))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.invite(page, params["person"], params["role"])
        yield from steps.invite(page, params["other"], params["other_role"])
        yield page.stop()


class ReassignIssues(CodeTemplate):
    """Reassign all open issues of one person to another."""

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
            WHERE i.state = 'open' AND i.assignee IS NOT NULL AND a.id NOT IN (1, i.assignee) AND {_WRITABLE}
            GROUP BY i.project, i.assignee, a.id HAVING COUNT(*) = 2 AND COUNT(*) = (SELECT COUNT(*)
            FROM code_issues o WHERE o.project = i.project AND o.assignee = i.assignee AND o.state = 'open')
            AND (SELECT COUNT(*) FROM code_issues o WHERE o.project = i.project AND o.state = 'open') <= 15
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = "SELECT id FROM issues WHERE path = ? AND assignee_name = ? AND state = 'open'"
        other = {"assignee": account(world, params["other"])}
        numbers = column(world, query, params["project"], params["person"])
        return [changed(*(Updated("code_issues", {"id": number}, other) for number in numbers))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Issues")
        titles = [title for title, texts in parsing.items(page).items() if self._is_assigned(texts[-1], params)]
        for title in titles:
            yield page.click("link", title)
            yield from steps.set_field(page, "Assignee", params["other"])
            if title != titles[-1]:
                yield from steps.open_section(page, "Issues")
        yield page.stop()

    def _is_assigned(self, text: str, params: Params) -> bool:
        return text.startswith(f"Assigned to {params['person']} ·")


class CloseOldestIssue(CodeTemplate):
    """Comment on the oldest open issue with a label, and close it."""

    name, kind, difficulty = "code-settle-oldest", "change", "hard"
    held_out = True
    intents = (
        'Find the oldest open issue of {project} with the label "{label}", comment on it "{text}", and close it.',
        'In {project}, the open issue labelled "{label}" that was opened first is settled. Leave the comment "{text}" '
        "on it and close it.",
        'Close the oldest of the open issues in {project} that have the label "{label}". Also comment on it: "{text}"',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT i.path AS project, l.name AS label FROM issues i JOIN code_issue_labels t ON t.issue = i.id
            JOIN code_labels l ON l.id = t.label WHERE i.state = 'open' AND {_WRITABLE}
            AND NOT EXISTS (SELECT 1 FROM code_issues o WHERE o.project = i.project AND o.confidential)
            GROUP BY 1, 2 HAVING COUNT(*) > 1
        """
        return with_choices(select(world, query), rng, text=phrases.COMMENTS)

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

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_filtered(page, "Issues", label=params["label"])
        yield from steps.sort_list(page, "Oldest first")
        yield from self._settle(page, params)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_filtered(page, "Issues", label=params["label"])
        yield from self._settle(page, params)

    def _settle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", parsing.titles(page)[0])
        yield from steps.add_comment(page, params["text"])
        yield page.click("button", "Close issue")
        yield page.stop()


class BusiestProject(CodeTemplate):
    """Name the project of three with the most open merge requests."""

    name, kind, difficulty = "code-busiest", "information", "hard"
    held_out = True
    intents = (
        "Which project has the most open merge requests: {one}, {two} or {three}?",
        "Compare {one}, {two} and {three}: in which of them are the most merge requests open?",
        "{one}, {two} or {three}: where are the most merge requests waiting to be merged? Name the project.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        counts = self._counts(world)
        found = []
        for _ in range(60):
            one, two, three = rng.sample(list(counts), 3)
            if sorted((counts[one], counts[two], counts[three]))[1] < max(counts[one], counts[two], counts[three]):
                found.append({"one": one, "two": two, "three": three})
        return found

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        counts = self._counts(world)
        most, *others = sorted(params.values(), key=lambda path: -counts[path])
        return [says(most, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        counts = yield from self._count(page, params)
        yield page.stop(max(counts, key=lambda path: counts[path]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        counts = yield from self._count(page, params)
        yield page.stop(min(counts, key=lambda path: counts[path]))

    def _count(self, page: PageReader, params: Params) -> Steps[dict[str, int]]:
        counts = {}
        for path in (params["one"], params["two"], params["three"]):
            yield from steps.open_project(page, path)
            yield from steps.open_section(page, "Merge requests")
            counts[path] = parsing.count(page)
        return counts

    def _counts(self, world: World) -> dict[str, int]:
        query = """
            SELECT path, (SELECT COUNT(*) FROM code_merge_requests m WHERE m.project = p.id AND m.state = 'open') AS n
            FROM projects p WHERE p.forked_from IS NULL
        """
        return {row["path"]: row["n"] for row in select(world, query) if row["n"]}


class MostDiscussedIssue(CodeTemplate):
    """Name the author of the last comment on the most discussed issue with a label."""

    name, kind, difficulty = "code-most-discussed", "information", "hard"
    held_out = True
    intents = (
        'Of the issues in {project} with the label "{label}", open or closed, one has the most comments. Who wrote the '
        "last of them?",
        'Find the issue of {project}, open or closed, that has the label "{label}" and the most comments. Who was the '
        "last to comment on it?",
        'Who has the last word on the most commented of all issues labelled "{label}" in {project}, whatever their '
        "state?",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT DISTINCT p.path AS project, l.name AS label FROM projects p JOIN code_labels l ON l.project = p.id
            WHERE NOT EXISTS (SELECT 1 FROM code_issues o WHERE o.project = p.id AND o.confidential)
        """
        return [row for row in select(world, query) if self._is_clear(self._ranked(world, row))]

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        best = self._ranked(world, params)[0]
        return [says(best["last"], others=people_except(world, params, best["last"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._find(page, params)
        yield page.stop(parsing.commenters(page)[-1])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._find(page, params)
        yield page.stop(parsing.author(page))

    def _find(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Issues")
        yield page.click("link", re.compile(r"All \(\d+\)"))
        yield page.choose("Label", params["label"])
        yield page.choose("Sort by", "Most comments")
        yield page.click("button", "Apply")
        yield page.click("link", parsing.titles(page)[0])

    def _is_clear(self, ranked: list[dict[str, Any]]) -> bool:
        """Return whether one issue has the most comments, at least two, and its author did not write the last one."""
        if len(ranked) < 2 or ranked[0]["n"] < 2:
            return False
        return bool(ranked[0]["n"] > ranked[1]["n"] and ranked[0]["last"] != ranked[0]["author_name"])

    def _ranked(self, world: World, params: Params) -> list[dict[str, Any]]:
        query = """
            SELECT a.name AS author_name, (SELECT COUNT(*) FROM code_comments c WHERE c.issue = i.id) AS n,
            (SELECT a.name FROM code_comments c JOIN code_accounts a ON a.id = c.author WHERE c.issue = i.id
            ORDER BY c.moment DESC, c.id DESC LIMIT 1) AS last
            FROM code_issues i JOIN projects p ON p.id = i.project JOIN code_accounts a ON a.id = i.author
            JOIN code_issue_labels t ON t.issue = i.id JOIN code_labels l ON l.id = t.label
            WHERE p.path = ? AND l.name = ? ORDER BY n DESC
        """
        return select(world, query, params["project"], params["label"])


class ReplaceMember(CodeTemplate):
    """Remove a member, and invite another person with the same role."""

    name, kind, difficulty = "code-replace", "change", "hard"
    held_out = True
    intents = (
        "Remove {person} from the members of {project}, and invite {other} with the role that {person} had.",
        "{other} takes the place of {person} in {project}: remove {person} from the members, and add {other} in the "
        "same role.",
        "In {project}, replace the member {person} by {other}. The role stays the same.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT p.path AS project, a.name AS person, b.name AS other FROM projects p
            JOIN code_members m ON m.project = p.id JOIN code_accounts a ON a.id = m.account JOIN code_accounts b
            WHERE level >= {MAINTAINER} AND NOT archived AND a.id != 1 AND m.role != 'Owner'
            AND NOT EXISTS (SELECT 1 FROM roles r WHERE r.project = p.id AND r.account = b.id)
        """
        found = select(world, query)
        return rng.sample(found, min(len(found), 60))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = project(world, params["project"])["id"]
        gone = {"project": number, "account": account(world, params["person"])}
        role = world.value("SELECT role FROM code_members WHERE project = ? AND account = ?", *gone.values())
        new = {"project": number, "account": account(world, params["other"]), "role": role}
        return [changed(Removed("code_members", gone), Added("code_members", new))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        role = yield from self._remove(page, params)
        yield from steps.invite(page, params["other"], role)
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._remove(page, params)
        yield page.stop()

    def _remove(self, page: PageReader, params: Params) -> Steps[str]:
        """Remove the member and return the role."""
        yield from steps.open_project(page, params["project"])
        yield from steps.find_member(page, params["person"])
        role = parsing.role(page, params["person"]) or ""
        yield page.click("button", f"Remove {params['person']}")
        yield page.click("button", "Remove")
        return role


TEMPLATES: Sequence[CodeTemplate] = (
    PlanSprint(),
    InviteTwo(),
    ReassignIssues(),
    CloseOldestIssue(),
    BusiestProject(),
    MostDiscussedIssue(),
    ReplaceMember(),
)

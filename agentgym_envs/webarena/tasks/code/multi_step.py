"""Tasks in which each step determines the next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Expected, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says_first
from agentgym_envs.webarena.tasks.code import parsing, phrases, queries, steps
from agentgym_envs.webarena.tasks.code.queries import ANY, MAINTAINER, REPORTER, CodeTemplate, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, do, given
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

_WRITABLE = f"level >= {REPORTER} AND NOT archived"


def _plan_sprint_expected(world: World, project: str, title: str, milestone: str, day: str) -> ExpectedResult:
    found = queries.issue(world, project, title)
    number = world.value("SELECT MAX(id) + 1 FROM code_milestones")
    values = {"id": number, "project": found["project"], "title": milestone, "due": queries.stored(day)}
    planned = Updated("code_issues", {"id": found["id"]}, {"milestone": number})
    return [Added("code_milestones", values), planned]


plan_sprint = CodeTemplate(
    "code-sprint",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Create the milestone "{milestone}" in {project}, due on {day}, and put the issue "{title}" into it.',
        'The issue "{title}" of {project} is to be part of a new milestone, "{milestone}", which is due on {day}. '
        "Create the milestone and put the issue into it.",
        'Add the milestone "{milestone}" (due on {day}) to {project}. Then choose it for the issue "{title}".',
    ),
    instances=rows(
        f"SELECT path AS project, title FROM issues WHERE state = 'open' AND {_WRITABLE}",
        milestone=phrases.MILESTONES,
        day=phrases.DAYS,
    ),
    expected=_plan_sprint_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.create_milestone, "{milestone}", given(lambda day: queries.stored(day))),
        do(steps.open_issue, "{title}"),
        do(steps.set_field, "Milestone", "{milestone}"),
    ],
)

_ROLES = ("Guest", "Reporter", "Developer", "Maintainer")


def _two_invited(world: World, project: str, person: str, role: str, other: str, other_role: str) -> Iterator[Expected]:
    number = queries.project(world, project)["id"]
    for name, as_role in ((person, role), (other, other_role)):
        yield Added("code_members", {"project": number, "account": queries.account(world, name), "role": as_role})


invite_two = CodeTemplate(
    "code-invite-two",
    "change",
    "hard",
    intents=(
        "Invite {person} as {role} and {other} as {other_role} to the project {project}.",
        "Add two people to the members of {project}: {person}, as {role}, and {other}, as {other_role}.",
        "Two people are to join {project}. {person} becomes {role}, {other} becomes {other_role}. Invite them.",
    ),
    instances=rows(
        f"""
        SELECT p.path AS project, a.name AS person, b.name AS other FROM projects p
        JOIN code_accounts a JOIN code_accounts b ON a.id != b.id
        WHERE level >= {MAINTAINER} AND NOT archived
        AND NOT EXISTS (SELECT 1 FROM roles r WHERE r.project = p.id AND r.account IN (a.id, b.id))
        """,
        sample=60,
        role=_ROLES,
        other_role=_ROLES,
    ),
    expected=_two_invited,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.invite, "{person}", "{role}"),
        do(steps.invite, "{other}", "{other_role}"),
    ],
)


def _reassigned(world: World, project: str, person: str, other: str) -> list[Expected]:
    query = "SELECT id FROM issues WHERE path = ? AND assignee_name = ? AND state = 'open'"
    values = {"assignee": queries.account(world, other)}
    return [Updated("code_issues", {"id": number}, values) for number in queries.column(world, query, project, person)]


def _reassign(page: PageReader, person: str, other: str) -> Iterator[str]:
    titles = [title for title, texts in parsing.items(page).items() if _is_assigned(texts[-1], person)]
    for title in titles:
        yield page.click("link", title)
        yield from steps.set_field(page, "Assignee", other)
        if title != titles[-1]:
            yield from steps.open_section(page, "Issues")


def _is_assigned(text: str, person: str) -> bool:
    return text.startswith(f"Assigned to {person} ·")


reassign_issues = CodeTemplate(
    "code-hand-over",
    "change",
    "hard",
    intents=(
        "Assign all open issues of {project} that are assigned to {person} to {other} instead.",
        "{person} is leaving {project}. Hand their open issues there over to {other}, who becomes the assignee.",
        "In {project}, make {other} the assignee of each open issue that {person} is assigned to now.",
    ),
    instances=rows(
        f"""
        SELECT i.path AS project, i.assignee_name AS person, a.name AS other FROM issues i
        JOIN code_members m ON m.project = i.project JOIN code_accounts a ON a.id = m.account
        WHERE i.state = 'open' AND i.assignee IS NOT NULL AND a.id NOT IN (1, i.assignee) AND {_WRITABLE}
        GROUP BY i.project, i.assignee, a.id HAVING COUNT(*) = 2 AND COUNT(*) = (SELECT COUNT(*)
        FROM code_issues o WHERE o.project = i.project AND o.assignee = i.assignee AND o.state = 'open')
        AND (SELECT COUNT(*) FROM code_issues o WHERE o.project = i.project AND o.state = 'open') <= 15
        """
    ),
    expected=_reassigned,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Issues"),
        do(_reassign, "{person}", "{other}"),
    ],
)


def _close_oldest_issue_expected(world: World, project: str, label: str, text: str) -> ExpectedResult:
    query = """
        SELECT i.id FROM code_issues i JOIN projects p ON p.id = i.project
        JOIN code_issue_labels t ON t.issue = i.id JOIN code_labels l ON l.id = t.label
        WHERE i.state = 'open' AND p.path = ? AND l.name = ? ORDER BY i.created
    """
    oldest = queries.column(world, query, project, label)[0]
    closed = Updated("code_issues", {"id": oldest}, {"state": "closed", "closed": ANY, "closed_by": 1})
    comment = {"issue": oldest, "merge_request": None, "author": 1, "text": text}
    return [closed, Added("code_comments", comment)]


def _settle(page: PageReader, text: str) -> Iterator[str]:
    yield page.click("link", parsing.titles(page)[0])
    yield from steps.add_comment(page, text)
    yield page.click("button", "Close issue")


close_oldest_issue = CodeTemplate(
    "code-settle-oldest",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Find the oldest open issue of {project} with the label "{label}", comment on it "{text}", and close it.',
        'In {project}, the open issue labelled "{label}" that was opened first is settled. Leave the comment "{text}" '
        "on it and close it.",
        'Close the oldest of the open issues in {project} that have the label "{label}". Also comment on it: "{text}"',
    ),
    instances=rows(
        f"""
        SELECT i.path AS project, l.name AS label FROM issues i JOIN code_issue_labels t ON t.issue = i.id
        JOIN code_labels l ON l.id = t.label WHERE i.state = 'open' AND {_WRITABLE}
        AND NOT EXISTS (SELECT 1 FROM code_issues o WHERE o.project = i.project AND o.confidential)
        GROUP BY 1, 2 HAVING COUNT(*) > 1
        """,
        text=phrases.COMMENTS,
    ),
    expected=_close_oldest_issue_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_filtered, "Issues", label="{label}"),
        do(steps.sort_list, "Oldest first"),
        do(_settle, "{text}"),
    ],
    mistake=[
        do(steps.open_project, "{project}"),
        do(steps.open_filtered, "Issues", label="{label}"),
        do(_settle, "{text}"),
    ],
)


def _busiest_project_instances(world: World, rng: Random) -> list[Params]:
    counts = _counts(world)
    found: list[Params] = []
    for _ in range(60):
        one, two, three = rng.sample(list(counts), 3)
        if sorted((counts[one], counts[two], counts[three]))[1] < max(counts[one], counts[two], counts[three]):
            found.append({"one": one, "two": two, "three": three})
    return found


def _busiest_project_expected(world: World, one: str, two: str, three: str) -> Says:
    counts = _counts(world)
    return says_first(sorted((one, two, three), key=lambda path: -counts[path]))


def _count(page: PageReader, one: str, two: str, three: str) -> Steps[dict[str, int]]:
    counts = {}
    for path in (one, two, three):
        yield from steps.open_project(page, path)
        yield from steps.open_section(page, "Merge requests")
        counts[path] = parsing.count(page)
    return counts


def _counts(world: World) -> dict[str, int]:
    query = """
        SELECT path, (SELECT COUNT(*) FROM code_merge_requests m WHERE m.project = p.id AND m.state = 'open') AS n
        FROM projects p WHERE p.forked_from IS NULL
    """
    return {row["path"]: row["n"] for row in queries.select(world, query) if row["n"]}


busiest_project = CodeTemplate(
    "code-busiest",
    "information",
    "hard",
    held_out=True,
    intents=(
        "Which project has the most open merge requests: {one}, {two} or {three}?",
        "Compare {one}, {two} and {three}: in which of them are the most merge requests open?",
        "{one}, {two} or {three}: where are the most merge requests waiting to be merged? Name the project.",
    ),
    instances=_busiest_project_instances,
    expected=_busiest_project_expected,
    solution=[do(_count, "{one}", "{two}", "{three}"), answer(lambda found: max(found, key=lambda path: found[path]))],
    mistake=answer(lambda found: min(found, key=lambda path: found[path])),
)


def _most_discussed_issue_instances(world: World) -> list[Params]:
    query = """
        SELECT DISTINCT p.path AS project, l.name AS label FROM projects p JOIN code_labels l ON l.project = p.id
        WHERE NOT EXISTS (SELECT 1 FROM code_issues o WHERE o.project = p.id AND o.confidential)
    """
    return [row for row in queries.select(world, query) if _is_clear(_ranked(world, **row))]


def _find(page: PageReader, project: str, label: str) -> Iterator[str]:
    yield from steps.open_project(page, project)
    yield from find_most_discussed(page, label)


def find_most_discussed(page: PageReader, label: str) -> Iterator[str]:
    """Open the issue with a label and the most comments, of the project on the page."""
    yield from steps.open_section(page, "Issues")
    yield page.click("link", re.compile(r"All \(\d+\)"))
    yield page.choose("Label", label)
    yield page.choose("Sort by", "Most comments")
    yield page.click("button", "Apply")
    yield page.click("link", parsing.titles(page)[0])


def _is_clear(ranked: list[dict[str, Any]]) -> bool:
    """Return whether one issue has the most comments, at least two, and its author did not write the last one."""
    if len(ranked) < 2 or ranked[0]["n"] < 2:
        return False
    return bool(ranked[0]["n"] > ranked[1]["n"] and ranked[0]["last"] != ranked[0]["author_name"])


def _ranked(world: World, project: str, label: str) -> list[dict[str, Any]]:
    query = """
        SELECT a.name AS author_name, (SELECT COUNT(*) FROM code_comments c WHERE c.issue = i.id) AS n,
        (SELECT a.name FROM code_comments c JOIN code_accounts a ON a.id = c.author WHERE c.issue = i.id
        ORDER BY c.moment DESC, c.id DESC LIMIT 1) AS last
        FROM code_issues i JOIN projects p ON p.id = i.project JOIN code_accounts a ON a.id = i.author
        JOIN code_issue_labels t ON t.issue = i.id JOIN code_labels l ON l.id = t.label
        WHERE p.path = ? AND l.name = ? ORDER BY n DESC
    """
    return queries.select(world, query, project, label)


most_discussed_issue = CodeTemplate(
    "code-most-discussed",
    "information",
    "hard",
    held_out=True,
    intents=(
        'Of the issues in {project} with the label "{label}", open or closed, one has the most comments. Who wrote the '
        "last of them?",
        'Find the issue of {project}, open or closed, that has the label "{label}" and the most comments. Who was the '
        "last to comment on it?",
        'Who has the last word on the most commented of all issues labelled "{label}" in {project}, whatever their '
        "state?",
    ),
    instances=_most_discussed_issue_instances,
    expected=lambda world, params: queries.says_people(world, params, _ranked(world, **params)[0]["last"]),
    solution=[do(_find, "{project}", "{label}"), answer(lambda page: parsing.commenters(page)[-1])],
    mistake=answer(parsing.author),
)


def _replace_member_expected(world: World, project: str, person: str, other: str) -> ExpectedResult:
    number = queries.project(world, project)["id"]
    gone = {"project": number, "account": queries.account(world, person)}
    role = world.value("SELECT role FROM code_members WHERE project = ? AND account = ?", *gone.values())
    new = {"project": number, "account": queries.account(world, other), "role": role}
    return [Removed("code_members", gone), Added("code_members", new)]


def _remove(page: PageReader, project: str, person: str) -> Steps[str]:
    yield from steps.open_project(page, project)
    return (yield from remove_here(page, person))


def remove_here(page: PageReader, person: str) -> Steps[str]:
    """Remove a member of the project on the page, and return the role."""
    yield from steps.find_member(page, person)
    role = parsing.role(page, person) or ""
    yield page.click("button", f"Remove {person}")
    yield page.click("button", "Remove")
    return role


replace_member = CodeTemplate(
    "code-replace",
    "change",
    "hard",
    held_out=True,
    intents=(
        "Remove {person} from the members of {project}, and invite {other} with the role that {person} had.",
        "{other} takes the place of {person} in {project}: remove {person} from the members, and add {other} in the "
        "same role.",
        "In {project}, replace the member {person} by {other}. The role stays the same.",
    ),
    instances=rows(
        f"""
        SELECT p.path AS project, a.name AS person, b.name AS other FROM projects p
        JOIN code_members m ON m.project = p.id JOIN code_accounts a ON a.id = m.account JOIN code_accounts b
        WHERE level >= {MAINTAINER} AND NOT archived AND a.id != 1 AND m.role != 'Owner'
        AND NOT EXISTS (SELECT 1 FROM roles r WHERE r.project = p.id AND r.account = b.id)
        """,
        sample=60,
    ),
    expected=_replace_member_expected,
    solution=[do(_remove, "{project}", "{person}"), do(steps.invite, "{other}", given(lambda found: found))],
    mistake=[do(_remove, "{project}", "{person}")],
)

"""Questions about issues, milestones and merge requests."""

from __future__ import annotations

import re

from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NOT_ACHIEVABLE, NotAchievable, Says, says, says_first
from agentgym_envs.webarena.tasks.code import parsing, queries, steps
from agentgym_envs.webarena.tasks.code.queries import CodeTemplate, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, do, turn_to
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

issue_author = CodeTemplate(
    "code-issue-author",
    "information",
    "easy",
    intents=(
        'Who opened the issue "{title}" of {project}?',
        'Tell me the name of the person who reported "{title}" in {project}.',
        'The issue "{title}" of {project}: by whom was it opened?',
    ),
    instances=rows(f"SELECT path AS project, title FROM issues i WHERE assignee != author AND {_UNIQUE_TITLE}"),
    expected=lambda world, params, project, title: queries.says_people(
        world, params, queries.issue(world, project, title)["author_name"]
    ),
    solution=[do(steps.open_search_result, "Issues", "{title}"), answer(parsing.author)],
    mistake=answer(lambda page: parsing.people(page, "Assignee")[0]),
)


def _issue_closer_expected(world: World, params: Params, project: str, title: str) -> Says:
    found = queries.issue(world, project, title)
    closer = world.value("SELECT name FROM code_accounts WHERE id = ?", found["closed_by"])
    return queries.says_people(world, params, closer)


issue_closer = CodeTemplate(
    "code-issue-closer",
    "information",
    "easy",
    intents=(
        'Who closed the issue "{title}" of {project}?',
        'By whom was "{title}", an issue of {project}, closed?',
        'Name the person who closed the issue "{title}" in {project}.',
    ),
    instances=rows(
        "SELECT path AS project, title FROM issues i WHERE state = 'closed' AND closed_by != author "
        f"AND {_UNIQUE_TITLE}"
    ),
    expected=_issue_closer_expected,
    solution=[
        do(steps.open_search_result, "Issues", "{title}"),
        answer(lambda page: page.search(r"closed .+ by (.+)")[0]),
    ],
    mistake=answer(parsing.author),
)


def _issue_due_expected(world: World, project: str, title: str) -> Says:
    found = queries.issue(world, project, title)
    return says(found["due"], others=[found["created"][:10]])


issue_due = CodeTemplate(
    "code-issue-due",
    "information",
    "easy",
    intents=(
        'When is the issue "{title}" of {project} due?',
        'By which day should the issue "{title}" in {project} be settled?',
        'Tell me the due date of the issue "{title}" of {project}.',
    ),
    instances=rows(f"SELECT path AS project, title FROM issues i WHERE due IS NOT NULL AND {_UNIQUE_TITLE}"),
    expected=_issue_due_expected,
    solution=[
        do(steps.open_search_result, "Issues", "{title}"),
        answer(lambda page: next(text for text in page.texts(after="Due date") if re.fullmatch(r"\w+ \d+, \d+", text))),
    ],
    mistake=answer(lambda page: page.search(r"created (\w+ \d+, \d+)")[0]),
)


def _count(page: PageReader, label: str) -> str:
    return next(row["Open issues"] for row in page.table() if row["Label"] == label)


label_count = CodeTemplate(
    "code-label-count",
    "information",
    "easy",
    intents=(
        'How many open issues of {project} have the label "{label}"?',
        'Count the issues labelled "{label}" that are open in {project}.',
        'In {project}, how many of the open issues carry the label "{label}"?',
    ),
    instances=rows(
        f"""
        SELECT i.path AS project, l.name AS label {_LABELLED} GROUP BY 1, 2
        HAVING COUNT(*) = ({_COUNT_LABELLED.format("i.path", "l.name")}) AND COUNT(*) <
        (SELECT COUNT(*) FROM code_issues o WHERE o.project = i.project AND o.state = 'open')
        """
    ),
    expected=lambda world, project, label: says(
        *queries.column(world, _COUNT_LABELLED.format("?", "?"), project, label)
    ),
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Labels"),
        turn_to("cell", "{label}"),
        answer(_count),
    ],
    mistake=[do(steps.open_project, "{project}"), answer(lambda page: parsing.count(page, "Issues"))],
)


def _oldest_labelled_expected(world: World, project: str, label: str) -> Says:
    query = f"SELECT i.title {_LABELLED} AND i.path = ? AND l.name = ? ORDER BY i.created"
    return says_first(queries.column(world, query, project, label))


oldest_labelled = CodeTemplate(
    "code-oldest-labelled",
    "information",
    "medium",
    intents=(
        'What is the title of the oldest open issue of {project} with the label "{label}"?',
        'Which of the open issues labelled "{label}" in {project} was opened first? Give its title.',
        'Of the open issues in {project} that have the label "{label}", tell me the title of the oldest.',
    ),
    instances=rows(f"SELECT i.path AS project, l.name AS label {_LABELLED} GROUP BY 1, 2 HAVING COUNT(*) > 1"),
    expected=_oldest_labelled_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_filtered, "Issues", label="{label}"),
        do(steps.sort_list, "Oldest first"),
        answer(lambda page: parsing.titles(page)[0]),
    ],
    mistake=[
        do(steps.open_project, "{project}"),
        do(steps.open_filtered, "Issues", label="{label}"),
        answer(lambda page: parsing.titles(page)[0]),
    ],
)


def _assigned_issues_expected(world: World, project: str, person: str) -> Says:
    query = "SELECT title FROM issues WHERE path = ? AND {} (state = 'open' AND assignee_name IS ?)"
    others = queries.column(world, query.format("NOT"), project, person)
    return says(*queries.column(world, query.format(""), project, person), others=others)


assigned_issues = CodeTemplate(
    "code-assigned-to",
    "information",
    "medium",
    intents=(
        "Which open issues of {project} are assigned to {person}? Give all titles.",
        "List the titles of the open issues in {project} that {person} is assigned to.",
        "Tell me the titles of all open issues of {project} whose assignee is {person}.",
    ),
    instances=rows(
        """
        SELECT i.path AS project, i.assignee_name AS person FROM issues i
        WHERE i.state = 'open' AND i.assignee IS NOT NULL GROUP BY i.project, i.assignee
        HAVING COUNT(*) BETWEEN 1 AND 4 AND COUNT(*) = (SELECT COUNT(*) FROM code_issues o
        WHERE o.project = i.project AND o.assignee = i.assignee AND o.state = 'open')
        """
    ),
    expected=_assigned_issues_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_filtered, "Issues", assignee="{person}"),
        answer(lambda page: "; ".join(parsing.titles(page))),
    ],
)


def _milestone_due_expected(world: World, project: str, milestone: str) -> Says:
    query = """
        SELECT m.due FROM code_milestones m JOIN projects p ON p.id = m.project
        WHERE m.due IS NOT NULL AND p.path = ? AND m.title {} ?
    """
    others = queries.column(world, query.format("!="), project, milestone)
    return says(*queries.column(world, query.format("="), project, milestone), others=others)


milestone_due = CodeTemplate(
    "code-milestone-due",
    "information",
    "medium",
    intents=(
        "When is the milestone {milestone} of {project} due?",
        "On which day is milestone {milestone} of {project} due?",
        "Tell me the due date of the milestone {milestone} in {project}.",
    ),
    instances=rows(
        """
        SELECT p.path AS project, m.title AS milestone FROM code_milestones m JOIN projects p ON p.id = m.project
        WHERE m.due IS NOT NULL AND (SELECT COUNT(*) FROM code_milestones o WHERE o.due = m.due) = 1
        """
    ),
    expected=_milestone_due_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.find_milestone, "{milestone}"),
        answer(lambda page, milestone: parsing.milestones(page)[milestone]),
    ],
)


def _pending_reviewer_expected(world: World, params: Params, project: str, title: str) -> Says:
    found = queries.request(world, project, title)
    query = """
        SELECT a.name FROM code_reviewers r JOIN code_accounts a ON a.id = r.account
        WHERE r.merge_request = ? AND NOT r.approved
    """
    names = queries.column(world, query, found["id"])
    return queries.says_people(world, params, *names)


pending_reviewer = CodeTemplate(
    "code-unreviewed",
    "information",
    "easy",
    intents=(
        'Who was asked to review the merge request "{title}" of {project} and has not approved it yet?',
        'Whose approval of "{title}", a merge request of {project}, is still to come? Name all such reviewers.',
        'Name the reviewers of the merge request "{title}" in {project} who have not approved it so far.',
    ),
    instances=rows(
        """
        SELECT m.path AS project, m.title FROM requests m JOIN code_reviewers r ON r.merge_request = m.id
        WHERE m.state = 'open' AND (SELECT COUNT(*) FROM code_merge_requests o WHERE o.title = m.title) = 1
        GROUP BY 1, 2 HAVING MIN(r.approved) = 0
        """
    ),
    expected=_pending_reviewer_expected,
    solution=[
        do(steps.open_search_result, "Merge requests", "{title}"),
        answer(lambda page: ", ".join(name for name, approved in parsing.reviewers(page).items() if not approved)),
    ],
    mistake=answer(parsing.author),
)


def _last_commenter_expected(world: World, params: Params, project: str, title: str) -> Says:
    found = queries.issue(world, project, title)
    last = queries.column(world, _last("?"), found["id"])[0]
    return queries.says_people(world, params, last)


def _last(number: str) -> str:
    return f"""
        SELECT a.name FROM code_comments c JOIN code_accounts a ON a.id = c.author
        WHERE c.issue = {number} ORDER BY c.moment DESC, c.id DESC LIMIT 1
    """


last_commenter = CodeTemplate(
    "code-last-word",
    "information",
    "easy",
    intents=(
        'Who wrote the last comment on the issue "{title}" of {project}?',
        'By whom is the newest comment on "{title}", an issue of {project}?',
        'Find the issue "{title}" in {project}. Who was the last to comment on it?',
    ),
    instances=rows(
        f"""
        SELECT i.path AS project, i.title FROM issues i WHERE i.state = 'open' AND {_UNIQUE_TITLE}
        AND (SELECT COUNT(*) FROM code_comments c WHERE c.issue = i.id) > 1
        AND ({_last("i.id")}) NOT IN (i.author_name, IFNULL(i.assignee_name, ''))
        """
    ),
    expected=_last_commenter_expected,
    solution=[do(steps.open_search_result, "Issues", "{title}"), answer(lambda page: parsing.commenters(page)[-1])],
    mistake=answer(parsing.author),
)

missing_milestone = CodeTemplate(
    "code-missing-milestone",
    "information",
    "medium",
    intents=(
        "When is the milestone {milestone} of {project} due?",
        "Tell me the due date of milestone {milestone} in {project}.",
        "By which day is {milestone} of {project} to be finished, according to its milestone?",
    ),
    instances=rows(
        """
        SELECT p.path AS project, o.title AS milestone FROM projects p JOIN code_milestones o
        WHERE p.id IN (SELECT project FROM code_milestones) AND o.title LIKE 'v%'
        AND o.title NOT IN (SELECT title FROM code_milestones WHERE project = p.id)
        AND o.title NOT IN (SELECT name FROM code_tags WHERE project = p.id)
        """,
        sample=40,
    ),
    expected=NotAchievable,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.find_milestone, "{milestone}"),
        answer(lambda page, milestone: "It is there." if milestone in parsing.milestones(page) else NOT_ACHIEVABLE),
    ],
    mistake=[answer("April 1, 2026")],
)

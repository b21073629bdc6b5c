"""Tasks that end on a page."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.code import parsing, queries, steps
from agentgym_envs.webarena.tasks.code.queries import ORIGIN, CodeTemplate, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import click, do, given
from agentgym_envs.webarena.tasks.template import Params

_FILTERS = """
[...new URLSearchParams(location.search)]
  .filter(([name, value]) => value && !["sort", "page"].includes(name))
  .map(pair => pair.join("=")).filter(pair => !["state=open", "scope=assigned"].includes(pair)).join() || "none"
"""
"""JavaScript for the filters of a list that differ from the default. Without it, closed issues would pass, too."""

open_labelled = CodeTemplate(
    "code-open-labelled",
    "navigation",
    "medium",
    intents=(
        'Show me the open issues of {project} that have the label "{label}".',
        'Open the list of those issues in {project} that are open and labelled "{label}".',
        'Go to the open issues of {project}, filtered by the label "{label}".',
    ),
    instances=rows(
        """
        SELECT DISTINCT p.path AS project, l.name AS label FROM projects p JOIN code_labels l ON l.project = p.id
        JOIN code_issue_labels t ON t.label = l.id JOIN code_issues i ON i.id = t.issue WHERE i.state = 'open'
        """
    ),
    expected=lambda world, project, label: [
        EndsOn(f"{queries.address(world, project, 'issues')}?{urlencode({'label': label})}"),
        PageHolds("last", _FILTERS, exact=f"label={label}"),
    ],
    solution=[do(steps.open_project, "{project}"), do(steps.open_filtered, "Issues", label="{label}")],
)

_LISTS = {
    "my to-do items that are done": ("dashboard/todos?state=done", "To-do list", r"Done \(\d+\)"),
    "the issues that I created": ("dashboard/issues?scope=created", "Issues", "Created by you"),
    "the merge requests that I am asked to review": (
        "dashboard/merge_requests?scope=reviews",
        "Merge requests",
        "Review requests for you",
    ),
    "the merge requests that I created": ("dashboard/merge_requests?scope=created", "Merge requests", "Created by you"),
    "the closed issues that are assigned to me": ("dashboard/issues?state=closed", "Issues", r"Closed \(\d+\)"),
    "the projects that I have starred": ("starred", "Starred", ""),
    "all groups here": ("groups", "Groups", ""),
    "my SSH keys": ("-/profile/keys", r"Account of .+", "SSH keys"),
}
"""The path of each list, and the links that lead to it."""


def _open_dashboard(page: PageReader, what: str) -> Steps[None]:
    for name in filter(None, _LISTS[what][1:]):
        if name.startswith("Account"):
            yield from page.expand(re.compile(name))
        else:
            yield page.click("link", re.compile(name))


open_dashboard = CodeTemplate(
    "code-open-dashboard",
    "navigation",
    "easy",
    intents=("Show me {what}.", "Open the list of {what}.", "Take me to the page with {what}."),
    instances=lambda: [{"what": what} for what in _LISTS],
    expected=lambda what: [
        EndsOn(f"{ORIGIN}/{_LISTS[what][0]}"),
        PageHolds("last", _FILTERS, exact=_LISTS[what][0].partition("?")[2] or "none"),
    ],
    solution=_open_dashboard,
)

open_file = CodeTemplate(
    "code-open-file",
    "navigation",
    "medium",
    intents=(
        "Open the file {file} of {project} as it is on the branch {branch}.",
        "Show me {file} on the branch {branch} of {project}.",
        "I want to see the file {file} of the project {project}, on its branch {branch}.",
    ),
    instances=rows(
        """
        SELECT p.path AS project, b.name AS branch, f.path AS file FROM projects p
        JOIN code_branches b ON b.project = p.id JOIN code_files f ON f.branch = b.id
        WHERE b.id != p.head AND LENGTH(f.path) - LENGTH(REPLACE(f.path, '/', '')) = 1
        """,
        sample=60,
    ),
    expected=lambda world, file, project, branch: EndsOn(queries.address(world, project, "blob", branch, file)),
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_from_list, "Branches", "{branch}"),
        do(steps.open_file, "{file}"),
    ],
)


def _newest_request(world: World, project: str) -> EndsOn:
    query = """
        SELECT m.number FROM projects p JOIN code_merge_requests m ON m.project = p.id
        WHERE m.state = 'open' AND p.path = ? ORDER BY m.created DESC
    """
    return EndsOn(queries.address(world, project, "merge_requests", queries.column(world, query, project)[0]))


open_newest = CodeTemplate(
    "code-open-newest",
    "navigation",
    "medium",
    intents=(
        "Show me the most recently opened merge request of {project} that is still open.",
        "Open the newest of the open merge requests of {project}.",
        "Of the merge requests that are open in {project}, go to the one that was opened last.",
    ),
    instances=rows(
        """
        SELECT p.path AS project FROM projects p JOIN code_merge_requests m ON m.project = p.id
        WHERE m.state = 'open' GROUP BY 1
        """
    ),
    expected=_newest_request,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Merge requests"),
        click("link", given(lambda page: parsing.titles(page)[0])),
    ],
)


def _urgent_issue(world: World, project: str) -> EndsOn:
    query = """
        SELECT i.number FROM projects p JOIN code_issues i ON i.project = p.id
        WHERE i.state = 'open' AND i.due IS NOT NULL AND p.path = ? ORDER BY i.due LIMIT 1
    """
    return EndsOn(queries.address(world, project, "issues", queries.column(world, query, project)[0]))


open_urgent = CodeTemplate(
    "code-open-urgent",
    "navigation",
    "medium",
    held_out=True,
    intents=(
        "Show me the open issue of {project} that is due first.",
        "Which open issue of {project} has the earliest due date? Open it.",
        "Go to the open issue in {project} whose due date comes first.",
    ),
    instances=rows(
        """
        SELECT p.path AS project FROM projects p JOIN code_issues i ON i.project = p.id
        WHERE i.state = 'open' AND i.due IS NOT NULL GROUP BY p.id HAVING COUNT(*) > 1
        AND SUM(i.due = (SELECT MIN(due) FROM code_issues WHERE project = p.id AND state = 'open')) = 1
        AND MAX(i.confidential) = 0
        """
    ),
    expected=_urgent_issue,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Issues"),
        do(steps.sort_list, "Due date"),
        click("link", given(lambda page: parsing.titles(page)[0])),
    ],
    mistake=click("link", given(lambda page: parsing.titles(page)[1])),
)


def _tagged_commit(world: World, project: str, tag: str) -> EndsOn:
    query = "SELECT t.sha FROM projects p JOIN code_tags t ON t.project = p.id WHERE p.path = ? AND t.name = ?"
    return _on_commit_page(world, project, queries.column(world, query, project, tag)[0])


open_release_commit = CodeTemplate(
    "code-open-tagged",
    "navigation",
    "medium",
    intents=(
        "Show me the commit from which {tag} of {project} was made.",
        "Open the commit of {project} that has the tag {tag}.",
        "Go to the commit that was released as {tag} in {project}.",
    ),
    instances=rows(
        "SELECT p.path AS project, t.name AS tag FROM projects p JOIN code_tags t ON t.project = p.id "
        "WHERE t.id IN (SELECT tag FROM code_releases)"
    ),
    expected=_tagged_commit,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Tags"),
        click("link", re.compile(r"[0-9a-f]{8}"), after="{tag}"),
    ],
)


def _last(path: str, author: str) -> str:
    return f"""
        SELECT c.sha FROM projects q JOIN code_commits c ON c.branch = q.head
        JOIN code_accounts a ON a.id = c.author WHERE q.path = {path} AND a.name = {author}
        ORDER BY c.moment DESC, c.id DESC LIMIT 1
    """


open_commit = CodeTemplate(
    "code-open-commit",
    "navigation",
    "medium",
    intents=(
        "Show me the last commit that {author} made to the default branch of {project}.",
        "Open the most recent commit by {author} on the default branch of {project}.",
        "Go to the newest commit of {author} in {project}, on the default branch.",
    ),
    instances=rows(
        f"""
        SELECT p.path AS project, a.name AS author FROM projects p JOIN code_commits c ON c.branch = p.head
        JOIN code_accounts a ON a.id = c.author WHERE p.forked_from IS NULL GROUP BY 1, 2
        HAVING COUNT(*) > 1 AND MAX(c.moment) = ({_last("p.path", "a.name").replace("c.sha", "c.moment")})
        """
    ),
    expected=lambda world, author, project: _on_commit_page(
        world, project, queries.column(world, _last("?", "?"), project, author)[0]
    ),
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_filtered, "Commits", author="{author}"),
        click("link", given(lambda page: parsing.commits(page)[0][1])),
    ],
)

open_request_changes = CodeTemplate(
    "code-open-changes",
    "navigation",
    "medium",
    intents=(
        'Show me the changes that the merge request "{title}" of {project} makes.',
        'Open the changes of the merge request "{title}" in {project}.',
        'I want to see which lines "{title}", a merge request of {project}, changes.',
    ),
    instances=rows("SELECT path AS project, title FROM requests WHERE state = 'open'"),
    expected=lambda world, title, project: EndsOn(
        queries.address(world, project, "merge_requests", queries.request(world, project, title)["number"], "diffs")
    ),
    solution=[do(steps.open_project, "{project}"), do(steps.open_request, "{title}"), click("link", "Changes")],
)


def _open_contributor_instances(world: World) -> list[Params]:
    query = "SELECT path AS project FROM projects WHERE forked_from IS NULL"
    return [row for row in queries.select(world, query) if _is_clear(world, row["project"])]


def _is_clear(world: World, path: str) -> bool:
    ranked = _ranked(world, path)
    return len(ranked) > 1 and ranked[0]["n"] > ranked[1]["n"]


def _ranked(world: World, path: str) -> list[dict[str, Any]]:
    query = """
        SELECT a.user, COUNT(*) AS n FROM code_commits c JOIN code_accounts a ON a.id = c.author
        WHERE c.branch = ? GROUP BY 1 ORDER BY 2 DESC
    """
    return queries.select(world, query, queries.project(world, path)["head"])


open_contributor = CodeTemplate(
    "code-open-contributor",
    "navigation",
    "medium",
    held_out=True,
    intents=(
        "Show me the profile of the person with the most commits to {project}.",
        "Who has made the most commits to the default branch of {project}? Open that person's profile.",
        "Go to the profile page of the top contributor to {project}, by the number of commits.",
    ),
    instances=_open_contributor_instances,
    expected=lambda world, project: EndsOn(f"{ORIGIN}/{_ranked(world, project)[0]['user']}"),
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Contributors"),
        click("link", given(lambda page: page.table()[0]["Name"])),
    ],
    mistake=click("link", given(lambda page: page.table()[1]["Name"])),
)


def _on_commit_page(world: World, path: str, sha: str) -> EndsOn:
    """Return an evaluator for the page of a commit, by its full or abbreviated hash."""
    return EndsOn(OR.join(queries.address(world, path, "commit", name) for name in (sha[:8], sha)))

"""Tasks that end on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, ClassVar
from urllib.parse import urlencode

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.code import parsing, steps
from agentgym_envs.webarena.tasks.code.queries import ORIGIN, CodeTemplate, address, column, project, request, select
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params

_FILTERS = """
[...new URLSearchParams(location.search)]
  .filter(([name, value]) => value && !["sort", "page"].includes(name))
  .map(pair => pair.join("=")).filter(pair => !["state=open", "scope=assigned"].includes(pair)).join() || "none"
"""
"""JavaScript for the filters of a list that differ from the default. Without it, closed issues would pass, too."""


class OpenLabelled(CodeTemplate):
    """Show the open issues with a label."""

    name, kind, difficulty = "code-open-labelled", "navigation", "medium"
    intents = (
        'Show me the open issues of {project} that have the label "{label}".',
        'Open the list of those issues in {project} that are open and labelled "{label}".',
        'Go to the open issues of {project}, filtered by the label "{label}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT DISTINCT p.path AS project, l.name AS label FROM projects p JOIN code_labels l ON l.project = p.id
            JOIN code_issue_labels t ON t.label = l.id JOIN code_issues i ON i.id = t.issue WHERE i.state = 'open'
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = urlencode({"label": params["label"]})
        shown = PageHolds("last", _FILTERS, exact=f"label={params['label']}")
        return [EndsOn(f"{address(world, params['project'], 'issues')}?{query}"), shown]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_filtered(page, "Issues", label=params["label"])
        yield page.stop()


class OpenDashboard(CodeTemplate):
    """Show one of the agent's lists."""

    name, kind, difficulty = "code-open-dashboard", "navigation", "easy"
    intents = ("Show me {what}.", "Open the list of {what}.", "Take me to the page with {what}.")
    lists: ClassVar = {
        "my to-do items that are done": ("dashboard/todos?state=done", "To-do list", r"Done \(\d+\)"),
        "the issues that I created": ("dashboard/issues?scope=created", "Issues", "Created by you"),
        "the merge requests that I am asked to review": (
            "dashboard/merge_requests?scope=reviews",
            "Merge requests",
            "Review requests for you",
        ),
        "the merge requests that I created": (
            "dashboard/merge_requests?scope=created",
            "Merge requests",
            "Created by you",
        ),
        "the closed issues that are assigned to me": (
            "dashboard/issues?state=closed",
            "Issues",
            r"Closed \(\d+\)",
        ),
        "the projects that I have starred": ("starred", "Starred", ""),
        "all groups here": ("groups", "Groups", ""),
        "my SSH keys": ("-/profile/keys", r"Account of .+", "SSH keys"),
    }
    """The path of each list, and the links that lead to it."""

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return [{"what": what} for what in self.lists]

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        page = self.lists[params["what"]][0]
        return [EndsOn(f"{ORIGIN}/{page}"), PageHolds("last", _FILTERS, exact=page.partition("?")[2] or "none")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        for name in filter(None, self.lists[params["what"]][1:]):
            if name.startswith("Account"):
                yield from page.expand(re.compile(name))
            else:
                yield page.click("link", re.compile(name))
        yield page.stop()


class OpenFile(CodeTemplate):
    """Show a file on a branch."""

    name, kind, difficulty = "code-open-file", "navigation", "medium"
    intents = (
        "Open the file {file} of {project} as it is on the branch {branch}.",
        "Show me {file} on the branch {branch} of {project}.",
        "I want to see the file {file} of the project {project}, on its branch {branch}.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project, b.name AS branch, f.path AS file FROM projects p
            JOIN code_branches b ON b.project = p.id JOIN code_files f ON f.branch = b.id
            WHERE b.id != p.head AND LENGTH(f.path) - LENGTH(REPLACE(f.path, '/', '')) = 1
        """
        found = select(world, query)
        return rng.sample(found, min(len(found), 60))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [EndsOn(address(world, params["project"], "blob", params["branch"], params["file"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Branches")
        while not page.has("link", params["branch"]):
            yield page.click("link", "Next")
        yield page.click("link", params["branch"])
        yield from steps.open_file(page, params["file"])
        yield page.stop()


class OpenNewest(CodeTemplate):
    """Show the newest open merge request of a project."""

    name, kind, difficulty = "code-open-newest", "navigation", "medium"
    intents = (
        "Show me the most recently opened merge request of {project} that is still open.",
        "Open the newest of the open merge requests of {project}.",
        "Of the merge requests that are open in {project}, go to the one that was opened last.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project FROM projects p JOIN code_merge_requests m ON m.project = p.id
            WHERE m.state = 'open' GROUP BY 1
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT m.number FROM projects p JOIN code_merge_requests m ON m.project = p.id
            WHERE m.state = 'open' AND p.path = ? ORDER BY m.created DESC
        """
        return [
            EndsOn(address(world, params["project"], "merge_requests", *column(world, query, params["project"])[:1]))
        ]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Merge requests")
        yield page.click("link", parsing.titles(page)[0])
        yield page.stop()


class OpenUrgent(CodeTemplate):
    """Show the open issue of a project with the earliest due date."""

    name, kind, difficulty = "code-open-urgent", "navigation", "medium"
    held_out = True
    intents = (
        "Show me the open issue of {project} that is due first.",
        "Which open issue of {project} has the earliest due date? Open it.",
        "Go to the open issue in {project} whose due date comes first.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project FROM projects p JOIN code_issues i ON i.project = p.id
            WHERE i.state = 'open' AND i.due IS NOT NULL GROUP BY p.id HAVING COUNT(*) > 1
            AND SUM(i.due = (SELECT MIN(due) FROM code_issues WHERE project = p.id AND state = 'open')) = 1
            AND MAX(i.confidential) = 0
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT i.number FROM projects p JOIN code_issues i ON i.project = p.id
            WHERE i.state = 'open' AND i.due IS NOT NULL AND p.path = ? ORDER BY i.due LIMIT 1
        """
        return [EndsOn(address(world, params["project"], "issues", *column(world, query, params["project"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Issues")
        yield from steps.sort_list(page, "Due date")
        yield page.click("link", parsing.titles(page)[0])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Issues")
        yield from steps.sort_list(page, "Due date")
        yield page.click("link", parsing.titles(page)[1])
        yield page.stop()


class OpenReleaseCommit(CodeTemplate):
    """Show the commit of a release."""

    name, kind, difficulty = "code-open-tagged", "navigation", "medium"
    intents = (
        "Show me the commit from which {tag} of {project} was made.",
        "Open the commit of {project} that has the tag {tag}.",
        "Go to the commit that was released as {tag} in {project}.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = "SELECT p.path AS project, t.name AS tag FROM projects p JOIN code_tags t ON t.project = p.id"
        return select(world, f"{query} WHERE t.id IN (SELECT tag FROM code_releases)")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = "SELECT t.sha FROM projects p JOIN code_tags t ON t.project = p.id WHERE p.path = ? AND t.name = ?"
        return [_on_commit_page(world, params["project"], column(world, query, params["project"], params["tag"])[0])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Tags")
        yield page.click("link", re.compile(r"[0-9a-f]{8}"), after=params["tag"])
        yield page.stop()


class OpenCommit(CodeTemplate):
    """Show the last commit of an author to a project."""

    name, kind, difficulty = "code-open-commit", "navigation", "medium"
    intents = (
        "Show me the last commit that {author} made to the default branch of {project}.",
        "Open the most recent commit by {author} on the default branch of {project}.",
        "Go to the newest commit of {author} in {project}, on the default branch.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT p.path AS project, a.name AS author FROM projects p JOIN code_commits c ON c.branch = p.head
            JOIN code_accounts a ON a.id = c.author WHERE p.forked_from IS NULL GROUP BY 1, 2
            HAVING COUNT(*) > 1 AND MAX(c.moment) = ({self._last("p.path", "a.name").replace("c.sha", "c.moment")})
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        sha = column(world, self._last("?", "?"), params["project"], params["author"])[0]
        return [_on_commit_page(world, params["project"], sha)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_filtered(page, "Commits", author=params["author"])
        yield page.click("link", parsing.commits(page)[0][1])
        yield page.stop()

    def _last(self, path: str, author: str) -> str:
        return f"""
            SELECT c.sha FROM projects q JOIN code_commits c ON c.branch = q.head
            JOIN code_accounts a ON a.id = c.author WHERE q.path = {path} AND a.name = {author}
            ORDER BY c.moment DESC, c.id DESC LIMIT 1
        """


class OpenRequestChanges(CodeTemplate):
    """Show the changes of a merge request."""

    name, kind, difficulty = "code-open-changes", "navigation", "medium"
    intents = (
        'Show me the changes that the merge request "{title}" of {project} makes.',
        'Open the changes of the merge request "{title}" in {project}.',
        'I want to see which lines "{title}", a merge request of {project}, changes.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return select(world, "SELECT path AS project, title FROM requests WHERE state = 'open'")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = request(world, params["project"], params["title"])["number"]
        return [EndsOn(address(world, params["project"], "merge_requests", number, "diffs"))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_request(page, params["title"])
        yield page.click("link", "Changes")
        yield page.stop()


class OpenContributor(CodeTemplate):
    """Show the profile of the person with the most commits to a project."""

    name, kind, difficulty = "code-open-contributor", "navigation", "medium"
    held_out = True
    intents = (
        "Show me the profile of the person with the most commits to {project}.",
        "Who has made the most commits to the default branch of {project}? Open that person's profile.",
        "Go to the profile page of the top contributor to {project}, by the number of commits.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = "SELECT path AS project FROM projects WHERE forked_from IS NULL"
        return [row for row in select(world, query) if self._is_clear(world, row["project"])]

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [EndsOn(f"{ORIGIN}/{self._ranked(world, params['project'])[0]['user']}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Contributors")
        yield page.click("link", page.table()[0]["Name"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Contributors")
        yield page.click("link", page.table()[1]["Name"])
        yield page.stop()

    def _is_clear(self, world: World, path: str) -> bool:
        ranked = self._ranked(world, path)
        return len(ranked) > 1 and ranked[0]["n"] > ranked[1]["n"]

    def _ranked(self, world: World, path: str) -> list[dict[str, Any]]:
        query = """
            SELECT a.user, COUNT(*) AS n FROM code_commits c JOIN code_accounts a ON a.id = c.author
            WHERE c.branch = ? GROUP BY 1 ORDER BY 2 DESC
        """
        return select(world, query, project(world, path)["head"])


def _on_commit_page(world: World, path: str, sha: str) -> EndsOn:
    """Return an evaluator for the page of a commit, by its full or abbreviated hash."""
    return EndsOn(OR.join(address(world, path, "commit", name) for name in (sha[:8], sha)))


TEMPLATES: Sequence[CodeTemplate] = (
    OpenLabelled(),
    OpenDashboard(),
    OpenFile(),
    OpenNewest(),
    OpenUrgent(),
    OpenReleaseCommit(),
    OpenCommit(),
    OpenRequestChanges(),
    OpenContributor(),
)

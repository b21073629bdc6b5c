"""Tasks that end on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.code import ways
from agentgym_envs.webarena.tasks.code.places import ORIGIN, CodeTemplate, address, asked, column, project, request
from agentgym_envs.webarena.tasks.sight import Sight
from agentgym_envs.webarena.tasks.template import Params


class OpenLabelled(CodeTemplate):
    """Show the open issues that have a label."""

    name, kind, difficulty = "code-open-labelled", "navigation", "medium"
    intents = (
        'Show me the open issues of {project} that have the label "{label}".',
        'Open the list of the issues in {project} labelled "{label}", the open ones.',
        'Go to the open issues of {project}, filtered by the label "{label}".',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT DISTINCT p.path AS project, l.name AS label FROM projects p JOIN code_labels l ON l.project = p.id
            JOIN code_issue_labels t ON t.label = l.id JOIN code_issues i ON i.id = t.issue WHERE i.state = 'open'
        """
        return asked(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [ways.on_labelled(world, params["project"], params["label"])]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.to_labelled(sight, params["label"])
        yield sight.stop()


class OpenFile(CodeTemplate):
    """Show a file as it is on a branch."""

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
        found = asked(world, query)
        return rng.sample(found, min(len(found), 60))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [EndsOn(address(world, params["project"], "blob", params["branch"], params["file"]))]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.to_branch(sight, params["branch"])
        yield from ways.down_to(sight, params["file"])
        yield sight.stop()


class OpenNewest(CodeTemplate):
    """Show the open merge request of a project that was opened last."""

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
        return asked(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT m.number FROM projects p JOIN code_merge_requests m ON m.project = p.id
            WHERE m.state = 'open' AND p.path = ? ORDER BY m.created DESC
        """
        return [EndsOn(address(world, params["project"], "merge_requests", *column(world, query, params["project"])[:1]))]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.to_requests(sight)
        yield sight.click("link", ways.request_titles(sight)[0])
        yield sight.stop()


class OpenCommit(CodeTemplate):
    """Show the last commit that somebody made to a project."""

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
        return asked(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        sha = column(world, self._last("?", "?"), params["project"], params["author"])[0]
        return [EndsOn(address(world, params["project"], "commit", sha))]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_last_commit(sight, params["project"], params["author"])
        yield sight.stop()

    def _last(self, path: str, author: str) -> str:
        return f"""
            SELECT c.sha FROM projects q JOIN code_commits c ON c.branch = q.head
            JOIN code_accounts a ON a.id = c.author WHERE q.path = {path} AND a.name = {author}
            ORDER BY c.moment DESC, c.id DESC LIMIT 1
        """


class OpenReview(CodeTemplate):
    """Show what a merge request changes."""

    name, kind, difficulty = "code-open-changes", "navigation", "easy"
    intents = (
        'Show me the changes that the merge request "{title}" of {project} makes.',
        'Open the changes of the merge request "{title}" in {project}.',
        'I want to see which lines "{title}", a merge request of {project}, changes.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return asked(world, "SELECT path AS project, title FROM requests WHERE state = 'open'")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = request(world, params["project"], params["title"])["number"]
        return [ways.on_changes(world, params["project"], number)]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_request(sight, params["title"])
        yield from ways.to_changes(sight)
        yield sight.stop()


class OpenCommitter(CodeTemplate):
    """Show the profile of who has made most commits to a project."""

    name, kind, difficulty = "code-open-contributor", "navigation", "medium"
    held_out = True
    intents = (
        "Show me the profile of the person with the most commits to {project}.",
        "Who has made the most commits to the default branch of {project}? Open that person's profile.",
        "Go to the profile page of the top contributor to {project}, by the number of commits.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = "SELECT path AS project FROM projects WHERE forked_from IS NULL"
        return [row for row in asked(world, query) if self._is_clear(world, row["project"])]

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        return [EndsOn(f"{ORIGIN}/{self._ranked(world, params['project'])[0]['user']}")]

    def oracle(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.to_contributors(sight)
        yield sight.click("link", ways.contributors(sight)[0])
        yield sight.stop()

    def wrong(self, sight: Sight, params: Params) -> Iterator[str]:
        yield from ways.to_project(sight, params["project"])
        yield from ways.to_contributors(sight)
        yield sight.click("link", ways.contributors(sight)[-1])
        yield sight.stop()

    def _is_clear(self, world: World, path: str) -> bool:
        ranked = self._ranked(world, path)
        return len(ranked) > 1 and ranked[0]["n"] > ranked[1]["n"]

    def _ranked(self, world: World, path: str) -> list[dict[str, Any]]:
        query = """
            SELECT a.user, COUNT(*) AS n FROM code_commits c JOIN code_accounts a ON a.id = c.author
            WHERE c.branch = ? GROUP BY 1 ORDER BY 2 DESC
        """
        return asked(world, query, project(world, path)["head"])


TEMPLATES: Sequence[CodeTemplate] = (
    OpenLabelled(),
    OpenFile(),
    OpenNewest(),
    OpenCommit(),
    OpenReview(),
    OpenCommitter(),
)

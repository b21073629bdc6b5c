"""Questions about projects: their properties, members and files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.code import parsing, steps
from agentgym_envs.webarena.tasks.code.queries import (
    CodeTemplate,
    column,
    month,
    month_of,
    project,
    select,
    stored,
    unique_by,
    with_choices,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.template import Params

_ROLES = ("Guest", "Reporter", "Developer", "Maintainer", "Owner")
_SETTINGS = "config/default.yaml"
_VALUES = ("true", "false", "debug", "info", "warning", "error")
"""Possible values of the settings that are words."""


class ProjectLicence(CodeTemplate):
    """Name the licence of a project."""

    name, kind, difficulty = "code-licence", "information", "easy"
    intents = (
        "Under which licence is the project {project} published?",
        "What is the licence of {project}?",
        "Tell me which licence {project} has.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return select(world, "SELECT path AS project FROM projects WHERE licence != ''")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        every = column(world, "SELECT DISTINCT licence FROM projects WHERE licence != '' ORDER BY licence")
        return [
            says(_spellings(project(world, params["project"])["licence"]), others=[_spellings(one) for one in every])
        ]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield page.stop(parsing.licence(page))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.stop("Either MIT or Apache-2.0 or BSD-3-Clause")


class MostStarred(CodeTemplate):
    """Name the project of a topic with the most stars."""

    name, kind, difficulty = "code-most-starred", "information", "easy"
    intents = (
        "Which project with the topic {topic} has the most stars? Give its name and the number of its stars.",
        "Find the most starred project on the topic {topic}. What is it called, and how many stars does it have?",
        "Among the projects with the topic {topic}, which is starred most, and how often? Tell me name and number.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        topics = {t for listed in column(world, "SELECT topics FROM projects") for t in listed.split(", ") if t}
        return [{"topic": topic} for topic in sorted(topics) if self._is_clear(world, topic)]

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        best, *others = self._ranked(world, params["topic"])
        names = [row["name"] for row in others if row["name"] != best["name"]]
        return [says(best["name"], best["stars"], others=names)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        stars = yield from self._stars(page, params["topic"])
        best = max(stars, key=lambda name: stars[name])
        yield page.stop(f"{best}, with {stars[best]} stars")

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        stars = yield from self._stars(page, params["topic"])
        least = min(stars, key=lambda name: stars[name])
        yield page.stop(f"{least}, with {stars[least]} stars")

    def _stars(self, page: PageReader, topic: str) -> Steps[dict[str, int]]:
        yield page.click("link", "Explore")
        yield page.type("Topic", topic, enter=True)
        return parsing.star_counts(page)

    def _is_clear(self, world: World, topic: str) -> bool:
        ranked = self._ranked(world, topic)
        return 2 <= len(ranked) <= 10 and ranked[0]["stars"] > ranked[1]["stars"]

    def _ranked(self, world: World, topic: str) -> list[dict[str, Any]]:
        query = """
            SELECT name, (SELECT COUNT(*) FROM code_stars WHERE project = p.id) AS stars FROM projects p
            WHERE ', ' || topics || ',' LIKE '%, ' || ? || ',%' ORDER BY stars DESC
        """
        return select(world, query, topic)


class CommitsBy(CodeTemplate):
    """Count the commits of an author to a project in a month."""

    name, kind, difficulty = "code-commits-by", "information", "medium"
    intents = (
        "How many commits did {author} make to the default branch of {project} in {month}?",
        "Count the commits of {author} on the default branch of {project} in {month}.",
        "On the default branch of {project}, how many commits of {month} are by {author}?",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project, a.name AS author, SUBSTR(c.moment, 1, 7) || '-01' AS month
            FROM code_commits c JOIN projects p ON p.head = c.branch JOIN code_accounts a ON a.id = c.author
            WHERE p.forked_from IS NULL AND c.moment > '2025-09' GROUP BY 1, 2, 3 HAVING COUNT(*) BETWEEN 2 AND 9
        """
        return [{**row, "month": month(row["month"])} for row in select(world, query)]

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT COUNT(*) FROM code_commits c JOIN projects p ON p.head = c.branch
            JOIN code_accounts a ON a.id = c.author WHERE p.path = ? AND a.name = ? AND c.moment LIKE ? || '%'
        """
        return [says(*column(world, query, params["project"], params["author"], month_of(params["month"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        commits = yield from self._count(page, params)
        yield page.stop(commits)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        commits = yield from self._count(page, params)
        yield page.stop(commits + 1)

    def _count(self, page: PageReader, params: Params) -> Steps[int]:
        """Count the author's commits of the month; the list is newest first, so stop at an older one."""
        yield from steps.open_project(page, params["project"])
        yield from steps.open_filtered(page, "Commits", author=params["author"])
        days = [day for day, _ in parsing.commits(page)]
        while month_of(params["month"]) <= stored(days[-1]) and page.has("link", "Next"):
            yield page.click("link", "Next")
            days += [day for day, _ in parsing.commits(page)]
        return sum(stored(day).startswith(month_of(params["month"])) for day in days)


class CommitLines(CodeTemplate):
    """Name the number of lines that a commit added."""

    name, kind, difficulty = "code-commit-lines", "information", "medium"
    intents = (
        'How many lines did the commit "{message}" on the default branch of {project} add?',
        'Find the commit "{message}" of {project} (default branch). How many lines were added by it?',
        'The commit "{message}" in {project}, on its default branch: how many additions does it have?',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project, c.message FROM code_commits c JOIN projects p ON p.head = c.branch
            WHERE p.forked_from IS NULL AND c.additions > 2 AND c.additions != c.deletions
            AND c.message NOT LIKE '%"%' AND c.message NOT LIKE '%`%' AND c.moment > '2026-01'
            GROUP BY 1, 2 HAVING COUNT(*) = 1 AND (SELECT COUNT(*) FROM code_commits o JOIN code_branches b
            ON b.id = o.branch WHERE b.project = p.id AND o.message = c.message) = 1
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT c.additions FROM code_commits c JOIN projects p ON p.head = c.branch
            WHERE p.path = ? AND c.message = ?
        """
        return [says(*column(world, query, params["project"], params["message"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_commit(page, params["message"])
        yield page.stop(parsing.lines_changed(page)[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_commit(page, params["message"])
        yield page.stop(parsing.lines_changed(page)[1])


class LatestRelease(CodeTemplate):
    """Name the tag of a project's newest release."""

    name, kind, difficulty = "code-latest-release", "information", "easy"
    intents = (
        "What is the tag of the latest release of {project}?",
        "Which version of {project} was released last? Give its tag.",
        "Tell me the tag of the newest release of {project}.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project FROM projects p JOIN code_tags t ON t.project = p.id
            JOIN code_releases r ON r.tag = t.id GROUP BY 1 HAVING COUNT(*) > 1
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT t.name FROM projects p JOIN code_tags t ON t.project = p.id JOIN code_releases r ON r.tag = t.id
            WHERE p.path = ? ORDER BY r.moment DESC
        """
        newest, *others = (f"{tag}{OR}{tag.removeprefix('v')}" for tag in column(world, query, params["project"]))
        return [says(newest, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Releases")
        yield page.stop(next(iter(parsing.tags(page))))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Releases")
        yield page.stop(list(parsing.tags(page))[1])


class ReleaseDay(CodeTemplate):
    """Name the date of a release."""

    name, kind, difficulty = "code-release-day", "information", "easy"
    intents = (
        "On which day was {tag} of {project} released?",
        "When did release {tag} of {project} come out? Give the day.",
        "Tell me the day on which {project} {tag} was released.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project, t.name AS tag, DATE(r.moment) AS moment FROM projects p
            JOIN code_tags t ON t.project = p.id JOIN code_releases r ON r.tag = t.id
            WHERE p.id IN (SELECT project FROM code_tags GROUP BY 1 HAVING COUNT(*) BETWEEN 2 AND 8)
        """
        return unique_by(select(world, query), "moment")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT DATE(r.moment) FROM projects p JOIN code_tags t ON t.project = p.id
            JOIN code_releases r ON r.tag = t.id WHERE p.path = ? AND t.name {} ?
        """
        others = column(world, query.format("!="), params["project"], params["tag"])
        return [says(*column(world, query.format("="), params["project"], params["tag"]), others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Releases")
        while params["tag"] not in parsing.tags(page):
            yield page.click("link", "Next")
        yield page.stop(parsing.tags(page)[params["tag"]])


class ConfigSetting(CodeTemplate):
    """Name the value of a setting in a project's configuration file."""

    name, kind, difficulty = "code-setting", "information", "medium"
    intents = (
        "What is {setting} set to in config/default.yaml of {project}?",
        "Look into config/default.yaml of {project}: which value does {setting} have?",
        "Which value for {setting} stands in the file config/default.yaml of {project}?",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return [
            {"project": path, "setting": rng.choice([name for name in settings if name != "name"])}
            for path, content in self._files(world).items()
            if (settings := _settings(content))
        ]

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        settings = _settings(self._files(world)[params["project"]])
        right, name = settings[params["setting"]], settings.pop("name", "")
        return [says(right, others=[value for value in (*settings.values(), *_VALUES) if value not in (right, name)])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_file(page, _SETTINGS)
        yield page.stop(parsing.settings(page)[params["setting"]])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_file(page, _SETTINGS)
        settings = parsing.settings(page)
        right = settings[params["setting"]]
        yield page.stop(next(value for value in settings.values() if right not in value))

    def _files(self, world: World) -> dict[str, str]:
        query = """
            SELECT p.path, b.content FROM projects p JOIN code_files f ON f.branch = p.head
            JOIN code_blobs b ON b.id = f.blob WHERE f.path = ?
        """
        return {row["path"]: row["content"] for row in select(world, query, _SETTINGS)}


class RoleOf(CodeTemplate):
    """Name a member's role in a project."""

    name, kind, difficulty = "code-role-of", "information", "easy"
    intents = (
        "Which role does {member} have in the project {project}?",
        "What is the role of {member} among the members of {project}?",
        "Look up {member} among the members of {project}, and tell me the role.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT p.path AS project, a.name AS member FROM code_members m JOIN projects p ON p.id = m.project
            JOIN code_accounts a ON a.id = m.account WHERE a.id != 1 AND (SELECT COUNT(*) FROM roles r
            WHERE r.project = p.id AND r.account = a.id) = 1
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = """
            SELECT m.role FROM code_members m JOIN projects p ON p.id = m.project
            JOIN code_accounts a ON a.id = m.account WHERE p.path = ? AND a.name = ?
        """
        return [says(*column(world, query, params["project"], params["member"]), others=_ROLES)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.find_member(page, params["member"])
        yield page.stop(parsing.role(page, params["member"]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.stop("Developer or Maintainer")


class ProfileWebsite(CodeTemplate):
    """Name the website in a person's profile."""

    name, kind, difficulty = "code-website", "information", "easy"
    intents = (
        "What is the address of {person}'s website, according to the profile here?",
        "Find the profile of {person} and tell me the address of the website that it names.",
        "Which website does {person} name in their profile?",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return select(world, "SELECT name AS person FROM code_accounts WHERE website != '' AND id != 1")

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        website = world.value("SELECT website FROM code_accounts WHERE name = ?", params["person"])
        others = column(world, "SELECT website FROM code_accounts WHERE website NOT IN ('', ?) ORDER BY id", website)
        return [says(website.partition("://")[2], others=[other.partition("://")[2] for other in others])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_profile(page, params["person"])
        yield page.stop(page.find("link", re.compile(r"https?://.+")).name)


class FollowerCount(CodeTemplate):
    """Count the followers of a person."""

    name, kind, difficulty = "code-followers", "information", "easy"
    intents = (
        "How many people follow {person} here?",
        "How many followers does {person} have?",
        "Find the profile of {person} and tell me the number of followers.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT name AS person FROM code_accounts a WHERE id != 1
            AND (SELECT COUNT(*) FROM code_follows WHERE follows = a.id)
            != (SELECT COUNT(*) FROM code_follows WHERE account = a.id)
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        query = "SELECT COUNT(*) FROM code_follows f JOIN code_accounts a ON a.id = f.follows WHERE a.name = ?"
        return [says(world.value(query, params["person"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_profile(page, params["person"])
        yield page.stop(parsing.count(page, "Followers"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_profile(page, params["person"])
        yield page.stop(parsing.count(page, "Following"))


class CloneAddress(CodeTemplate):
    """Name the URL for cloning a project."""

    name, kind, difficulty = "code-clone-address", "information", "easy"
    intents = (
        "What is the address for cloning {project} with {way}?",
        "Tell me the {way} address from which {project} can be cloned.",
        "I want to clone {project} with {way}. Which address do I need?",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        return with_choices(select(world, "SELECT path AS project FROM projects"), rng, way=("SSH", "HTTP"))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        path = project(world, params["project"])["url_path"]
        addresses = {"SSH": f"git@code.test:{path}.git", "HTTP": f"http://code.test/{path}.git"}
        return [says(addresses[params["way"]], others=list(addresses.values()))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._open(page, params)
        yield page.stop(page.value(f"Clone with {params['way']}:"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._open(page, params)
        yield page.stop(page.value(f"Clone with {'HTTP' if params['way'] == 'SSH' else 'SSH'}:"))

    def _open(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from page.expand("Clone")


def _spellings(licence: str) -> str:
    """Return the spellings of a licence: "Apache-2.0", "Apache 2.0" and "Apache License 2.0"."""
    first, *rest = licence.split("-")
    spellings = (" ".join([first, *more, *rest]) for more in ((), ("License",), ("Licence",), ("License Version",)))
    return OR.join(dict.fromkeys((licence, *(spellings if rest else ()))))


def _settings(content: str) -> dict[str, str]:
    """Return the settings of a YAML file of one or two levels: {"port": "4048", "forecast.retries": "9"}."""
    found: dict[str, str] = {}
    above = ""
    for line in content.splitlines():
        match = re.fullmatch(r"( *)(\w+):(?: (.+))?", line)
        if match is not None:
            name = f"{above}.{match[2]}" if match[1] else match[2]
            above = above if match[1] else match[2]
            if match[3]:
                found[name] = match[3]
    return found


TEMPLATES: Sequence[CodeTemplate] = (
    ProjectLicence(),
    MostStarred(),
    CommitsBy(),
    CommitLines(),
    LatestRelease(),
    ReleaseDay(),
    ConfigSetting(),
    RoleOf(),
    ProfileWebsite(),
    FollowerCount(),
    CloneAddress(),
)

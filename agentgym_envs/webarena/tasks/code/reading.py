"""Questions about projects: their properties, members and files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says, says_first
from agentgym_envs.webarena.tasks.code import parsing, queries, steps
from agentgym_envs.webarena.tasks.code.queries import CodeTemplate, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, click, do, type_text
from agentgym_envs.webarena.tasks.template import Params

_ROLES = ("Guest", "Reporter", "Developer", "Maintainer", "Owner")
_SETTINGS = "config/default.yaml"
_VALUES = ("true", "false", "debug", "info", "warning", "error")
"""Possible values of the settings that are words."""


def _project_licence_expected(world: World, project: str) -> Says:
    every = queries.column(world, "SELECT DISTINCT licence FROM projects WHERE licence != '' ORDER BY licence")
    return says(_spellings(queries.project(world, project)["licence"]), others=[_spellings(one) for one in every])


project_licence = CodeTemplate(
    "code-licence",
    "information",
    "easy",
    intents=(
        "Under which licence is the project {project} published?",
        "What is the licence of {project}?",
        "Tell me which licence {project} has.",
    ),
    instances=rows("SELECT path AS project FROM projects WHERE licence != ''"),
    expected=_project_licence_expected,
    solution=[do(steps.open_project, "{project}"), answer(parsing.licence)],
    mistake=[answer("Either MIT or Apache-2.0 or BSD-3-Clause")],
)


def _most_starred_instances(world: World) -> list[Params]:
    topics = {t for listed in queries.column(world, "SELECT topics FROM projects") for t in listed.split(", ") if t}
    return [{"topic": topic} for topic in sorted(topics) if _is_clear(world, topic)]


def _most_starred_expected(world: World, topic: str) -> Says:
    best, *others = _ranked(world, topic)
    names = [row["name"] for row in others if row["name"] != best["name"]]
    return says(best["name"], best["stars"], others=names)


def _by_stars(page: PageReader) -> list[str]:
    """Return the projects of the page with their stars, the least starred first."""
    stars = parsing.star_counts(page)
    return [f"{name}, with {stars[name]} stars" for name in sorted(stars, key=lambda name: stars[name])]


def _is_clear(world: World, topic: str) -> bool:
    ranked = _ranked(world, topic)
    return 2 <= len(ranked) <= 10 and ranked[0]["stars"] > ranked[1]["stars"]


def _ranked(world: World, topic: str) -> list[dict[str, Any]]:
    query = """
        SELECT name, (SELECT COUNT(*) FROM code_stars WHERE project = p.id) AS stars FROM projects p
        WHERE ', ' || topics || ',' LIKE '%, ' || ? || ',%' ORDER BY stars DESC
    """
    return queries.select(world, query, topic)


most_starred = CodeTemplate(
    "code-most-starred",
    "information",
    "easy",
    intents=(
        "Which project with the topic {topic} has the most stars? Give its name and the number of its stars.",
        "Find the most starred project on the topic {topic}. What is it called, and how many stars does it have?",
        "Among the projects with the topic {topic}, which is starred most, and how often? Tell me name and number.",
    ),
    instances=_most_starred_instances,
    expected=_most_starred_expected,
    solution=[
        click("link", "Explore"),
        type_text("Topic", "{topic}", enter=True),
        answer(lambda page: _by_stars(page)[-1]),
    ],
    mistake=answer(lambda page: _by_stars(page)[0]),
)


def _commits_by_instances(world: World) -> list[Params]:
    query = """
        SELECT p.path AS project, a.name AS author, SUBSTR(c.moment, 1, 7) || '-01' AS month
        FROM code_commits c JOIN projects p ON p.head = c.branch JOIN code_accounts a ON a.id = c.author
        WHERE p.forked_from IS NULL AND c.moment > '2025-09' GROUP BY 1, 2, 3 HAVING COUNT(*) BETWEEN 2 AND 9
    """
    return [{**row, "month": queries.month(row["month"])} for row in queries.select(world, query)]


def _number_of_commits(world: World, project: str, author: str, month: str) -> Says:
    query = """
        SELECT COUNT(*) FROM code_commits c JOIN projects p ON p.head = c.branch
        JOIN code_accounts a ON a.id = c.author WHERE p.path = ? AND a.name = ? AND c.moment LIKE ? || '%'
    """
    return says(*queries.column(world, query, project, author, queries.month_of(month)))


def _count(page: PageReader, project: str, author: str, month: str) -> Steps[int]:
    yield from steps.open_project(page, project)
    return (yield from count_here(page, author, month))


def count_here(page: PageReader, author: str, month: str) -> Steps[int]:
    """Count the author's commits of the month in the project on the page."""
    yield from steps.open_filtered(page, "Commits", author=author)
    days = [day for day, _ in parsing.commits(page)]  # the newest first
    while queries.month_of(month) <= queries.stored(days[-1]) and page.has("link", "Next"):
        yield page.click("link", "Next")
        days += [day for day, _ in parsing.commits(page)]
    return sum(queries.stored(day).startswith(queries.month_of(month)) for day in days)


commits_by = CodeTemplate(
    "code-commits-by",
    "information",
    "medium",
    intents=(
        "How many commits did {author} make to the default branch of {project} in {month}?",
        "Count the commits of {author} on the default branch of {project} in {month}.",
        "On the default branch of {project}, how many commits of {month} are by {author}?",
    ),
    instances=_commits_by_instances,
    expected=_number_of_commits,
    solution=_count,
    mistake=[do(_count, "{project}", "{author}", "{month}"), answer(lambda found: found + 1)],
)


def _lines_added(world: World, project: str, message: str) -> Says:
    query = """
        SELECT c.additions FROM code_commits c JOIN projects p ON p.head = c.branch
        WHERE p.path = ? AND c.message = ?
    """
    return says(*queries.column(world, query, project, message))


commit_lines = CodeTemplate(
    "code-commit-lines",
    "information",
    "medium",
    intents=(
        'How many lines did the commit "{message}" on the default branch of {project} add?',
        'Find the commit "{message}" of {project} (default branch). How many lines were added by it?',
        'The commit "{message}" in {project}, on its default branch: how many additions does it have?',
    ),
    instances=rows(
        """
        SELECT p.path AS project, c.message FROM code_commits c JOIN projects p ON p.head = c.branch
        WHERE p.forked_from IS NULL AND c.additions > 2 AND c.additions != c.deletions
        AND c.message NOT LIKE '%"%' AND c.message NOT LIKE '%`%' AND c.moment > '2026-01'
        GROUP BY 1, 2 HAVING COUNT(*) = 1 AND (SELECT COUNT(*) FROM code_commits o JOIN code_branches b
        ON b.id = o.branch WHERE b.project = p.id AND o.message = c.message) = 1
        """
    ),
    expected=_lines_added,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_commit, "{message}"),
        answer(lambda page: parsing.lines_changed(page)[0]),
    ],
    mistake=answer(lambda page: parsing.lines_changed(page)[1]),
)


def _latest_release_expected(world: World, project: str) -> Says:
    query = """
        SELECT t.name FROM projects p JOIN code_tags t ON t.project = p.id JOIN code_releases r ON r.tag = t.id
        WHERE p.path = ? ORDER BY r.moment DESC
    """
    return says_first(f"{tag}{OR}{tag.removeprefix('v')}" for tag in queries.column(world, query, project))


latest_release = CodeTemplate(
    "code-latest-release",
    "information",
    "easy",
    intents=(
        "What is the tag of the latest release of {project}?",
        "Which version of {project} was released last? Give its tag.",
        "Tell me the tag of the newest release of {project}.",
    ),
    instances=rows(
        """
        SELECT p.path AS project FROM projects p JOIN code_tags t ON t.project = p.id
        JOIN code_releases r ON r.tag = t.id GROUP BY 1 HAVING COUNT(*) > 1
        """
    ),
    expected=_latest_release_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Releases"),
        answer(lambda page: next(iter(parsing.tags(page)))),
    ],
    mistake=answer(lambda page: list(parsing.tags(page))[1]),
)


def _releases(world: World) -> list[Params]:
    """Return releases on a day without others."""
    query = """
        SELECT p.path AS project, t.name AS tag, DATE(r.moment) AS moment FROM projects p
        JOIN code_tags t ON t.project = p.id JOIN code_releases r ON r.tag = t.id
        WHERE p.id IN (SELECT project FROM code_tags GROUP BY 1 HAVING COUNT(*) BETWEEN 2 AND 8)
    """
    return [*queries.unique_by(queries.select(world, query), "moment")]


def _release_day_expected(world: World, project: str, tag: str) -> Says:
    query = """
        SELECT DATE(r.moment) FROM projects p JOIN code_tags t ON t.project = p.id
        JOIN code_releases r ON r.tag = t.id WHERE p.path = ? AND t.name {} ?
    """
    others = queries.column(world, query.format("!="), project, tag)
    return says(*queries.column(world, query.format("="), project, tag), others=others)


def _find_day(page: PageReader, tag: str) -> Steps[str]:
    while tag not in parsing.tags(page):
        yield page.click("link", "Next")
    return parsing.tags(page)[tag]


release_day = CodeTemplate(
    "code-release-day",
    "information",
    "easy",
    intents=(
        "On which day was {tag} of {project} released?",
        "When did release {tag} of {project} come out? Give the day.",
        "Tell me the day on which {project} {tag} was released.",
    ),
    instances=_releases,
    expected=_release_day_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Releases"),
        do(_find_day, "{tag}"),
        answer(lambda found: found),
    ],
)


def _config_setting_expected(world: World, project: str, setting: str) -> Says:
    settings = _settings(_files(world)[project])
    right, name = settings[setting], settings.pop("name", "")
    return says(right, others=[value for value in (*settings.values(), *_VALUES) if value not in (right, name)])


def _other_setting(page: PageReader, setting: str) -> str:
    settings = parsing.settings(page)
    return next(value for value in settings.values() if settings[setting] not in value)


def _files(world: World) -> dict[str, str]:
    query = """
        SELECT p.path, b.content FROM projects p JOIN code_files f ON f.branch = p.head
        JOIN code_blobs b ON b.id = f.blob WHERE f.path = ?
    """
    return {row["path"]: row["content"] for row in queries.select(world, query, _SETTINGS)}


config_setting = CodeTemplate(
    "code-setting",
    "information",
    "medium",
    intents=(
        "What is {setting} set to in config/default.yaml of {project}?",
        "Look into config/default.yaml of {project}: which value does {setting} have?",
        "Which value for {setting} stands in the file config/default.yaml of {project}?",
    ),
    instances=lambda world, rng: [
        {"project": path, "setting": rng.choice([name for name in settings if name != "name"])}
        for path, content in _files(world).items()
        if (settings := _settings(content))
    ],
    expected=_config_setting_expected,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_file, _SETTINGS),
        answer(lambda page, setting: parsing.settings(page)[setting]),
    ],
    mistake=answer(_other_setting),
)


def _role(world: World, project: str, member: str) -> Says:
    query = """
        SELECT m.role FROM code_members m JOIN projects p ON p.id = m.project
        JOIN code_accounts a ON a.id = m.account WHERE p.path = ? AND a.name = ?
    """
    return says(*queries.column(world, query, project, member), others=_ROLES)


role_of = CodeTemplate(
    "code-role-of",
    "information",
    "easy",
    intents=(
        "Which role does {member} have in the project {project}?",
        "What is the role of {member} among the members of {project}?",
        "Look up {member} among the members of {project}, and tell me the role.",
    ),
    instances=rows(
        """
        SELECT p.path AS project, a.name AS member FROM code_members m JOIN projects p ON p.id = m.project
        JOIN code_accounts a ON a.id = m.account WHERE a.id != 1 AND (SELECT COUNT(*) FROM roles r
        WHERE r.project = p.id AND r.account = a.id) = 1
        """
    ),
    expected=_role,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.find_member, "{member}"),
        answer(lambda page, member: parsing.role(page, member)),
    ],
    mistake=[answer("Developer or Maintainer")],
)


def _profile_website_expected(world: World, person: str) -> Says:
    website = world.value("SELECT website FROM code_accounts WHERE name = ?", person)
    others = queries.column(
        world, "SELECT website FROM code_accounts WHERE website NOT IN ('', ?) ORDER BY id", website
    )
    return says(website.partition("://")[2], others=[other.partition("://")[2] for other in others])


profile_website = CodeTemplate(
    "code-website",
    "information",
    "easy",
    intents=(
        "What is the address of {person}'s website, according to the profile here?",
        "Find the profile of {person} and tell me the address of the website that it names.",
        "Which website does {person} name in their profile?",
    ),
    instances=rows("SELECT name AS person FROM code_accounts WHERE website != '' AND id != 1"),
    expected=_profile_website_expected,
    solution=[
        do(steps.open_profile, "{person}"),
        answer(lambda page: page.find("link", re.compile(r"https?://.+")).name),
    ],
)

follower_count = CodeTemplate(
    "code-followers",
    "information",
    "easy",
    intents=(
        "How many people follow {person} here?",
        "How many followers does {person} have?",
        "Find the profile of {person} and tell me the number of followers.",
    ),
    instances=rows(
        """
        SELECT name AS person FROM code_accounts a WHERE id != 1
        AND (SELECT COUNT(*) FROM code_follows WHERE follows = a.id)
        != (SELECT COUNT(*) FROM code_follows WHERE account = a.id)
        """
    ),
    expected=lambda world, person: says(
        world.value(
            "SELECT COUNT(*) FROM code_follows f JOIN code_accounts a ON a.id = f.follows WHERE a.name = ?", person
        )
    ),
    solution=[do(steps.open_profile, "{person}"), answer(lambda page: parsing.count(page, "Followers"))],
    mistake=answer(lambda page: parsing.count(page, "Following")),
)


def _clone_address_expected(world: World, project: str, way: str) -> Says:
    path = queries.project(world, project)["url_path"]
    addresses = {"SSH": f"git@code.test:{path}.git", "HTTP": f"http://code.test/{path}.git"}
    return says(addresses[way], others=list(addresses.values()))


def _open(page: PageReader, project: str) -> Iterator[str]:
    yield from steps.open_project(page, project)
    yield from page.expand("Clone")


clone_address = CodeTemplate(
    "code-clone-address",
    "information",
    "easy",
    intents=(
        "What is the address for cloning {project} with {way}?",
        "Tell me the {way} address from which {project} can be cloned.",
        "I want to clone {project} with {way}. Which address do I need?",
    ),
    instances=rows("SELECT path AS project FROM projects", way=("SSH", "HTTP")),
    expected=_clone_address_expected,
    solution=[do(_open, "{project}"), answer(lambda page, way: page.value(f"Clone with {way}:"))],
    mistake=answer(lambda page, way: page.value(f"Clone with {'HTTP' if way == 'SSH' else 'SSH'}:")),
)


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

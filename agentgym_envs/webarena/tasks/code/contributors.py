"""Questions about the contributors to projects, their commits and the members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.code import parsing, queries, steps
from agentgym_envs.webarena.tasks.code.queries import MAINTAINER, CodeTemplate
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, do
from agentgym_envs.webarena.tasks.template import Params


def _contributors(world: World, path: str) -> list[dict[str, Any]]:
    """Return the contributors to a project's default branch, those with the most commits first."""
    query = """SELECT a.*, COUNT(*) AS n FROM code_commits c JOIN code_accounts a ON a.id = c.author
        WHERE c.branch = ? GROUP BY a.id ORDER BY n DESC"""
    return queries.select(world, query, queries.project(world, path)["head"])


def _clear(world: World, places: int) -> list[str]:
    """Return the projects whose first contributors have different numbers of commits, also from the next one."""
    found = []
    for path in queries.column(world, "SELECT path FROM projects WHERE forked_from IS NULL"):
        counts = [row["n"] for row in _contributors(world, path)]
        if len(counts) > places and len(set(counts[: places + 1])) == places + 1:
            found.append(str(path))
    return found


_FACTS = {"full name": "name", "user name": "user", "e-mail address": "email", "location": "location"}


def _top_facts(world: World) -> Iterator[Params]:
    for path in _clear(world, 1):
        best = _contributors(world, path)[0]
        yield from ({"project": path, "fact": fact} for fact, column in _FACTS.items() if best[column])


def _top_fact(world: World, project: str, fact: str) -> Says:
    best, *rest = _contributors(world, project)
    column = _FACTS[fact]
    return says(best[column], others=[row[column] for row in rest if row[column] and row[column] != best[column]])


def _read_top(page: PageReader, project: str, fact: str, place: int = 0) -> Steps[str]:
    yield from steps.open_project(page, project)
    return (yield from read_top_here(page, fact, place))


def read_top_here(page: PageReader, fact: str, place: int = 0) -> Steps[str]:
    """Read a fact about the contributor with the most commits, or one behind, of the project on the page."""
    yield from steps.open_section(page, "Contributors")
    name = page.table()[place]["Name"]
    yield page.click("link", name)
    user = page.search(r"^@(\S+) ·")[0]
    line = next((text for text in page.texts() if "@mail.test" in text), "")
    parts = line.split(" · ")
    email = next(index for index, part in enumerate(parts) if "@" in part)
    return {
        "full name": name,
        "user name": user,
        "e-mail address": parts[email].strip(" ·"),
        "location": parts[email - 1],
    }[fact]


top_contributor = CodeTemplate(
    "code-top-contributor",
    "information",
    "medium",
    since=2,
    intents=(
        "Tell me the {fact} of the contributor with the most commits to the default branch of {project}.",
        "Who has made the most contributions, in terms of commits, to the project {project}? I need the {fact}.",
        "Look up the person with the largest number of commits in {project}, and give me the {fact}.",
    ),
    instances=_top_facts,
    expected=_top_fact,
    solution=_read_top,
    mistake=lambda page, project, fact: _read_top(page, project, fact, 1),
)


def _top_three(world: World, project: str) -> Says:
    names = [row["name"] for row in _contributors(world, project)]
    return says(*names[:3], others=names[3:])


top_three = CodeTemplate(
    "code-top-three",
    "information",
    "easy",
    since=2,
    intents=(
        "List the names of the top 3 contributors to {project}, ranked by their numbers of commits.",
        "Which three people have made the most commits to {project}?",
        "Name the three contributors with the most commits in {project}.",
    ),
    instances=lambda world: [{"project": path} for path in _clear(world, 3)],
    expected=_top_three,
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Contributors"),
        answer(lambda page: ", ".join(row["Name"] for row in page.table()[:3])),
    ],
    mistake=answer(lambda page: ", ".join(row["Name"] for row in page.table()[1:4])),
)


def _busy_days(world: World) -> Iterator[Params]:
    query = """SELECT p.path AS project, a.name AS author, DATE(c.moment) AS day, COUNT(*) AS n FROM code_commits c
        JOIN projects p ON p.head = c.branch JOIN code_accounts a ON a.id = c.author
        WHERE p.forked_from IS NULL AND c.moment > '2025-12' GROUP BY 1, 2, 3"""
    for row in queries.select(world, query):
        if row.pop("n") > 1 or int(row["day"][-2:]) % 4 == 0:
            yield {**row, "day": _shown_day(row["day"])}


def _shown_day(stored: str) -> str:
    months = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ]
    return f"{months[int(stored[5:7]) - 1]} {int(stored[8:])}, {stored[:4]}"


def _commits_on(world: World, project: str, author: str, day: str) -> Says:
    query = """SELECT COUNT(*) FROM code_commits c JOIN projects p ON p.head = c.branch
        JOIN code_accounts a ON a.id = c.author WHERE p.path = ? AND a.name = ? AND DATE(c.moment) = ?"""
    return says(*queries.column(world, query, project, author, queries.stored(day)))


def _count_on(page: PageReader, project: str, author: str, day: str) -> Steps[int]:
    yield from steps.open_project(page, project)
    yield from steps.open_filtered(page, "Commits", author=author)
    days = [queries.stored(one) for one, _ in parsing.commits(page)]
    while queries.stored(day) <= days[-1] and page.has("link", "Next"):
        yield page.click("link", "Next")
        days += [queries.stored(one) for one, _ in parsing.commits(page)]
    return days.count(queries.stored(day))


commits_on_day = CodeTemplate(
    "code-commits-on-day",
    "information",
    "medium",
    since=2,
    intents=(
        "How many commits did {author} make to the default branch of {project} on {day}?",
        "Count the commits by {author} on {day} in {project} (default branch).",
        "On {day}, how many times did {author} commit to the default branch of {project}?",
    ),
    instances=choose(_busy_days, sample=60),
    expected=_commits_on,
    solution=_count_on,
    mistake=[do(_count_on, "{project}", "{author}", "{day}"), answer(lambda found: found + 1)],
)


def _others(world: World, project: str) -> list[str]:
    query = """SELECT a.user FROM code_members m JOIN code_accounts a ON a.id = m.account
        WHERE m.project = ? AND a.id <> 1 ORDER BY a.id"""
    return [row[0] for row in world.rows(query, queries.project(world, project)["id"])]


def _with_access(world: World, project: str) -> Says:
    wanted = _others(world, project)
    every = [row[0] for row in world.rows("SELECT user FROM code_accounts WHERE id <> 1")]
    return says(*wanted, others=[user for user in every if user not in wanted and user not in project.lower()])


def _read_members(page: PageReader, project: str) -> Steps[list[str]]:
    yield from steps.open_project(page, project)
    yield from steps.open_section(page, "Members")
    found = [row["Name"].split("@")[1].split()[0] for row in page.table()]
    while page.has("link", "Next"):
        yield page.click("link", "Next")
        found += [row["Name"].split("@")[1].split()[0] for row in page.table()]
    return found


who_has_access = CodeTemplate(
    "code-who-has-access",
    "information",
    "easy",
    since=2,
    intents=(
        "Who else has access to my project {project}? Give me their user names.",
        "List the user names of all members of {project} except myself.",
        "With which other users do I share {project}? Their user names will do.",
    ),
    instances=lambda world: [
        {"project": path}
        for path in queries.column(world, f"SELECT path FROM projects WHERE level > {MAINTAINER} AND namespace = 1")
        if 0 < len(_others(world, path)) < 15
    ],
    expected=_with_access,
    solution=[
        do(_read_members, "{project}"),
        answer(lambda page, found: ", ".join(user for user in found if user != _me(page))),
    ],
    mistake=answer(lambda found: ", ".join(found[:1])),
)


def _me(page: PageReader) -> str:
    """Return the user name of the agent, which is in the menu of the account."""
    name = next(text for text in page.texts() if text.startswith("Account of ")).removeprefix("Account of ")
    return next(row["Name"].split("@")[1].split()[0] for row in page.table() if row["Name"].startswith(name))

"""Tasks over several people or projects, and changes of files that have to be found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.code import parsing, phrases, queries, steps
from agentgym_envs.webarena.tasks.code.building import next_id, project_with_readme_added
from agentgym_envs.webarena.tasks.code.queries import MAINTAINER, ORIGIN, CodeTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import do, given
from agentgym_envs.webarena.tasks.template import Params

_ROLES = ("Reporter", "Developer", "Maintainer")


def _people(world: World) -> list[str]:
    return [row[0] for row in world.rows("SELECT name FROM code_accounts WHERE id != 1 ORDER BY id")]


def _new_teams(world: World, rng: Random) -> Iterator[Params]:
    for name in phrases.PROJECTS:
        one, two = rng.sample(_people(world), 2)
        yield {"name": name, "one": one, "two": two, "role": rng.choice(_ROLES)}


def _team(world: World, name: str, one: str, two: str, role: str) -> list[Expected]:
    project = next_id(world, "code_projects")
    members = [
        Added("code_members", {"project": project, "account": queries.account(world, person), "role": role})
        for person in (one, two)
    ]
    return [*project_with_readme_added(world, name, "private"), *members]


team_of_two = CodeTemplate(
    "code-team-of-two",
    "change",
    "hard",
    since=2,
    intents=(
        'Create a new private project "{name}" under my own name, with a README, and add {one} and {two} as members, '
        "each with the role {role}.",
        'Start the private project "{name}" of my own; it begins with a README. Then invite {one} and {two} as {role}.',
        'I want to work with {one} and {two} on "{name}", a new private project of mine with a README. Create it, and '
        "give both the role {role}.",
    ),
    instances=_new_teams,
    expected=_team,
    solution=[
        do(steps.create_project, "{name}", "private"),
        do(steps.invite, "{one}", "{role}"),
        do(steps.invite, "{two}", "{role}"),
    ],
    mistake=[do(steps.create_project, "{name}", "private"), do(steps.invite, "{one}", "{role}")],
)

_GROUPS = ("n-lab", "webagents", "coding-friends", "crew", "night-owls", "x-lab", "tea-club", "river-watch")


def _new_groups(world: World, rng: Random) -> Iterator[Params]:
    for group in _GROUPS:
        for _ in range(2):
            one, two, three = rng.sample(_people(world), 3)
            yield {"group": group, "one": one, "two": two, "three": three}


def _group(world: World, group: str, one: str, two: str, three: str) -> list[Expected]:
    number = next_id(world, "code_namespaces")
    found: list[Expected] = [
        Added("code_namespaces", {"id": number, "name": group, "account": None}),
        Added("code_group_members", {"namespace": number, "account": 1, "role": "Owner"}),
    ]
    for person in (one, two, three):
        row = {"namespace": number, "account": queries.account(world, person), "role": "Developer"}
        found.append(Added("code_group_members", row))
    return found


def _make_group(page: PageReader, group: str, people: Sequence[str]) -> Iterator[str]:
    yield page.goto(f"{ORIGIN}/groups")
    yield page.click("link", "New group")
    yield page.type("Group name", group)
    yield page.click("button", "Create group")
    yield page.click("link", re.compile(r"Members(?: \(\d+\))?"))
    for person in people:
        yield from page.expand("Invite a member")
        yield page.type(re.compile(r"User name.*"), person)
        yield page.choose("Role", "Developer")
        yield page.click("button", "Invite")


new_group = CodeTemplate(
    "code-new-group",
    "change",
    "hard",
    since=2,
    intents=(
        'Create a new group "{group}" with the members {one}, {two} and {three}, each as a Developer.',
        'Make a group called "{group}", and add {one}, {two} and {three} to it as developers.',
        'I need a group "{group}" in which {one}, {two} and {three} have the role Developer.',
    ),
    instances=_new_groups,
    expected=_group,
    solution=[do(_make_group, "{group}", given(lambda one, two, three: (one, two, three)))],
    mistake=[do(_make_group, "{group}", given(lambda one, two: (one, two)))],
)


def _unfollowed(world: World, rng: Random) -> Iterator[Params]:
    followed = "SELECT follows FROM code_follows WHERE account = 1"
    query = f"SELECT name FROM code_accounts WHERE id != 1 AND id NOT IN ({followed})"
    names = [row[0] for row in world.rows(query)]
    for _ in range(30):
        one, two, three = rng.sample(names, 3)
        yield {"one": one, "two": two, "three": three}


def _follow(page: PageReader, *people: str) -> Iterator[str]:
    for person in people:
        yield from steps.open_profile(page, person)
        yield page.click("button", "Follow")


follow_three = CodeTemplate(
    "code-follow-three",
    "change",
    "hard",
    since=2,
    intents=(
        "Follow {one}, {two} and {three} here.",
        "I want to see what {one}, {two} and {three} are doing. Follow all three.",
        "Add {one}, {two} and {three} to the people whom I follow.",
    ),
    instances=_unfollowed,
    expected=lambda world, one, two, three: [
        Added("code_follows", {"account": 1, "follows": queries.account(world, name)}) for name in (one, two, three)
    ],
    solution=[do(_follow, "{one}", "{two}", "{three}")],
    mistake=[do(_follow, "{one}", "{two}")],
)


def _by_stars(world: World) -> list[dict[str, Any]]:
    """Return all projects in the list of projects, the most starred first."""
    query = """SELECT p.id, p.path, (SELECT COUNT(*) FROM code_stars s WHERE s.project = p.id) AS stars,
        p.id IN (SELECT project FROM code_stars WHERE account = 1) AS mine FROM projects p ORDER BY stars DESC"""
    return queries.select(world, query)


def _clear_tops(world: World) -> Iterator[Params]:
    rows = _by_stars(world)
    for count in range(2, 9):
        if rows[count - 1]["stars"] > rows[count]["stars"] and not all(row["mine"] for row in rows[:count]):
            yield {"count": count}


def _star_top(page: PageReader, count: int) -> Iterator[str]:
    yield page.click("link", "Explore")
    for name in list(parsing.star_counts(page))[:count]:
        yield page.click("link", name)
        if page.has("button", "Star"):
            yield page.click("button", "Star")
        yield page.click("link", "Explore") if page.has("link", "Explore") else page.goto(f"{ORIGIN}/explore")


star_top = CodeTemplate(
    "code-star-top",
    "change",
    "hard",
    since=2,
    intents=(
        "Star the {count} most starred projects here, as far as I have not starred them yet.",
        "Look up which {count} projects have the most stars of all, and see to it that I have starred each of them.",
        "All of the top {count} projects by stars should be among those that I have starred. Add the missing ones.",
    ),
    instances=_clear_tops,
    expected=lambda world, count: [
        Added("code_stars", {"account": 1, "project": row["id"]}) for row in _by_stars(world)[:count] if not row["mine"]
    ],
    solution=[do(_star_top, given(lambda count: count))],
    mistake=[do(_star_top, given(lambda: 10))],
)


def _forkable_groups(world: World) -> list[Params]:
    """Return groups with two or three visible projects that the agent has not yet under these names."""
    query = """SELECT n.name AS "group" FROM projects p JOIN code_namespaces n ON n.id = p.namespace
        WHERE n.account IS NULL GROUP BY n.id HAVING COUNT(*) BETWEEN 2 AND 3
        AND SUM(EXISTS (SELECT 1 FROM code_projects o WHERE o.namespace = 1 AND o.slug = p.slug)) = 0"""
    return [*queries.select(world, query)]


def _of_group(world: World, group: str) -> list[dict[str, Any]]:
    query = "SELECT p.* FROM projects p JOIN code_namespaces n ON n.id = p.namespace WHERE n.name = ? ORDER BY p.id"
    return queries.select(world, query, group)


def _forked(world: World, group: str) -> Iterator[Expected]:
    for found in _of_group(world, group):
        yield Added("code_projects", {"namespace": 1, "forked_from": found["id"], "name": found["name"]})
        yield Added("code_members", {"account": 1, "role": "Owner"})
        yield Added("code_branches", {"name": found["default_branch"], "origin": found["head"]})


def _fork_all(page: PageReader, group: str, most: int = 9) -> Iterator[str]:
    yield page.goto(f"{ORIGIN}/groups")
    yield page.click("link", group)
    address, own = page.url, re.compile(rf"{re.escape(group)} / .+")
    for name in [e.name for e in page.all("link", own)][:most]:
        yield page.goto(address)
        yield page.click("link", name)
        yield page.click("link", "Fork")
        yield page.click("button", "Fork project")


fork_all = CodeTemplate(
    "code-fork-all",
    "change",
    "hard",
    since=2,
    intents=(
        "Fork all projects of the group {group} into my own namespace, under their names.",
        "I need my own fork of every project that I can see in the group {group}.",
        "Make a fork of each of the projects in {group}, in my namespace and with the same name.",
    ),
    instances=_forkable_groups,
    expected=_forked,
    free=("code_files",),
    solution=[do(_fork_all, "{group}")],
    mistake=[do(_fork_all, "{group}", 1)],
)

_LICENCES = ("MIT", "Apache-2.0", "GPL-3.0-or-later", "BSD-3-Clause", "MPL-2.0")
_SPDX = re.compile(r"SPDX-License-Identifier: (\S+)")


def _file(world: World, project: str, path: str) -> str:
    query = "SELECT b.content FROM code_files f JOIN code_blobs b ON b.id = f.blob WHERE f.branch = ? AND f.path = ?"
    return str(world.value(query, queries.project(world, project)["head"], path))


def _changed_file(world: World, project: str, path: str, content: str) -> list[Expected]:
    head = queries.project(world, project)["head"]
    blob = next_id(world, "code_blobs")
    return [
        Added("code_blobs", {"id": blob, "content": content}),
        Updated("code_files", {"branch": head, "path": path}, {"blob": blob}),
        Added("code_commits", {"branch": head, "author": 1}),
    ]


def _maintained(world: World, path: str) -> list[str]:
    query = f"SELECT path FROM projects WHERE level >= {MAINTAINER} AND NOT archived ORDER BY id"
    found = [str(one) for one in queries.column(world, query)]
    files = "SELECT 1 FROM code_files WHERE branch = ? AND path = ?"
    return [one for one in found if world.value(files, queries.project(world, one)["head"], path)]


def _licences(world: World, rng: Random) -> Iterator[Params]:
    for path in _maintained(world, "LICENSE"):
        match = _SPDX.search(_file(world, path, "LICENSE"))
        if match:
            yield from ({"project": path, "licence": one} for one in _LICENCES if one != match[1])


def _edit(page: PageReader, project: str, file: str, old: re.Pattern[str], new: str) -> Iterator[str]:
    """Replace the first match of a pattern in a file of the default branch."""
    yield from steps.open_project(page, project)
    yield from edit_here(page, file, old, new)


def edit_here(page: PageReader, file: str, old: re.Pattern[str], new: str) -> Iterator[str]:
    """Replace the first match of a pattern in a file of the project on the page."""
    yield from steps.open_file(page, file)
    yield page.click("link", "Edit")
    text = page.find("textbox", "Content of the file").properties.get("value", "")
    yield page.type("Content of the file", old.sub(lambda _: new, text, count=1))
    yield page.click("button", "Commit changes")


change_licence = CodeTemplate(
    "code-change-licence",
    "change",
    "medium",
    since=2,
    intents=(
        "Put {project} under the licence {licence}: in its licence file on the default branch, replace only the SPDX "
        "identifier.",
        "Make the licence of {project} {licence}. Its licence file names the old one by its SPDX identifier; correct "
        "that, and nothing else, on the default branch.",
        "Change the SPDX identifier in the licence file of {project} (default branch) to {licence}, and leave the rest "
        "of the file as it is.",
    ),
    instances=_licences,
    expected=lambda world, project, licence: _changed_file(
        world,
        project,
        "LICENSE",
        _SPDX.sub(f"SPDX-License-Identifier: {licence}", _file(world, project, "LICENSE"), count=1),
    ),
    solution=[
        do(
            _edit,
            "{project}",
            "LICENSE",
            given(lambda: _SPDX),
            given(lambda licence: f"SPDX-License-Identifier: {licence}"),
        )
    ],
)

_HEADINGS = ("GIVE ME SPACE", "Welcome", "Hello", "Not a guide", "Read me twice", "Title wanted")
FIRST_LINE = re.compile(r"\A# .*")


def _titles(world: World, rng: Random) -> Iterator[Params]:
    for path in _maintained(world, "docs/guide.md"):
        if FIRST_LINE.search(_file(world, path, "docs/guide.md")):
            yield from ({"project": path, "title": title} for title in rng.sample(_HEADINGS, 3))


change_title = CodeTemplate(
    "code-change-guide-title",
    "change",
    "medium",
    since=2,
    intents=(
        'Update the title of the guide in {project} to "{title}": the first heading of its file, on the default '
        "branch. Leave the rest as it is.",
        'Somewhere in {project} there is a guide. Change the heading at its top to "{title}", on the default branch, '
        "and nothing else.",
        'The guide of {project} should begin with the heading "{title}" instead of its present one. Find its file, and '
        "commit that to the default branch.",
    ),
    instances=_titles,
    expected=lambda world, project, title: _changed_file(
        world, project, "docs/guide.md", FIRST_LINE.sub(f"# {title}", _file(world, project, "docs/guide.md"), count=1)
    ),
    solution=[do(_edit, "{project}", "docs/guide.md", given(lambda: FIRST_LINE), given(lambda title: f"# {title}"))],
)

_CONDITIONS = ("more than 20 stars", "less than 5 stars", "no stars")


def _meets(stars: int, condition: str) -> bool:
    return {"more": stars > 20, "less": stars < 5, "no": stars == 0}[condition.split()[0]]


def _mine(world: World) -> list[dict[str, Any]]:
    query = """SELECT path, (SELECT COUNT(*) FROM code_stars s WHERE s.project = p.id) AS stars FROM projects p
        WHERE level > 0 ORDER BY id"""
    return queries.select(world, query)


def _starred_mine(world: World, condition: str) -> Says:
    found = _mine(world)
    wanted = [row["path"] for row in found if _meets(row["stars"], condition)]
    return says(*wanted, others=[row["path"] for row in found if row["path"] not in wanted])


def _conditions(world: World) -> list[Params]:
    found = _mine(world)
    return [{"condition": one} for one in _CONDITIONS if any(_meets(row["stars"], one) for row in found)]


def _read_mine(page: PageReader, condition: str) -> Steps[str]:
    stars = parsing.star_counts(page)
    while page.has("link", "Next"):
        yield page.click("link", "Next")
        stars |= parsing.star_counts(page)
    return "\n".join(name for name, count in stars.items() if _meets(count, condition))


def _read_every(page: PageReader) -> Steps[str]:
    yield from _read_mine(page, "no stars")
    return "\n".join(parsing.star_counts(page))


contributed_with_stars = CodeTemplate(
    "code-mine-with-stars",
    "information",
    "easy",
    since=2,
    intents=(
        "Tell me the full names (owner / project) of the projects of which I am a member and that have {condition}.",
        "Which projects in the list of my projects have {condition}? Give their full names, with the owner.",
        "Look through all projects to which I contribute, and name those with {condition}, in the form owner / "
        "project.",
    ),
    instances=_conditions,
    expected=_starred_mine,
    solution=_read_mine,
    mistake=lambda page: _read_every(page),
)

"""New projects and forks, their members and settings."""

from __future__ import annotations

import re

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.state import Added, Columns, Expected, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.code import phrases, queries, steps
from agentgym_envs.webarena.tasks.code.queries import MAINTAINER, ORIGIN, CodeTemplate, rows
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.steps import click, do, given, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult

_MAINTAINED = f"level >= {MAINTAINER} AND NOT archived"


def _fork_project_expected(world: World, project: str, visibility: str) -> ExpectedResult:
    found = queries.project(world, project)
    files = world.value("SELECT COUNT(*) FROM code_files WHERE branch = ?", found["head"])
    values = {"forked_from": found["id"], "name": found["name"], "visibility": visibility}
    branch = {"name": found["default_branch"], "origin": found["head"]}
    return [
        *project_added(world, values, branch),
        Added("code_files", {"branch": next_id(world, "code_branches")}, files),
    ]


fork_project = CodeTemplate(
    "code-fork",
    "change",
    "medium",
    intents=(
        "Fork the project {project} into my own namespace as a {visibility} project, under the same name.",
        "Make a fork of {project} under my own name. It keeps its name, and is to be {visibility}.",
        "I need my own {visibility} fork of {project}, with the same name as the original.",
    ),
    instances=rows(
        """
        SELECT path AS project FROM projects p WHERE namespace != 1
        AND NOT EXISTS (SELECT 1 FROM code_projects WHERE namespace = 1 AND slug = p.slug)
        """,
        visibility=("private", "public"),
    ),
    expected=_fork_project_expected,
    solution=[
        do(steps.open_project, "{project}"),
        click("link", "Fork"),
        click("radio", given(lambda visibility: re.compile(rf"{visibility}:.*", re.IGNORECASE))),
        click("button", "Fork project"),
    ],
)

new_project = CodeTemplate(
    "code-new-project",
    "change",
    "medium",
    records=True,
    intents=(
        'Create a new {visibility} project named "{name}" under my own name, with a README.',
        'I need a project of my own called "{name}". Make it {visibility}, and start it with a README.',
        'Start the {visibility} project "{name}" in my namespace. A README is to be in it from the beginning.',
    ),
    instances=choose(
        lambda: [{"name": name} for name in phrases.PROJECTS], rounds=2, visibility=("private", "internal", "public")
    ),
    expected=lambda world, visibility, name: [
        *project_with_readme_added(world, name, visibility),
        Requested(f"{ORIGIN}/projects", method="POST", posted={"name": name}),
    ],
    solution=[do(steps.create_project, "{name}", "{visibility}")],
)

new_team = CodeTemplate(
    "code-new-team",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Create a new private project named "{name}" under my own name, with a README, and invite {person} as {role}.',
        'Start a private project "{name}" of my own that has a README. Then make {person} a {role} of it.',
        'I want to work with {person} on a new private project of mine, "{name}", which begins with a README. '
        "Create it and invite them as {role}.",
    ),
    instances=rows(
        "SELECT name AS person FROM code_accounts WHERE id != 1",
        name=phrases.PROJECTS,
        role=("Reporter", "Developer", "Maintainer"),
    ),
    expected=lambda world, name, person, role: [
        *project_with_readme_added(world, name, "private"),
        Added(
            "code_members",
            {"project": next_id(world, "code_projects"), "account": queries.account(world, person), "role": role},
        ),
    ],
    solution=[do(steps.create_project, "{name}", "private"), do(steps.invite, "{person}", "{role}")],
    mistake=[do(steps.create_project, "{name}", "private")],
)

invite_member = CodeTemplate(
    "code-invite",
    "change",
    "medium",
    intents=(
        "Invite {person} to the project {project} as {role}.",
        "Add {person} to the members of {project}, with the role {role}.",
        "Make {person} a {role} of the project {project}.",
    ),
    instances=rows(
        f"""
        SELECT p.path AS project, a.name AS person FROM projects p JOIN code_accounts a WHERE {_MAINTAINED}
        AND NOT EXISTS (SELECT 1 FROM roles r WHERE r.project = p.id AND r.account = a.id)
        """,
        sample=60,
        role=("Guest", "Reporter", "Developer", "Maintainer"),
    ),
    expected=lambda world, person, project, role: Added(
        "code_members",
        {"project": queries.project(world, project)["id"], "account": queries.account(world, person), "role": role},
    ),
    solution=[do(steps.open_project, "{project}"), do(steps.invite, "{person}", "{role}")],
)

remove_member = CodeTemplate(
    "code-dismiss",
    "change",
    "medium",
    intents=(
        "Remove {person} from the members of {project}.",
        "{person} no longer works on {project}. Take them off its members.",
        "End the membership of {person} in the project {project}.",
    ),
    instances=rows(
        f"""
        SELECT p.path AS project, a.name AS person FROM projects p JOIN code_members m ON m.project = p.id
        JOIN code_accounts a ON a.id = m.account WHERE {_MAINTAINED} AND a.id != 1 AND m.role != 'Owner'
        """
    ),
    expected=lambda world, person, project: Removed(
        "code_members", {"project": queries.project(world, project)["id"], "account": queries.account(world, person)}
    ),
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.find_member, "{person}"),
        click("button", "Remove {person}"),
        click("button", "Remove"),
    ],
)

describe_project = CodeTemplate(
    "code-describe",
    "change",
    "medium",
    intents=(
        'Change the description of the project {project} to "{text}".',
        'The project {project} is to be described as "{text}". Change its description.',
        'In the settings of {project}, make "{text}" the description.',
    ),
    instances=rows(f"SELECT path AS project FROM projects WHERE {_MAINTAINED}", rounds=4, text=phrases.DESCRIPTIONS),
    expected=lambda world, project, text: [
        Updated("code_projects", {"id": queries.project(world, project)["id"]}, {"description": text}),
        PageHolds(queries.address(world, project), "document.querySelector('main').innerText", (text,)),
    ],
    solution=[
        do(steps.open_project, "{project}"),
        do(steps.open_section, "Settings"),
        type_text("Project description", "{text}"),
        click("button", "Save changes"),
    ],
)


def project_with_readme_added(world: World, name: str, visibility: str) -> list[Expected]:
    """Return the rows that a new project with a README adds."""
    branch = next_id(world, "code_branches")
    return [
        *project_added(
            world, {"forked_from": None, "name": name, "visibility": visibility}, {"name": "main", "origin": None}
        ),
        Added("code_files", {"branch": branch, "path": "README.md"}),
        Added("code_blobs", {"content": re.compile(rf"# {name}\b.*", re.DOTALL)}),
        Added("code_commits", {"branch": branch, "author": 1}),
    ]


def project_added(world: World, values: Columns, branch: Columns) -> list[Expected]:
    """Return the rows of a new project in the agent's namespace and its branch."""
    number = next_id(world, "code_projects")
    return [
        Added("code_projects", {"id": number, "namespace": 1, **values}),
        Added("code_members", {"project": number, "account": 1, "role": "Owner"}),
        Added("code_branches", {"id": next_id(world, "code_branches"), "project": number, **branch}),
    ]


def next_id(world: World, table: str) -> int:
    """Return the next id of a table."""
    return int(world.value(f"SELECT MAX(id) + 1 FROM {table}"))

"""New projects and forks, their members and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.network import Requested
from agentgym_envs.webarena.evaluators.state import Added, Columns, Expected, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.code import phrases, steps
from agentgym_envs.webarena.tasks.code.queries import (
    MAINTAINER,
    ORIGIN,
    CodeTemplate,
    account,
    address,
    project,
    select,
    with_choices,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_MAINTAINED = f"level >= {MAINTAINER} AND NOT archived"


class ForkProject(CodeTemplate):
    """Fork a project into the agent's namespace."""

    name, kind, difficulty = "code-fork", "change", "medium"
    intents = (
        "Fork the project {project} into my own namespace as a {visibility} project, under the same name.",
        "Make a fork of {project} under my own name. It keeps its name, and is to be {visibility}.",
        "I need my own {visibility} fork of {project}, with the same name as the original.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = """
            SELECT path AS project FROM projects p WHERE namespace != 1
            AND NOT EXISTS (SELECT 1 FROM code_projects WHERE namespace = 1 AND slug = p.slug)
        """
        return with_choices(select(world, query), rng, visibility=("private", "public"))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        found = project(world, params["project"])
        files = world.value("SELECT COUNT(*) FROM code_files WHERE branch = ?", found["head"])
        values = {"forked_from": found["id"], "name": found["name"], "visibility": params["visibility"]}
        branch = {"name": found["default_branch"], "origin": found["head"]}
        return [
            changed(
                *_new_project(world, values, branch),
                Added("code_files", {"branch": _next_id(world, "code_branches")}, files),
            )
        ]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield page.click("link", "Fork")
        yield page.click("radio", re.compile(rf"{params['visibility']}:.*", re.IGNORECASE))
        yield page.click("button", "Fork project")
        yield page.stop()


class NewProject(CodeTemplate):
    """Create an empty project."""

    name, kind, difficulty = "code-new-project", "change", "medium"
    records = True
    intents = (
        'Create a new {visibility} project named "{name}" under my own name, with a README.',
        'I need a project of my own called "{name}". Make it {visibility}, and start it with a README.',
        'Start the {visibility} project "{name}" in my namespace. A README is to be in it from the beginning.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        names = [{"name": name} for name in phrases.PROJECTS]
        return with_choices(names * 2, rng, visibility=("private", "internal", "public"))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        made = _new_project_with_readme(world, params["name"], params["visibility"])
        return [changed(*made), Requested(f"{ORIGIN}/projects", method="POST", posted={"name": params["name"]})]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.create_project(page, params["name"], params["visibility"])
        yield page.stop()


class NewTeam(CodeTemplate):
    """Create a project and invite a member."""

    name, kind, difficulty = "code-new-team", "change", "hard"
    held_out = True
    intents = (
        'Create a new private project named "{name}" under my own name, with a README, and invite {person} as {role}.',
        'Start a private project "{name}" of my own that has a README. Then make {person} a {role} of it.',
        'I want to work with {person} on a new private project of mine, "{name}", which begins with a README. '
        "Create it and invite them as {role}.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        people = select(world, "SELECT name AS person FROM code_accounts WHERE id != 1")
        return with_choices(people, rng, name=phrases.PROJECTS, role=("Reporter", "Developer", "Maintainer"))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        member = {"project": _next_id(world, "code_projects"), "account": account(world, params["person"])}
        made = _new_project_with_readme(world, params["name"], "private")
        return [changed(*made, Added("code_members", {**member, "role": params["role"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.create_project(page, params["name"], "private")
        yield from steps.invite(page, params["person"], params["role"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.create_project(page, params["name"], "private")
        yield page.stop()


class InviteMember(CodeTemplate):
    """Invite a member to a project."""

    name, kind, difficulty = "code-invite", "change", "medium"
    intents = (
        "Invite {person} to the project {project} as {role}.",
        "Add {person} to the members of {project}, with the role {role}.",
        "Make {person} a {role} of the project {project}.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT p.path AS project, a.name AS person FROM projects p JOIN code_accounts a WHERE {_MAINTAINED}
            AND NOT EXISTS (SELECT 1 FROM roles r WHERE r.project = p.id AND r.account = a.id)
        """
        found = select(world, query)
        some = rng.sample(found, min(len(found), 60))
        return with_choices(some, rng, role=("Guest", "Reporter", "Developer", "Maintainer"))

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        member = {"project": project(world, params["project"])["id"], "account": account(world, params["person"])}
        return [changed(Added("code_members", {**member, "role": params["role"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.invite(page, params["person"], params["role"])
        yield page.stop()


class RemoveMember(CodeTemplate):
    """Remove a member from a project."""

    name, kind, difficulty = "code-dismiss", "change", "medium"
    intents = (
        "Remove {person} from the members of {project}.",
        "{person} no longer works on {project}. Take them off its members.",
        "End the membership of {person} in the project {project}.",
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        query = f"""
            SELECT p.path AS project, a.name AS person FROM projects p JOIN code_members m ON m.project = p.id
            JOIN code_accounts a ON a.id = m.account WHERE {_MAINTAINED} AND a.id != 1 AND m.role != 'Owner'
        """
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        member = {"project": project(world, params["project"])["id"], "account": account(world, params["person"])}
        return [changed(Removed("code_members", member))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.find_member(page, params["person"])
        yield page.click("button", f"Remove {params['person']}")
        yield page.click("button", "Remove")
        yield page.stop()


class DescribeProject(CodeTemplate):
    """Change the description of a project."""

    name, kind, difficulty = "code-describe", "change", "medium"
    intents = (
        'Change the description of the project {project} to "{text}".',
        'The project {project} is to be described as "{text}". Change its description.',
        'In the settings of {project}, make "{text}" the description.',
    )

    def instances(self, world: World, rng: Random) -> list[dict[str, Any]]:
        found = select(world, f"SELECT path AS project FROM projects WHERE {_MAINTAINED}")
        return with_choices(found * 4, rng, text=phrases.DESCRIPTIONS)

    def evaluators(self, world: World, params: Params) -> list[Evaluator]:
        number = project(world, params["project"])["id"]
        shown = PageHolds(
            address(world, params["project"]), "document.querySelector('main').innerText", (params["text"],)
        )
        return [changed(Updated("code_projects", {"id": number}, {"description": params["text"]})), shown]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_project(page, params["project"])
        yield from steps.open_section(page, "Settings")
        yield page.type("Project description", params["text"])
        yield page.click("button", "Save changes")
        yield page.stop()


def _new_project_with_readme(world: World, name: str, visibility: str) -> list[Expected]:
    """Return the rows that a new project with a README adds."""
    branch = _next_id(world, "code_branches")
    return [
        *_new_project(
            world, {"forked_from": None, "name": name, "visibility": visibility}, {"name": "main", "origin": None}
        ),
        Added("code_files", {"branch": branch, "path": "README.md"}),
        Added("code_blobs", {"content": re.compile(rf"# {name}\b.*", re.DOTALL)}),
        Added("code_commits", {"branch": branch, "author": 1}),
    ]


def _new_project(world: World, values: Columns, branch: Columns) -> list[Expected]:
    """Return the rows of a new project in the agent's namespace and its branch."""
    number = _next_id(world, "code_projects")
    return [
        Added("code_projects", {"id": number, "namespace": 1, **values}),
        Added("code_members", {"project": number, "account": 1, "role": "Owner"}),
        Added("code_branches", {"id": _next_id(world, "code_branches"), "project": number, **branch}),
    ]


def _next_id(world: World, table: str) -> int:
    """Return the next id of a table."""
    return int(world.value(f"SELECT MAX(id) + 1 FROM {table}"))


TEMPLATES: Sequence[CodeTemplate] = (
    ForkProject(),
    NewProject(),
    NewTeam(),
    InviteMember(),
    RemoveMember(),
    DescribeProject(),
)

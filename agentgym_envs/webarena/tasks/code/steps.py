"""How oracles get about in code hosting: the steps that many tasks share."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import TypeAlias, TypeVar

from agentgym_envs.webarena.tasks.code.parsing import milestones, role
from agentgym_envs.webarena.tasks.page_reader import PageReader

_T = TypeVar("_T")
Way: TypeAlias = Generator[str, None, _T]
"""Commands, and what was found out by them."""


def search(sight: PageReader, text: str) -> Iterator[str]:
    """Look for something from wherever one is."""
    yield sight.type("Search Hammerfold", text, enter=True)


def to_project(sight: PageReader, path: str) -> Iterator[str]:
    """Go to a project's own page."""
    yield from search(sight, path)
    yield sight.click("link", path)


def find(sight: PageReader, kind: str, title: str) -> Iterator[str]:
    """Look for something of a kind, such as "Issues", in all projects."""
    yield from search(sight, title)
    yield sight.click("link", re.compile(rf"{kind} \(\d+\)"), after=re.compile("Results for .*"))
    yield sight.click("link", title)


def to_profile(sight: PageReader, person: str) -> Iterator[str]:
    """Go to somebody's profile."""
    yield from find(sight, "Users", person)


def to_section(sight: PageReader, name: str) -> Iterator[str]:
    """Go to a section of the project that one is in, by the menu at its side."""
    yield sight.click("link", re.compile(rf"{name}(?: \(\d+\))?"), after="Project")


def filtered(sight: PageReader, section: str, **filters: str) -> Iterator[str]:
    """Go to a section and filter its list: `label="bug"` chooses "bug" for "Label"."""
    yield from to_section(sight, section)
    for name, value in filters.items():
        yield sight.choose(name.capitalize(), value)
    yield sight.click("button", "Apply")


def in_order(sight: PageReader, order: str) -> Iterator[str]:
    """Sort a list."""
    yield sight.choose("Sort by", order)
    yield sight.click("button", "Apply")


def opened(sight: PageReader, section: str, title: str) -> Iterator[str]:
    """Go to an issue or merge request in the section of that name."""
    yield from to_section(sight, section)
    while not sight.has("link", title):
        yield sight.click("link", "Next")
    yield sight.click("link", title)


def to_issue(sight: PageReader, title: str) -> Iterator[str]:
    """Go to an open issue of the project that one is in."""
    yield from opened(sight, "Issues", title)


def to_request(sight: PageReader, title: str) -> Iterator[str]:
    """Go to an open merge request of the project that one is in."""
    yield from opened(sight, "Merge requests", title)


def to_milestone(sight: PageReader, title: str) -> Iterator[str]:
    """Go to where the milestones of the project that one is in are listed, to the list that has one."""
    yield from to_section(sight, "Milestones")
    if title not in milestones(sight):
        yield sight.click("link", re.compile(r"All \(\d+\)"))


def to_file(sight: PageReader, path: str) -> Iterator[str]:
    """Go down to a file from where its first folder is listed."""
    for name in path.split("/"):
        yield sight.click("link", name, after="Last update")


def to_commit(sight: PageReader, message: str) -> Iterator[str]:
    """Go to a commit on the default branch of the project that one is in."""
    yield from to_section(sight, "Commits")
    yield sight.type("Search in messages", message, enter=True)
    yield sight.click("link", message)


def comment(sight: PageReader, text: str) -> Iterator[str]:
    """Say something about the issue or merge request that one sees."""
    yield sight.type("Write a comment", text)
    yield sight.click("button", "Comment")


def set_choice(sight: PageReader, name: str, option: str) -> Iterator[str]:
    """Choose the assignee or milestone of the issue that one sees."""
    yield from sight.unfold(f"Edit {name.lower()}")
    yield sight.choose(name, option)
    yield sight.click("button", "Save")


def create_milestone(sight: PageReader, title: str, due: str) -> Iterator[str]:
    """Add a milestone to the project that one is in."""
    yield from to_section(sight, "Milestones")
    yield sight.click("link", "New milestone")
    yield sight.type("Title", title)
    yield sight.type(re.compile(r"Due date.*"), due)
    yield sight.click("button", "Create milestone")


def create_project(sight: PageReader, name: str, visibility: str) -> Iterator[str]:
    """Add a project with a README."""
    yield sight.click("link", "New project")
    yield sight.type("Project name", name)
    if visibility != "private":
        yield sight.click("radio", re.compile(rf"{visibility}:.*", re.IGNORECASE))
    yield sight.click("button", "Create project")


def to_member(sight: PageReader, person: str) -> Iterator[str]:
    """Go to where a member of the project that one is in is listed."""
    yield from to_section(sight, "Members")
    while role(sight, person) is None:
        yield sight.click("link", "Next")


def invite(sight: PageReader, person: str, as_role: str) -> Iterator[str]:
    """Make somebody a member of the project that one is in."""
    yield from to_section(sight, "Members")
    yield from sight.unfold("Invite a member")
    yield sight.type(re.compile(r"User name.*"), person)
    if as_role != "Guest":
        yield sight.choose("Role", as_role)
    yield sight.click("button", "Invite")

"""How oracles get about in code hosting: the steps that many tasks share."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentgym_envs.webarena.tasks.code.parsing import milestones, role
from agentgym_envs.webarena.tasks.page_reader import PageReader


def search(page: PageReader, text: str) -> Iterator[str]:
    """Look for something from wherever one is."""
    yield page.type("Search Hammerfold", text, enter=True)


def open_project(page: PageReader, path: str) -> Iterator[str]:
    """Go to a project's own page."""
    yield from search(page, path)
    yield page.click("link", path)


def open_search_result(page: PageReader, kind: str, title: str) -> Iterator[str]:
    """Look for something of a kind, such as "Issues", in all projects."""
    yield from search(page, title)
    yield page.click("link", re.compile(rf"{kind} \(\d+\)"), after=re.compile("Results for .*"))
    yield page.click("link", title)


def open_profile(page: PageReader, person: str) -> Iterator[str]:
    """Go to somebody's profile."""
    yield from open_search_result(page, "Users", person)


def open_section(page: PageReader, name: str) -> Iterator[str]:
    """Go to a section of the project that one is in, by the menu at its side."""
    yield page.click("link", re.compile(rf"{name}(?: \(\d+\))?"), after="Project")


def open_filtered(page: PageReader, section: str, **filters: str) -> Iterator[str]:
    """Go to a section and filter its list: `label="bug"` chooses "bug" for "Label"."""
    yield from open_section(page, section)
    for name, value in filters.items():
        yield page.choose(name.capitalize(), value)
    yield page.click("button", "Apply")


def sort_list(page: PageReader, order: str) -> Iterator[str]:
    """Sort a list."""
    yield page.choose("Sort by", order)
    yield page.click("button", "Apply")


def open_from_list(page: PageReader, section: str, title: str) -> Iterator[str]:
    """Go to an issue or merge request in the section of that name."""
    yield from open_section(page, section)
    while not page.has("link", title):
        yield page.click("link", "Next")
    yield page.click("link", title)


def open_issue(page: PageReader, title: str) -> Iterator[str]:
    """Go to an open issue of the project that one is in."""
    yield from open_from_list(page, "Issues", title)


def open_request(page: PageReader, title: str) -> Iterator[str]:
    """Go to an open merge request of the project that one is in."""
    yield from open_from_list(page, "Merge requests", title)


def find_milestone(page: PageReader, title: str) -> Iterator[str]:
    """Go to where the milestones of the project that one is in are listed, to the list that has one."""
    yield from open_section(page, "Milestones")
    if title not in milestones(page):
        yield page.click("link", re.compile(r"All \(\d+\)"))


def open_file(page: PageReader, path: str) -> Iterator[str]:
    """Go down to a file from where its first folder is listed."""
    for name in path.split("/"):
        yield page.click("link", name, after="Last update")


def open_commit(page: PageReader, message: str) -> Iterator[str]:
    """Go to a commit on the default branch of the project that one is in."""
    yield from open_section(page, "Commits")
    yield page.type("Search in messages", message, enter=True)
    yield page.click("link", message)


def add_comment(page: PageReader, text: str) -> Iterator[str]:
    """Say something about the issue or merge request that one sees."""
    yield page.type("Write a comment", text)
    yield page.click("button", "Comment")


def set_field(page: PageReader, name: str, option: str) -> Iterator[str]:
    """Choose the assignee or milestone of the issue that one sees."""
    yield from page.expand(f"Edit {name.lower()}")
    yield page.choose(name, option)
    yield page.click("button", "Save")


def create_milestone(page: PageReader, title: str, due: str) -> Iterator[str]:
    """Add a milestone to the project that one is in."""
    yield from open_section(page, "Milestones")
    yield page.click("link", "New milestone")
    yield page.type("Title", title)
    yield page.type(re.compile(r"Due date.*"), due)
    yield page.click("button", "Create milestone")


def create_project(page: PageReader, name: str, visibility: str) -> Iterator[str]:
    """Add a project with a README."""
    yield page.click("link", "New project")
    yield page.type("Project name", name)
    if visibility != "private":
        yield page.click("radio", re.compile(rf"{visibility}:.*", re.IGNORECASE))
    yield page.click("button", "Create project")


def find_member(page: PageReader, person: str) -> Iterator[str]:
    """Go to where a member of the project that one is in is listed."""
    yield from open_section(page, "Members")
    while role(page, person) is None:
        yield page.click("link", "Next")


def invite(page: PageReader, person: str, as_role: str) -> Iterator[str]:
    """Make somebody a member of the project that one is in."""
    yield from open_section(page, "Members")
    yield from page.expand("Invite a member")
    yield page.type(re.compile(r"User name.*"), person)
    if as_role != "Guest":
        yield page.choose("Role", as_role)
    yield page.click("button", "Invite")

"""Oracle steps in code hosting."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentgym_envs.webarena.tasks.code.parsing import milestones, role
from agentgym_envs.webarena.tasks.page_reader import PageReader


def search(page: PageReader, text: str) -> Iterator[str]:
    """Search from any page."""
    yield page.type("Search Hammerfold", text, enter=True)


def open_project(page: PageReader, path: str) -> Iterator[str]:
    """Open a project's page."""
    yield from search(page, path)
    yield page.click("link", path)


def open_search_result(page: PageReader, kind: str, title: str) -> Iterator[str]:
    """Search all projects for a title of one kind, such as "Issues", and open it."""
    yield from search(page, title)
    yield page.click("link", re.compile(rf"{kind} \(\d+\)"), after=re.compile("Results for .*"))
    yield page.click("link", title)


def open_profile(page: PageReader, person: str) -> Iterator[str]:
    """Open a person's profile."""
    yield from open_search_result(page, "Users", person)


def open_section(page: PageReader, name: str) -> Iterator[str]:
    """Open a section of the current project from its menu."""
    yield page.click("link", re.compile(rf"{name}(?: \(\d+\))?"), after="Project")


def open_filtered(page: PageReader, section: str, /, **filters: str) -> Iterator[str]:
    """Open a section and filter its list: `label="bug"` chooses "bug" for "Label"."""
    yield from open_section(page, section)
    for name, value in filters.items():
        yield page.choose(name.capitalize(), value)
    yield page.click("button", "Apply")


def sort_list(page: PageReader, order: str) -> Iterator[str]:
    """Sort a list."""
    yield page.choose("Sort by", order)
    yield page.click("button", "Apply")


def open_from_list(page: PageReader, section: str, title: str) -> Iterator[str]:
    """Open an issue or merge request from its section's list."""
    yield from open_section(page, section)
    yield from page.turn_to("link", title)
    yield page.click("link", title)


def open_issue(page: PageReader, title: str) -> Iterator[str]:
    """Open an open issue of the current project."""
    yield from open_from_list(page, "Issues", title)


def open_request(page: PageReader, title: str) -> Iterator[str]:
    """Open an open merge request of the current project."""
    yield from open_from_list(page, "Merge requests", title)


def find_milestone(page: PageReader, title: str) -> Iterator[str]:
    """Open the list of the current project's milestones that contains this one."""
    yield from open_section(page, "Milestones")
    if title not in milestones(page):
        yield page.click("link", re.compile(r"All \(\d+\)"))


def open_file(page: PageReader, path: str) -> Iterator[str]:
    """Open a file, starting at the listing of its first folder."""
    for name in path.split("/"):
        yield page.click("link", name, after="Last update")


def open_commit(page: PageReader, message: str) -> Iterator[str]:
    """Open a commit on the default branch of the current project."""
    yield from open_section(page, "Commits")
    yield page.type("Search in messages", message, enter=True)
    yield page.click("link", message)


def add_comment(page: PageReader, text: str) -> Iterator[str]:
    """Comment on the current issue or merge request."""
    yield page.type("Write a comment", text)
    yield page.click("button", "Comment")


def set_field(page: PageReader, name: str, option: str) -> Iterator[str]:
    """Choose the assignee or milestone of the current issue."""
    yield from page.expand(f"Edit {name.lower()}")
    yield page.choose(name, option)
    yield page.click("button", "Save")


def create_milestone(page: PageReader, title: str, due: str) -> Iterator[str]:
    """Create a milestone in the current project."""
    yield from open_section(page, "Milestones")
    yield page.click("link", "New milestone")
    yield page.type("Title", title)
    yield page.type(re.compile(r"Due date.*"), due)
    yield page.click("button", "Create milestone")


def create_project(page: PageReader, name: str, visibility: str) -> Iterator[str]:
    """Create a project with a README."""
    yield page.click("link", "New project")
    yield page.type("Project name", name)
    if visibility != "private":
        yield page.click("radio", re.compile(rf"{visibility}:.*", re.IGNORECASE))
    yield page.click("button", "Create project")


def find_member(page: PageReader, person: str) -> Iterator[str]:
    """Open the page of the member list that contains a person."""
    yield from open_section(page, "Members")
    while role(page, person) is None:
        yield page.click("link", "Next")


def invite(page: PageReader, person: str, as_role: str) -> Iterator[str]:
    """Invite a member to the current project."""
    yield from open_section(page, "Members")
    yield from page.expand("Invite a member")
    yield page.type(re.compile(r"User name.*"), person)
    if as_role != "Guest":
        yield page.choose("Role", as_role)
    yield page.click("button", "Invite")

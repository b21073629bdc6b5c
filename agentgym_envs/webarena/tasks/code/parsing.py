"""Functions that read the pages of code hosting for oracles."""

from __future__ import annotations

import re

from agentgym_envs.webarena.tasks.page_reader import PageReader


def licence(page: PageReader) -> str:
    """Return the licence on a project's page."""
    return page.search(r"licence (\S+)")[0]


def star_counts(page: PageReader) -> dict[str, int]:
    """Return the projects of a list with their numbers of stars."""
    found = {}
    for name in (element.name for element in page.all("link", re.compile(r".+ / .+"))):
        counts = (re.match(r"(\d+) stars?\b", text) for text in page.texts(after=name))
        found[name] = next(int(count[1]) for count in counts if count)
    return found


def count(page: PageReader, state: str = "Open") -> int:
    """Return the number of items in a list, from the tab of a state."""
    return int(page.search(rf"^{state} \((\d+)\)$")[0])


def titles(page: PageReader) -> list[str]:
    """Return the titles in a list of issues or merge requests."""
    return list(items(page))


def items(page: PageReader) -> dict[str, list[str]]:
    """Return the texts of each issue or merge request of a list, by title."""
    found: dict[str, list[str]] = {}
    for element in page.elements_after("Clear"):
        if element.role == "heading":
            texts = found.setdefault(element.name, [])
        elif element.role == "StaticText" and found:
            texts.append(element.name)
    return found


def tags(page: PageReader) -> dict[str, str]:
    """Return the tags of a page of releases with their dates, newest first."""
    found = (re.match(r"(\S+) · released (.+) by", text) for text in page.texts())
    return {match[1]: match[2] for match in found if match}


def lines_changed(page: PageReader) -> tuple[str, ...]:
    """Return the numbers of added and deleted lines on a commit's page."""
    return page.search(r"with (\d+) additions? and (\d+) deletions?")


def settings(page: PageReader) -> dict[str, str]:
    """Return the settings of a YAML file, with their sections: {"port": "4048", "ui.theme": "x"}."""
    found: dict[str, str] = {}
    section = ""
    for text in page.texts(after=re.compile(r"\d+ lines.*")):
        match = re.fullmatch(r"(\w+):(?: (.+))?", text)
        if match and match[2]:
            found[section + match[1]] = match[2]
        elif match:
            section = f"{match[1]}."
    return found


def role(page: PageReader, member: str) -> str | None:
    """Return the role of a member on the members page, or None if the page does not list them."""
    rows = [row for row in page.lines("row") if any(e.role == "link" and e.name == member for e in row)]
    if not rows:
        return None
    chosen = [e.properties["value"] for e in rows[0] if e.role == "combobox"]
    return chosen[0] if chosen else [e.name for e in rows[0] if e.role == "cell"][-1]


def milestones(page: PageReader) -> dict[str, str | None]:
    """Return the milestones of a list with their due dates."""
    found: dict[str, str | None] = {}
    for element in page.all("heading", after=re.compile(r"All \(\d+\)")):
        due = re.search(r"due (.+)", page.value(element.name))
        found[element.name] = due[1] if due else None
    return found


def author(page: PageReader) -> str:
    """Return the author of the issue or merge request on the page."""
    return page.value(re.compile(r"(?:Issue #|Merge request !).* by"))


def people(page: PageReader, heading: str) -> list[str]:
    """Return the people under a heading in the sidebar of an issue or merge request."""
    found: list[str] = []
    for element in page.elements_after(heading):
        if element.role == "heading":
            break
        if element.role == "link":
            found.append(element.name)
    return found


def reviewers(page: PageReader) -> dict[str, bool]:
    """Return the reviewers of a merge request, and whether each has approved it."""
    names = people(page, "Reviewers")
    texts = page.texts(after="Reviewers")
    return {name: texts[texts.index(name) + 1] == "(approved)" for name in names}


def commenters(page: PageReader) -> list[str]:
    """Return the authors of the comments on the page, in order."""
    return [next(e.name for e in line if e.role == "link") for line in page.lines("article")]


def commits(page: PageReader) -> list[tuple[str, str]]:
    """Return the commits of a list as (day, message)."""
    found: list[tuple[str, str]] = []
    day = ""
    for element in page.elements_after("Search in messages"):
        if element.role == "heading":
            day = element.name
        elif element.role == "link" and day and not re.fullmatch(r"\d+|Next|Previous", element.name):
            found.append((day, element.name))
    return found

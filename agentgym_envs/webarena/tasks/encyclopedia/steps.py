"""Oracle steps in the encyclopedia, and in the forum from any other site."""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.webarena.evaluators.state import Added
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries as forum_queries
from agentgym_envs.webarena.tasks.page_reader import PageReader


def open_article(page: PageReader, title: str) -> Iterator[str]:
    """Open an article by its title, from any page of the encyclopedia, unless it is open already."""
    if not page.lines("article") or title_here(page) != title:  # the main page has headings of other articles
        yield page.type("Search the encyclopedia", title, enter=True)


def title_here(page: PageReader) -> str:
    """Return the title of the article on the page."""
    return next(element.name for element in page.lines("article")[0] if element.role == "heading")


def linked(page: PageReader, label: str) -> str:
    """Return the first link after a label or heading."""
    return page.all("link", after=label)[0].name


def post_in_forum(page: PageReader, board: str, title: str, text: str) -> Iterator[str]:
    """Write a post in the forum, from any site."""
    yield page.goto(f"{ORIGINS['forum']}/")
    yield page.click("link", "Submit")
    yield page.choose("Board", board)
    yield page.type("Title", title)
    yield page.type("Text", text)
    yield page.click("button", "Post")


def post_added(world: World, board: str, title: str, text: str) -> Added:
    """Return the change of the forum by a post of the agent."""
    values = {"author": forum_queries.ME, "board": forum_queries.board(world, board), "title": title, "body": text}
    return Added("forum_posts", {**values, "url": None})

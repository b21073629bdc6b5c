"""Lists of articles: all of them by letter, and categories."""

from __future__ import annotations

from agentgym_envs.webarena.sites.encyclopedia.library import library
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import NotFound, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_ON_A_PAGE = 60


@routes.get("/contents")
def contents(context: RequestContext) -> Response:
    """List the articles, all of them or those with a first letter."""
    books = library(context.world)
    letter = context.query.choice("letter", tuple(books.letters))
    found = books.letters[letter] if letter else list(books.articles.values())
    paging = Paging.of(context.query, len(found), _ON_A_PAGE)
    shown = found[paging.skipped : paging.skipped + _ON_A_PAGE]
    return context.page("contents.html", letters=sorted(books.letters), letter=letter, shown=shown, paging=paging)


@routes.get("/categories")
def categories(context: RequestContext) -> Response:
    """List the categories with their numbers of articles."""
    found = [(name, len(articles)) for name, articles in library(context.world).categories.items()]
    paging = Paging.of(context.query, len(found), _ON_A_PAGE)
    shown = found[paging.skipped : paging.skipped + _ON_A_PAGE]
    return context.page("categories.html", shown=shown, paging=paging)


@routes.get("/category/{name:path}")
def category(context: RequestContext, name: str) -> Response:
    """List the articles of a category."""
    title = name.replace("_", " ")[:200]
    found = library(context.world).categories.get(title)
    if found is None:
        raise NotFound("There is no category with this name.")
    paging = Paging.of(context.query, len(found), _ON_A_PAGE)
    shown = found[paging.skipped : paging.skipped + _ON_A_PAGE]
    return context.page("category.html", title=title, shown=shown, paging=paging)

"""The search page."""

from __future__ import annotations

from agentgym_envs.webarena.sites.encyclopedia.library import library
from agentgym_envs.webarena.sites.encyclopedia.searching import query_words, search, snippet, suggest
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_ON_A_PAGE, _SUGGESTIONS = 10, 6


@routes.get("/suggest")
def suggestions(context: RequestContext) -> Response:
    """List the articles whose titles begin with a text, for the search box."""
    found = library(context.world).starting(context.query.text("q", most=200), _SUGGESTIONS)
    return context.page("suggestions.html", suggestions=[(one.path, one.title) for one in found])


@routes.get("/search")
def search_page(context: RequestContext) -> Response:
    """List the articles that match. A title leads to its article, unless `full` asks for the list."""
    text, books = context.query.text("q", most=200), library(context.world)
    exact = books.find(text)
    if exact is not None and not context.query.is_checked("full"):
        return Redirect(exact.path)
    found, complete = search(books.indexes, text)
    paging = Paging.of(context.query, len(found), _ON_A_PAGE)
    words = query_words(text)
    shown = [(one, snippet(one, words)) for one in found[paging.skipped : paging.skipped + _ON_A_PAGE]]
    similar = suggest(books.indexes, text) if text and not complete and exact is None else []
    titles = {one.title for one, _ in shown}
    suggested = [title for title in similar if title not in titles]
    return context.page("search.html", text=text, shown=shown, paging=paging, exact=exact, suggested=suggested)

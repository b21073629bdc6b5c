"""The main page, and the pages of articles."""

from __future__ import annotations

import random

from agentgym_envs.webarena.sites.clock import NOW
from agentgym_envs.webarena.sites.encyclopedia.library import library
from agentgym_envs.webarena.sites.encyclopedia.lore import lore
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()


@routes.get("/")
def home(context: RequestContext) -> Response:
    """Show the main page: a featured article, some facts and the anniversaries of the month."""
    books, known = library(context.world), lore(context.world)
    rng = random.Random(f"main page/{context.world.seed}")
    featured = books.show(books.articles[rng.choice(known.people).name])
    country = next(iter(books.invented)).title
    return context.page(
        "home.html",
        count=len(books.articles),
        featured=featured,
        country=country,
        landmarks=rng.sample(known.landmarks, 4),
        anniversaries=sorted(
            (one for one in known.people if one.born.month == NOW.month), key=lambda one: (one.born.day, one.name)
        )[:6],
    )


@routes.get("/article/{title:path}")
def article(context: RequestContext, title: str) -> Response:
    """Show an article. Other spellings and names lead to its own address."""
    books = library(context.world)
    found = books.articles.get(title.replace("_", " ")[:200])
    if found is None:
        other = books.find(title.replace("_", " ")[:200])
        if other is None:
            raise NotFound("There is no article with this title.")
        return Redirect(other.path)
    return context.page("article.html", shown=books.show(found), article=found)


@routes.get("/random")
def random_article(context: RequestContext) -> Response:
    """Lead to an article. Which one depends only on the page that the link was on."""
    titles = list(library(context.world).articles.values())
    return Redirect(random.Random(f"{context.world.seed}/{context.referrer}").choice(titles).path)


@routes.get("/about")
def about(context: RequestContext) -> Response:
    """Say what the encyclopedia is."""
    books = library(context.world)
    return context.page("about.html", count=len(books.articles), country=books.country.title)

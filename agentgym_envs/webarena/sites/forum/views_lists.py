"""Lists: the front page, all posts, boards, links to a domain, and search results."""

from __future__ import annotations

from typing import Any

from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.listing import LISTED, SORTS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import NotFound, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_FEEDS = {
    "all": ("All boards", LISTED),
    "subscribed": (
        "Your boards",
        f"{LISTED} AND p.board IN (SELECT board FROM forum_subscriptions WHERE account = ?1)",
    ),
    "moderated": (
        "Boards that you moderate",
        f"{LISTED} AND p.board IN (SELECT board FROM forum_moderators WHERE user = ?1)",
    ),
}
_BOARD_ORDERS = {"name": "b.name", "subscribers": "subscribers DESC, b.name", "posts": "posts DESC, b.name"}
_BOARDS_PER_PAGE = 20
_PART = 8
"""Posts that the stream loads at once. Two such parts fit into an observation."""


@routes.get("/")
def home(context: RequestContext) -> Response:
    """List posts by the settings of the account. Without login, list the posts of all boards."""
    mine = context.row("SELECT front, sort FROM forum_users WHERE id = ?", context.account)
    return _feed(context, mine["front"] if mine else "all", mine["sort"] if mine else "hot")


@routes.get("/all")
@routes.get("/all/{sort}")
def everything(context: RequestContext, sort: str = "hot") -> Response:
    """List the posts of all boards."""
    return _feed(context, "all", _sort(sort))


@routes.get("/subscribed")
@routes.get("/subscribed/{sort}")
def subscribed(context: RequestContext, sort: str = "hot") -> Response:
    """List the posts of the boards that the account subscribes to."""
    context.require_login()
    return _feed(context, "subscribed", _sort(sort))


@routes.get("/moderated")
@routes.get("/moderated/{sort}")
def moderated(context: RequestContext, sort: str = "hot") -> Response:
    """List the posts of the boards that the account moderates."""
    context.require_login()
    return _feed(context, "moderated", _sort(sort))


@routes.get("/stream")
def stream(context: RequestContext) -> Response:
    """List the newest posts of all boards without page links: scrolling loads the next ones."""
    return context.page("stream.html", result=listing.posts(context, LISTED, sort="new", size=_PART))


def _sort(sort: str) -> str:
    if sort not in SORTS:
        raise NotFound
    return sort


def _feed(context: RequestContext, feed: str, sort: str) -> Response:
    heading, where = _FEEDS[feed]
    result = listing.posts(context, where, sort=sort)
    mine = (
        "SELECT b.name, b.title FROM forum_boards b JOIN forum_subscriptions s ON s.board = b.id "
        "WHERE s.account = ? ORDER BY b.name LIMIT 12"
    )
    return context.page(
        "feed.html", feed=feed, heading=heading, result=result, boards=context.rows(mine, context.account)
    )


@routes.get("/boards")
def boards(context: RequestContext) -> Response:
    """List the boards, optionally filtered by a text."""
    words = context.query.text("q", most=100)
    sort = context.query.choice("sort", list(_BOARD_ORDERS), "name")
    where = "(instr(lower(b.name), lower(?2)) OR instr(lower(b.title || b.description), lower(?2)))"
    count = context.value(f"SELECT COUNT(*) FROM forum_boards b WHERE {where} AND ?1 = ?1", context.account, words)
    paging = Paging.of(context.query, count, _BOARDS_PER_PAGE)
    rows = context.rows(
        f"""SELECT b.*,
          (SELECT COUNT(*) FROM forum_subscriptions s WHERE s.board = b.id) AS subscribers,
          (SELECT COUNT(*) FROM forum_posts p WHERE p.board = b.id AND {listing.NOT_DELETED}) AS posts,
          EXISTS (SELECT 1 FROM forum_subscriptions s WHERE s.board = b.id AND s.account = ?1) AS subscribed
        FROM forum_boards b WHERE {where} ORDER BY {_BOARD_ORDERS[sort]} LIMIT {_BOARDS_PER_PAGE} OFFSET ?3""",
        context.account,
        words,
        paging.skipped,
    )
    return context.page("boards.html", rows=rows, paging=paging, words=words, sort=sort)


@routes.get("/domain/{domain}")
def domain(context: RequestContext, domain: str) -> Response:
    """List the posts that link to a domain."""
    result = listing.posts(context, f"{LISTED} AND p.domain = ?2", domain)
    if not result.paging.count:
        raise NotFound("Nothing here links to that domain.")
    return context.page("domain.html", domain=domain, result=result)


@routes.get("/search")
def search(context: RequestContext) -> Response:
    """List the posts, comments, boards or users that contain all words."""
    words = context.query.text("q", most=200)
    kind = context.query.choice("in", ("posts", "comments", "boards", "users"), "posts")
    sort = context.query.choice("sort", ("new", "old", "top", "comments"), "new")
    board = context.query.text("board", most=50)
    values: dict[str, Any] = {"words": words, "kind": kind, "sort": sort, "board": board, "result": None, "rows": []}
    if words:
        values |= _SEARCHES[kind](context, words.split()[:16], board, sort)
    names = [
        ("", "All boards"),
        *((row["name"],) * 2 for row in context.rows("SELECT name FROM forum_boards ORDER BY 1")),
    ]
    return context.page("search.html", names=names, **values)


def _posts(context: RequestContext, words: list[str], board: str, sort: str) -> dict[str, Any]:
    where = f"{LISTED} AND {_contains(_TEXT, words, 3)} AND {_IN_BOARD}"
    return {"result": listing.posts(context, where, board, *words, sort=sort)}


def _comments(context: RequestContext, words: list[str], board: str, sort: str) -> dict[str, Any]:
    where = f"{_contains('c.body', words, 3)} AND {_IN_BOARD}"
    return {"result": listing.comments(context, where, board, *words, sort=sort)}


def _boards(context: RequestContext, words: list[str], board: str, sort: str) -> dict[str, Any]:
    where = _contains("name || ' ' || title || ' ' || description", words, 1)
    return {"rows": context.rows(f"SELECT * FROM forum_boards WHERE {where} ORDER BY name LIMIT 30", *words)}


def _users(context: RequestContext, words: list[str], board: str, sort: str) -> dict[str, Any]:
    where = _contains("name || ' ' || bio || ' ' || location", words, 1)
    return {"rows": context.rows(f"SELECT * FROM forum_users WHERE {where} ORDER BY name LIMIT 30", *words)}


_SEARCHES = {"posts": _posts, "comments": _comments, "boards": _boards, "users": _users}
_TEXT = "p.title || ' ' || p.body || ' ' || COALESCE(p.domain, '')"
_IN_BOARD = "(?2 = '' OR p.board = (SELECT id FROM forum_boards WHERE name = ?2))"


def _contains(text: str, words: list[str], first: int) -> str:
    return " AND ".join(f"instr(lower({text}), lower(?{number}))" for number in range(first, first + len(words)))

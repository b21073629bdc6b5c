"""Pages that list: the front page, all posts, the boards, what a domain is linked for, and the search."""

from __future__ import annotations

from typing import Any

from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.listing import SHOWN, SORTS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Missing, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_FEEDS = {
    "all": ("All boards", SHOWN),
    "subscribed": (
        "Your boards",
        f"{SHOWN} AND p.board IN (SELECT board FROM forum_subscriptions WHERE account = ?1)",
    ),
    "moderated": (
        "Boards that you moderate",
        f"{SHOWN} AND p.board IN (SELECT board FROM forum_moderators WHERE user = ?1)",
    ),
}
_BOARD_ORDERS = {"name": "b.name", "subscribers": "subscribers DESC, b.name", "posts": "posts DESC, b.name"}
_BOARDS_PER_PAGE = 20


@routes.get("/")
def home(visit: RequestContext) -> Response:
    """The posts that the account's settings ask for; all of them for a stranger."""
    mine = visit.row("SELECT front, sort FROM forum_users WHERE id = ?", visit.account)
    return _feed(visit, mine["front"] if mine else "all", mine["sort"] if mine else "hot")


@routes.get("/all")
@routes.get("/all/{sort}")
def everything(visit: RequestContext, sort: str = "hot") -> Response:
    """The posts of all boards."""
    return _feed(visit, "all", _sort(sort))


@routes.get("/subscribed")
@routes.get("/subscribed/{sort}")
def subscribed(visit: RequestContext, sort: str = "hot") -> Response:
    """The posts of the boards that the account subscribes to."""
    visit.must_be_signed_in()
    return _feed(visit, "subscribed", _sort(sort))


@routes.get("/moderated")
@routes.get("/moderated/{sort}")
def moderated(visit: RequestContext, sort: str = "hot") -> Response:
    """The posts of the boards that the account moderates."""
    visit.must_be_signed_in()
    return _feed(visit, "moderated", _sort(sort))


def _sort(sort: str) -> str:
    if sort not in SORTS:
        raise Missing
    return sort


def _feed(visit: RequestContext, feed: str, sort: str) -> Response:
    heading, where = _FEEDS[feed]
    found = listing.posts(visit, where, sort=sort)
    mine = (
        "SELECT b.name, b.title FROM forum_boards b JOIN forum_subscriptions s ON s.board = b.id "
        "WHERE s.account = ? ORDER BY b.name LIMIT 12"
    )
    return visit.page("feed.html", feed=feed, heading=heading, found=found, boards=visit.rows(mine, visit.account))


@routes.get("/boards")
def boards(visit: RequestContext) -> Response:
    """All boards, some of them by words."""
    words = visit.query.text("q", most=100)
    sort = visit.query.choice("sort", list(_BOARD_ORDERS), "name")
    where = "(instr(lower(b.name), lower(?2)) OR instr(lower(b.title || b.description), lower(?2)))"
    count = visit.value(f"SELECT COUNT(*) FROM forum_boards b WHERE {where} AND ?1 = ?1", visit.account, words)
    paging = Paging.of(visit.query, count, _BOARDS_PER_PAGE)
    rows = visit.rows(
        f"""SELECT b.*,
          (SELECT COUNT(*) FROM forum_subscriptions s WHERE s.board = b.id) AS subscribers,
          (SELECT COUNT(*) FROM forum_posts p WHERE p.board = b.id AND {listing.STANDING}) AS posts,
          EXISTS (SELECT 1 FROM forum_subscriptions s WHERE s.board = b.id AND s.account = ?1) AS subscribed
        FROM forum_boards b WHERE {where} ORDER BY {_BOARD_ORDERS[sort]} LIMIT {_BOARDS_PER_PAGE} OFFSET ?3""",
        visit.account,
        words,
        paging.skipped,
    )
    return visit.page("boards.html", rows=rows, paging=paging, words=words, sort=sort)


@routes.get("/domain/{domain}")
def domain(visit: RequestContext, domain: str) -> Response:
    """The posts that link to a domain."""
    found = listing.posts(visit, f"{SHOWN} AND p.domain = ?2", domain)
    if not found.paging.count:
        raise Missing("Nothing here links to that domain.")
    return visit.page("domain.html", domain=domain, found=found)


@routes.get("/search")
def search(visit: RequestContext) -> Response:
    """Posts, comments, boards or users in which all words occur."""
    words = visit.query.text("q", most=200)
    kind = visit.query.choice("in", ("posts", "comments", "boards", "users"), "posts")
    sort = visit.query.choice("sort", ("new", "old", "top", "comments"), "new")
    board = visit.query.text("board", most=50)
    values: dict[str, Any] = {"words": words, "kind": kind, "sort": sort, "board": board, "found": None, "rows": []}
    if words:
        values |= _SEARCHES[kind](visit, words.split()[:16], board, sort)
    names = [
        ("", "All boards"),
        *((row["name"],) * 2 for row in visit.rows("SELECT name FROM forum_boards ORDER BY 1")),
    ]
    return visit.page("search.html", names=names, **values)


def _posts(visit: RequestContext, words: list[str], board: str, sort: str) -> dict[str, Any]:
    where = f"{SHOWN} AND {_contains(_TEXT, words, 3)} AND {_IN_BOARD}"
    return {"found": listing.posts(visit, where, board, *words, sort=sort)}


def _comments(visit: RequestContext, words: list[str], board: str, sort: str) -> dict[str, Any]:
    where = f"{_contains('c.body', words, 3)} AND {_IN_BOARD}"
    return {"found": listing.comments(visit, where, board, *words, sort=sort)}


def _boards(visit: RequestContext, words: list[str], board: str, sort: str) -> dict[str, Any]:
    where = _contains("name || ' ' || title || ' ' || description", words, 1)
    return {"rows": visit.rows(f"SELECT * FROM forum_boards WHERE {where} ORDER BY name LIMIT 30", *words)}


def _users(visit: RequestContext, words: list[str], board: str, sort: str) -> dict[str, Any]:
    where = _contains("name || ' ' || bio || ' ' || location", words, 1)
    return {"rows": visit.rows(f"SELECT * FROM forum_users WHERE {where} ORDER BY name LIMIT 30", *words)}


_SEARCHES = {"posts": _posts, "comments": _comments, "boards": _boards, "users": _users}
_TEXT = "p.title || ' ' || p.body || ' ' || COALESCE(p.domain, '')"
_IN_BOARD = "(?2 = '' OR p.board = (SELECT id FROM forum_boards WHERE name = ?2))"


def _contains(text: str, words: list[str], first: int) -> str:
    return " AND ".join(f"instr(lower({text}), lower(?{place}))" for place in range(first, first + len(words)))

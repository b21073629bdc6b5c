"""Paginated lists of posts and comments: filtering by visibility, sorting and loading."""

from __future__ import annotations

import datetime
import sqlite3
from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging

PER_PAGE = 12
SORTS = ("hot", "new", "top", "comments")
PERIODS = {"day": 1, "week": 7, "month": 30, "year": 365, "all": 0}
_NOW = f"julianday('{stamp()}')"
_COMMENTS = "(SELECT COUNT(*) FROM forum_comments c WHERE c.post = p.id AND c.deleted = 0 AND c.removed = 0)"
_ORDERS = {
    "hot": f"p.score / (({_NOW} - julianday(p.created) + 2) * ({_NOW} - julianday(p.created) + 2)) DESC, p.id DESC",
    "new": "p.created DESC, p.id DESC",
    "old": "p.created, p.id",
    "top": "p.score DESC, p.id DESC",
    "comments": f"{_COMMENTS} DESC, p.id DESC",
}
_POSTS = f"""
SELECT p.*, b.name AS board_name, u.name AS author_name, f.name AS flair_name, {_COMMENTS} AS comments,
  (SELECT value FROM forum_votes v WHERE v.account = ?1 AND v.post = p.id) AS vote,
  EXISTS (SELECT 1 FROM forum_saved s WHERE s.account = ?1 AND s.post = p.id) AS saved,
  EXISTS (SELECT 1 FROM forum_hidden h WHERE h.account = ?1 AND h.post = p.id) AS hidden,
  EXISTS (SELECT 1 FROM forum_moderators m WHERE m.user = ?1 AND m.board = p.board) AS moderated
FROM forum_posts p
JOIN forum_boards b ON b.id = p.board
JOIN forum_users u ON u.id = p.author
LEFT JOIN forum_flairs f ON f.id = p.flair
"""
_COMMENTED = """
SELECT c.*, b.name AS board_name, p.title AS post_title, p.locked AS post_locked, p.author AS post_author,
  p.board AS board, u.name AS author_name, u.avatar AS avatar,
  (SELECT value FROM forum_votes v WHERE v.account = ?1 AND v.comment = c.id) AS vote,
  EXISTS (SELECT 1 FROM forum_saved s WHERE s.account = ?1 AND s.comment = c.id) AS saved,
  EXISTS (SELECT 1 FROM forum_blocks k WHERE k.account = ?1 AND k.user = c.author) AS blocked
FROM forum_comments c
JOIN forum_posts p ON p.id = c.post
JOIN forum_boards b ON b.id = p.board
JOIN forum_users u ON u.id = c.author
"""
NOT_DELETED = "p.removed = 0 AND p.deleted = 0"
"""SQL condition: the post is neither removed nor deleted."""
LISTED = f"""{NOT_DELETED}
  AND p.id NOT IN (SELECT post FROM forum_hidden WHERE account = ?1)
  AND p.author NOT IN (SELECT user FROM forum_blocks WHERE account = ?1)"""
"""SQL condition: the account (?1) sees the post in lists. It neither hid the post nor blocked its author."""


@dataclass(frozen=True, slots=True)
class ForumListing:
    """One page of a list, and its sort order."""

    rows: list[sqlite3.Row]
    paging: Paging
    sort: str = ""
    period: str = ""


def posts(
    context: RequestContext,
    where: str,
    *arguments: Any,
    sort: str = "new",
    pinned_first: bool = False,
    size: int = PER_PAGE,
) -> ForumListing:
    """Return the posts that match `where`. In it, ?1 is the account and the arguments count from ?2."""
    period = context.query.choice("t", list(PERIODS), "all") if sort == "top" else ""
    if PERIODS.get(period):
        where += f" AND p.created >= '{stamp(NOW - datetime.timedelta(days=PERIODS[period]))}'"
    given = (context.account, *arguments)
    count = context.value(f"SELECT COUNT(*) FROM forum_posts p WHERE {where} AND ?1 = ?1", *given)
    paging = Paging.of(context.query, count, size)
    order = ("p.pinned DESC, " if pinned_first else "") + _ORDERS[sort]
    chosen = f"SELECT p.id FROM forum_posts p WHERE {where} AND ?1 = ?1 ORDER BY {order} LIMIT {size}"
    ids = [row[0] for row in context.rows(f"{chosen} OFFSET {paging.skipped}", *given)]
    return ForumListing(load_posts(context, ids), paging, sort, period)


def load_posts(context: RequestContext, ids: list[int]) -> list[sqlite3.Row]:
    """Return the posts with these ids, in this order."""
    marks = ", ".join(f"?{number}" for number in range(2, len(ids) + 2))
    rows = {row["id"]: row for row in context.rows(f"{_POSTS} WHERE p.id IN ({marks})", context.account, *ids)}
    return [rows[number] for number in ids]


def load_post(context: RequestContext, board: str, number: int) -> sqlite3.Row:
    """Return a post of a board, even if lists no longer show it. Raises NotFound."""
    return context.one(f"{_POSTS} WHERE p.id = ?2 AND b.name = ?3", context.account, number, board)


def comments(context: RequestContext, where: str, *arguments: Any, sort: str = "new") -> ForumListing:
    """Return the comments that match `where`. In it, ?1 is the account and the arguments count from ?2."""
    where = f"{where} AND c.deleted = 0 AND c.removed = 0 AND p.removed = 0 AND p.deleted = 0 AND ?1 = ?1"
    given = (context.account, *arguments)
    joined = "forum_comments c JOIN forum_posts p ON p.id = c.post"
    count = context.value(f"SELECT COUNT(*) FROM {joined} WHERE {where}", *given)
    paging = Paging.of(context.query, count, PER_PAGE)
    order = "c.score DESC, c.id DESC" if sort == "top" else "c.created DESC, c.id DESC"
    page = f"ORDER BY {order} LIMIT {PER_PAGE} OFFSET {paging.skipped}"
    ids = [row[0] for row in context.rows(f"SELECT c.id FROM {joined} WHERE {where} {page}", *given)]
    return ForumListing(load_comments(context, ids), paging, sort)


def load_comments(context: RequestContext, ids: list[int]) -> list[sqlite3.Row]:
    """Return the comments with these ids, in this order."""
    marks = ", ".join(f"?{number}" for number in range(2, len(ids) + 2))
    rows = {row["id"]: row for row in context.rows(f"{_COMMENTED} WHERE c.id IN ({marks})", context.account, *ids)}
    return [rows[number] for number in ids]


def load_comment(context: RequestContext, number: int) -> sqlite3.Row:
    """Return a comment that has not been deleted. Raises NotFound."""
    return context.one(f"{_COMMENTED} WHERE c.id = ?2 AND c.deleted = 0", context.account, number)


def thread(context: RequestContext, post: int) -> list[sqlite3.Row]:
    """Return all comments on a post in chronological order."""
    return context.rows(f"{_COMMENTED} WHERE c.post = ?2 ORDER BY c.id", context.account, post)

"""A board and what somebody may do in it."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.framework.context import RequestContext

_BOARD = """
SELECT b.*,
  (SELECT COUNT(*) FROM forum_subscriptions s WHERE s.board = b.id) AS subscribers,
  EXISTS (SELECT 1 FROM forum_subscriptions s WHERE s.board = b.id AND s.account = ?1) AS subscribed,
  EXISTS (SELECT 1 FROM forum_moderators m WHERE m.board = b.id AND m.user = ?1) AS moderated,
  EXISTS (SELECT 1 FROM forum_bans x WHERE x.board = b.id AND x.user = ?1) AS banned
FROM forum_boards b
"""


def board_of(context: RequestContext, name: str) -> sqlite3.Row:
    """The board of a name. Raises Missing."""
    return context.one(f"{_BOARD} WHERE b.name = ?2", context.account, name)


def moderated(context: RequestContext, name: str) -> sqlite3.Row:
    """The board of a name, for those who moderate it. Raises Forbidden for others."""
    context.require_login()
    board = board_of(context, name)
    context.require(board["moderated"], "Only the moderators of this board may do this.")
    return board


def aside(context: RequestContext, board: sqlite3.Row) -> dict[str, Any]:
    """What the side of a board's pages shows."""
    moderators = (
        "SELECT u.name, m.since FROM forum_moderators m JOIN forum_users u ON u.id = m.user "
        "WHERE m.board = ? ORDER BY m.since, u.name"
    )
    return {
        "board": board,
        "rules": context.rows("SELECT * FROM forum_rules WHERE board = ? ORDER BY position, id", board["id"]),
        "moderators": context.rows(moderators, board["id"]),
    }


def flairs(context: RequestContext, board: int) -> list[tuple[int, str]]:
    """The flairs that posts of a board may have, for a list to choose from."""
    rows = context.rows("SELECT id, name FROM forum_flairs WHERE board = ? ORDER BY name", board)
    return [(0, "No flair"), *((row["id"], row["name"]) for row in rows)]


def may_write(context: RequestContext, board: int) -> None:
    """Raises Forbidden for those who are banned from a board."""
    context.require_login()
    banned = context.row("SELECT 1 FROM forum_bans WHERE board = ? AND user = ?", board, context.account)
    context.require(not banned, "You are banned from this board.")


def moderates(context: RequestContext, board: int) -> bool:
    """Whether the account is a moderator of a board."""
    query = "SELECT 1 FROM forum_moderators WHERE board = ? AND user = ?"
    return context.row(query, board, context.account) is not None

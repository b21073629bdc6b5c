"""Boards, and what an account may do in them."""

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


def load_board(context: RequestContext, name: str) -> sqlite3.Row:
    """Return the board with this name. Raises NotFound."""
    return context.one(f"{_BOARD} WHERE b.name = ?2", context.account, name)


def moderated_board(context: RequestContext, name: str) -> sqlite3.Row:
    """Return the board with this name if the account moderates it, otherwise raise Forbidden."""
    context.require_login()
    board = load_board(context, name)
    context.require(board["moderated"], "Only the moderators of this board may do this.")
    return board


def sidebar(context: RequestContext, board: sqlite3.Row) -> dict[str, Any]:
    """Return the values for the sidebar of a board."""
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
    """Return the flairs of a board as choices of a form."""
    rows = context.rows("SELECT id, name FROM forum_flairs WHERE board = ? ORDER BY name", board)
    return [(0, "No flair"), *((row["id"], row["name"]) for row in rows)]


def require_may_write(context: RequestContext, board: int) -> None:
    """Raise Forbidden if the account is banned from a board."""
    context.require_login()
    banned = context.row("SELECT 1 FROM forum_bans WHERE board = ? AND user = ?", board, context.account)
    context.require(not banned, "You are banned from this board.")


def is_moderator(context: RequestContext, board: int) -> bool:
    """Return True if the account moderates a board."""
    query = "SELECT 1 FROM forum_moderators WHERE board = ? AND user = ?"
    return context.row(query, board, context.account) is not None

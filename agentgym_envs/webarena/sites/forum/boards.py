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


def board_of(visit: RequestContext, name: str) -> sqlite3.Row:
    """The board of a name. Raises Missing."""
    return visit.one(f"{_BOARD} WHERE b.name = ?2", visit.account, name)


def moderated(visit: RequestContext, name: str) -> sqlite3.Row:
    """The board of a name, for those who moderate it. Raises Forbidden for others."""
    visit.must_be_signed_in()
    board = board_of(visit, name)
    visit.must(board["moderated"], "Only the moderators of this board may do this.")
    return board


def aside(visit: RequestContext, board: sqlite3.Row) -> dict[str, Any]:
    """What the side of a board's pages shows."""
    moderators = (
        "SELECT u.name, m.since FROM forum_moderators m JOIN forum_users u ON u.id = m.user "
        "WHERE m.board = ? ORDER BY m.since, u.name"
    )
    return {
        "board": board,
        "rules": visit.rows("SELECT * FROM forum_rules WHERE board = ? ORDER BY position, id", board["id"]),
        "moderators": visit.rows(moderators, board["id"]),
    }


def flairs(visit: RequestContext, board: int) -> list[tuple[int, str]]:
    """The flairs that posts of a board may have, for a list to choose from."""
    rows = visit.rows("SELECT id, name FROM forum_flairs WHERE board = ? ORDER BY name", board)
    return [(0, "No flair"), *((row["id"], row["name"]) for row in rows)]


def may_write(visit: RequestContext, board: int) -> None:
    """Raises Forbidden for those who are banned from a board."""
    visit.must_be_signed_in()
    banned = visit.row("SELECT 1 FROM forum_bans WHERE board = ? AND user = ?", board, visit.account)
    visit.must(not banned, "You are banned from this board.")


def moderates(visit: RequestContext, board: int) -> bool:
    """Whether the account is a moderator of a board."""
    query = "SELECT 1 FROM forum_moderators WHERE board = ? AND user = ?"
    return visit.row(query, board, visit.account) is not None

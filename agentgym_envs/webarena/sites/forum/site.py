"""The site: its routes and accounts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from agentgym_envs.webarena.sites.forum import (
    views_actions,
    views_board,
    views_comments,
    views_lists,
    views_messages,
    views_moderation,
    views_people,
    views_posts,
    views_settings,
)
from agentgym_envs.webarena.sites.forum.drawing import avatar, emblem
from agentgym_envs.webarena.sites.forum.members import ME
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.site import Site

_MODULES = (
    views_lists,
    views_moderation,
    views_posts,
    views_comments,
    views_actions,
    views_messages,
    views_settings,
    views_people,
    views_board,
)
"""`views_board` is the last one, since its path "/b/{name}/{sort}" would match paths of other modules."""
_LAYOUT = """
SELECT u.*,
  (SELECT COUNT(*) FROM forum_notifications WHERE account = u.id AND unread = 1) AS notices,
  (SELECT COUNT(*) FROM forum_messages m JOIN forum_conversations c ON c.id = m.conversation
   WHERE m.unread = 1 AND m.author <> u.id AND u.id IN (c.opener, c.partner)) AS letters
FROM forum_users u WHERE u.id = ?
"""


def _layout(context: RequestContext) -> Mapping[str, Any]:
    """Return the signed-in user with the number of unread notifications and messages; None without login."""
    return {"me": context.row(_LAYOUT, context.account)}


def _account(database: sqlite3.Connection, name: str) -> int:
    query = "SELECT id FROM forum_users WHERE lower(name) = ?1 OR lower(email) = ?1"
    row = database.execute(query, (name.lower(),)).fetchone()
    return int(row[0]) if row else 0


SITE = Site(
    name="forum",
    title="Parley",
    routes=tuple(route for module in _MODULES for route in module.routes.all),
    layout=_layout,
    find_account=_account,
    default_account=lambda database: ME,
    filters={"avatar": avatar, "emblem": emblem},
)

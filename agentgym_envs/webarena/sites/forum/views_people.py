"""Profiles of users."""

from __future__ import annotations

from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_USER = """
SELECT u.*,
  (SELECT COALESCE(SUM(score), 0) FROM forum_posts WHERE author = u.id AND deleted = 0) AS post_karma,
  (SELECT COALESCE(SUM(score), 0) FROM forum_comments WHERE author = u.id AND deleted = 0) AS comment_karma,
  EXISTS (SELECT 1 FROM forum_blocks k WHERE k.account = ?1 AND k.user = u.id) AS blocked
FROM forum_users u WHERE lower(u.name) = lower(?2)
"""


@routes.get("/u/{name}")
def posts(context: RequestContext, name: str) -> Response:
    """List the posts of a user."""
    return _page(context, name, "posts")


@routes.get("/u/{name}/comments")
def comments(context: RequestContext, name: str) -> Response:
    """List the comments of a user."""
    return _page(context, name, "comments")


def _page(context: RequestContext, name: str, tab: str) -> Response:
    user = context.one(_USER, context.account, name)
    sort = context.query.choice("sort", ("new", "top"), "new")
    if tab == "posts":
        result = listing.posts(context, f"{listing.NOT_DELETED} AND p.author = ?2", user["id"], sort=sort)
    else:
        result = listing.comments(context, "c.author = ?2", user["id"], sort=sort)
    query = "SELECT b.name FROM forum_moderators m JOIN forum_boards b ON b.id = m.board WHERE m.user = ? ORDER BY 1"
    return context.page(
        "user.html", user=user, tab=tab, result=result, sort=sort, boards=context.rows(query, user["id"])
    )

"""Comments: create, edit and delete."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import is_moderator, require_may_write
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
MOST_COMMENT = 4_000


@routes.post("/b/{name}/{post:int}/comment")
def comment(context: RequestContext, name: str, post: int) -> Response:
    """Comment on a post, or reply to the comment that the form names."""
    context.require_login()
    row = listing.load_post(context, name, post)
    require_may_write(context, row["board"])
    context.require(not row["deleted"] and not row["removed"], "This post is gone.")
    open_to_me = not row["locked"] or is_moderator(context, row["board"])
    context.require(open_to_me, "This post is locked: nobody can comment on it any more.")
    parent = None
    if context.form.number("parent"):
        parent = listing.load_comment(context, context.form.number("parent"))
        context.require(parent["post"] == post, "That comment belongs to another post.")
    body = context.form.text("body")
    error = _form_error(body)
    if error:
        return context.page("reply.html", post=row, parent=parent, body=body, error=error, status=422)
    written = context.write(
        "INSERT INTO forum_comments (post, parent, author, body, created) VALUES (?, ?, ?, ?, ?)",
        *(post, parent and parent["id"], context.account, body, stamp()),
    )
    _notify(context, (parent or row)["author"], written)
    context.flash("Your comment is up.")
    return Redirect(f"/b/{row['board_name']}/{post}/comment/{written}")


@routes.get("/b/{name}/{post:int}/comment/{number:int}/edit")
def edit(context: RequestContext, name: str, post: int, number: int) -> Response:
    """Show the form for the author of a comment."""
    own = _own(context, name, post, number)
    return context.page("comment_edit.html", comment=own, body=own["body"], error="")


@routes.post("/b/{name}/{post:int}/comment/{number:int}/edit")
def save(context: RequestContext, name: str, post: int, number: int) -> Response:
    """Save a comment."""
    own = _own(context, name, post, number)
    body = context.form.text("body")
    error = _form_error(body)
    if error:
        return context.page("comment_edit.html", comment=own, body=body, error=error, status=422)
    context.write("UPDATE forum_comments SET body = ?, edited = ? WHERE id = ?", body, stamp(), number)
    context.flash("Your comment has been changed.")
    return Redirect(f"/b/{own['board_name']}/{own['post']}/comment/{number}")


@routes.post("/b/{name}/{post:int}/comment/{number:int}/delete")
def delete(context: RequestContext, name: str, post: int, number: int) -> Response:
    """Delete a comment of the account. The replies remain."""
    own = _own(context, name, post, number)
    context.write("UPDATE forum_comments SET deleted = 1 WHERE id = ?", number)
    context.flash("Your comment has been deleted.")
    return Redirect(f"/b/{own['board_name']}/{own['post']}")


def _form_error(body: str) -> str:
    if not body:
        return "A comment needs some words."
    return f"A comment has at most {MOST_COMMENT} characters." if len(body) > MOST_COMMENT else ""


def _own(context: RequestContext, name: str, post: int, number: int) -> sqlite3.Row:
    """Return a comment of the account on that post. Raises Forbidden if another account wrote it."""
    context.require_login()
    row = listing.load_comment(context, number)
    if row["post"] != post or row["board_name"].lower() != name.lower():
        raise NotFound
    context.require(row["author"] == context.account, "Only who wrote a comment may change it.")
    return row


def _notify(context: RequestContext, person: int, comment: int) -> None:
    """Notify the author who got a reply, unless they disabled notifications."""
    wants = context.value("SELECT notify_replies FROM forum_users WHERE id = ?", person)
    if wants and person != context.account:
        context.write("INSERT INTO forum_notifications (account, comment) VALUES (?, ?)", person, comment)

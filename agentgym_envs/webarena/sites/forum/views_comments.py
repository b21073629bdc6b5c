"""Comments: writing, changing and deleting one's own."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import may_write, moderates
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
MOST_COMMENT = 4_000


@routes.post("/b/{name}/{post:int}/comment")
def comment(context: RequestContext, name: str, post: int) -> Response:
    """Comment on a post, or reply to the comment that the form names."""
    context.require_login()
    found = listing.post_of(context, name, post)
    may_write(context, found["board"])
    context.require(not found["deleted"] and not found["removed"], "This post is gone.")
    open_to_me = not found["locked"] or moderates(context, found["board"])
    context.require(open_to_me, "This post is locked: nobody can comment on it any more.")
    parent = None
    if context.form.number("parent"):
        parent = listing.comment_of(context, context.form.number("parent"))
        context.require(parent["post"] == post, "That comment belongs to another post.")
    body = context.form.text("body")
    error = _wrong(body)
    if error:
        return context.page("reply.html", post=found, parent=parent, body=body, error=error, status=422)
    written = context.write(
        "INSERT INTO forum_comments (post, parent, author, body, created) VALUES (?, ?, ?, ?, ?)",
        *(post, parent and parent["id"], context.account, body, stamp()),
    )
    _notify(context, (parent or found)["author"], written)
    context.flash("Your comment is up.")
    return Redirect(f"/b/{found['board_name']}/{post}/comment/{written}")


@routes.get("/b/{name}/{post:int}/comment/{number:int}/edit")
def edit(context: RequestContext, name: str, post: int, number: int) -> Response:
    """The form in which an author changes a comment."""
    own = _own(context, name, post, number)
    return context.page("comment_edit.html", comment=own, body=own["body"], error="")


@routes.post("/b/{name}/{post:int}/comment/{number:int}/edit")
def edited(context: RequestContext, name: str, post: int, number: int) -> Response:
    """Change a comment."""
    own = _own(context, name, post, number)
    body = context.form.text("body")
    error = _wrong(body)
    if error:
        return context.page("comment_edit.html", comment=own, body=body, error=error, status=422)
    context.write("UPDATE forum_comments SET body = ?, edited = ? WHERE id = ?", body, stamp(), number)
    context.flash("Your comment has been changed.")
    return Redirect(f"/b/{own['board_name']}/{own['post']}/comment/{number}")


@routes.post("/b/{name}/{post:int}/comment/{number:int}/delete")
def delete(context: RequestContext, name: str, post: int, number: int) -> Response:
    """Take one's own comment away; what others answered stays."""
    own = _own(context, name, post, number)
    context.write("UPDATE forum_comments SET deleted = 1 WHERE id = ?", number)
    context.flash("Your comment has been deleted.")
    return Redirect(f"/b/{own['board_name']}/{own['post']}")


def _wrong(body: str) -> str:
    if not body:
        return "A comment needs some words."
    return f"A comment has at most {MOST_COMMENT} characters." if len(body) > MOST_COMMENT else ""


def _own(context: RequestContext, name: str, post: int, number: int) -> sqlite3.Row:
    """A comment below that post that the account wrote. Raises Forbidden for those of others."""
    context.require_login()
    found = listing.comment_of(context, number)
    if found["post"] != post or found["board_name"].lower() != name.lower():
        raise NotFound
    context.require(found["author"] == context.account, "Only who wrote a comment may change it.")
    return found


def _notify(context: RequestContext, person: int, comment: int) -> None:
    """Tell whoever was answered, if they want to be told."""
    wants = context.value("SELECT notify_replies FROM forum_users WHERE id = ?", person)
    if wants and person != context.account:
        context.write("INSERT INTO forum_notifications (account, comment) VALUES (?, ?)", person, comment)

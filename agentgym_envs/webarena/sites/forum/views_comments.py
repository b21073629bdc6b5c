"""Comments: writing, changing and deleting one's own."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import may_write, moderates
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Missing, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
MOST_COMMENT = 4_000


@routes.post("/b/{name}/{post:int}/comment")
def comment(visit: RequestContext, name: str, post: int) -> Response:
    """Comment on a post, or reply to the comment that the form names."""
    visit.must_be_signed_in()
    found = listing.post_of(visit, name, post)
    may_write(visit, found["board"])
    visit.must(not found["deleted"] and not found["removed"], "This post is gone.")
    open_to_me = not found["locked"] or moderates(visit, found["board"])
    visit.must(open_to_me, "This post is locked: nobody can comment on it any more.")
    parent = None
    if visit.form.number("parent"):
        parent = listing.comment_of(visit, visit.form.number("parent"))
        visit.must(parent["post"] == post, "That comment belongs to another post.")
    body = visit.form.text("body")
    wrong = _wrong(body)
    if wrong:
        return visit.page("reply.html", post=found, parent=parent, body=body, wrong=wrong, status=422)
    written = visit.write(
        "INSERT INTO forum_comments (post, parent, author, body, created) VALUES (?, ?, ?, ?, ?)",
        *(post, parent and parent["id"], visit.account, body, stamp()),
    )
    _notify(visit, (parent or found)["author"], written)
    visit.say("Your comment is up.")
    return Redirect(f"/b/{found['board_name']}/{post}/comment/{written}")


@routes.get("/b/{name}/{post:int}/comment/{number:int}/edit")
def edit(visit: RequestContext, name: str, post: int, number: int) -> Response:
    """The form in which an author changes a comment."""
    own = _own(visit, name, post, number)
    return visit.page("comment_edit.html", comment=own, body=own["body"], wrong="")


@routes.post("/b/{name}/{post:int}/comment/{number:int}/edit")
def edited(visit: RequestContext, name: str, post: int, number: int) -> Response:
    """Change a comment."""
    own = _own(visit, name, post, number)
    body = visit.form.text("body")
    wrong = _wrong(body)
    if wrong:
        return visit.page("comment_edit.html", comment=own, body=body, wrong=wrong, status=422)
    visit.write("UPDATE forum_comments SET body = ?, edited = ? WHERE id = ?", body, stamp(), number)
    visit.say("Your comment has been changed.")
    return Redirect(f"/b/{own['board_name']}/{own['post']}/comment/{number}")


@routes.post("/b/{name}/{post:int}/comment/{number:int}/delete")
def delete(visit: RequestContext, name: str, post: int, number: int) -> Response:
    """Take one's own comment away; what others answered stays."""
    own = _own(visit, name, post, number)
    visit.write("UPDATE forum_comments SET deleted = 1 WHERE id = ?", number)
    visit.say("Your comment has been deleted.")
    return Redirect(f"/b/{own['board_name']}/{own['post']}")


def _wrong(body: str) -> str:
    if not body:
        return "A comment needs some words."
    return f"A comment has at most {MOST_COMMENT} characters." if len(body) > MOST_COMMENT else ""


def _own(visit: RequestContext, name: str, post: int, number: int) -> sqlite3.Row:
    """A comment below that post that the account wrote. Raises Forbidden for those of others."""
    visit.must_be_signed_in()
    found = listing.comment_of(visit, number)
    if found["post"] != post or found["board_name"].lower() != name.lower():
        raise Missing
    visit.must(found["author"] == visit.account, "Only who wrote a comment may change it.")
    return found


def _notify(visit: RequestContext, person: int, comment: int) -> None:
    """Tell whoever was answered, if they want to be told."""
    wants = visit.value("SELECT notify_replies FROM forum_users WHERE id = ?", person)
    if wants and person != visit.account:
        visit.write("INSERT INTO forum_notifications (account, comment) VALUES (?, ?)", person, comment)

"""Actions of a reader: vote, save, hide, subscribe, block and report."""

from __future__ import annotations

import json
import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import load_board
from agentgym_envs.webarena.sites.forum.wordlists import REPORTS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, RawResponse, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_TABLES = {"post": "forum_posts", "comment": "forum_comments"}


@routes.post("/vote/{kind}/{number:int}")
def vote(context: RequestContext, kind: str, number: int) -> Response:
    """Upvote (1), downvote (-1) or retract the vote (0). With "quiet", return the score as JSON, not a redirect."""
    context.require_login()
    row = _target(context, kind, number)
    value = context.form.number("value", 0, least=-1, most=1)
    old = context.row(f"SELECT id, value FROM forum_votes WHERE account = ? AND {kind} = ?", context.account, number)
    before = old["value"] if old else 0
    if old and not value:
        context.write("DELETE FROM forum_votes WHERE id = ?", old["id"])
    elif old:
        context.write("UPDATE forum_votes SET value = ? WHERE id = ?", value, old["id"])
    elif value:
        context.write(
            f"INSERT INTO forum_votes (account, {kind}, value) VALUES (?, ?, ?)", context.account, number, value
        )
    score = row["score"] + value - before
    context.write(f"UPDATE {_TABLES[kind]} SET score = ? WHERE id = ?", score, number)
    if context.form.is_checked("quiet"):
        return RawResponse(json.dumps({"score": score, "value": value}), "application/json")
    return context.redirect_back()


@routes.post("/save/{kind}/{number:int}")
def save(context: RequestContext, kind: str, number: int) -> Response:
    """Save a post or comment, or unsave it."""
    context.require_login()
    _target(context, kind, number)
    old = context.row(f"SELECT id FROM forum_saved WHERE account = ? AND {kind} = ?", context.account, number)
    if old:
        context.write("DELETE FROM forum_saved WHERE id = ?", old["id"])
        context.flash(f"The {kind} is no longer saved.")
    else:
        query = f"INSERT INTO forum_saved (account, {kind}, created) VALUES (?, ?, ?)"
        context.write(query, context.account, number, stamp())
        context.flash(f"The {kind} has been saved.")
    return context.redirect_back()


@routes.post("/hide/{number:int}")
def hide(context: RequestContext, number: int) -> Response:
    """Hide a post from lists, or show it again."""
    context.require_login()
    _target(context, "post", number)
    if context.row("SELECT 1 FROM forum_hidden WHERE account = ? AND post = ?", context.account, number):
        context.write("DELETE FROM forum_hidden WHERE account = ? AND post = ?", context.account, number)
        context.flash("The post is listed again.")
    else:
        context.write("INSERT INTO forum_hidden (account, post) VALUES (?, ?)", context.account, number)
        context.flash("The post has been hidden.")
    return context.redirect_back()


@routes.post("/b/{name}/subscribe")
def subscribe(context: RequestContext, name: str) -> Response:
    """Subscribe to a board, or unsubscribe."""
    context.require_login()
    board = load_board(context, name)
    if board["subscribed"]:
        context.write("DELETE FROM forum_subscriptions WHERE account = ? AND board = ?", context.account, board["id"])
        context.flash(f"You no longer subscribe to {board['name']}.")
    else:
        context.write("INSERT INTO forum_subscriptions (account, board) VALUES (?, ?)", context.account, board["id"])
        context.flash(f"You subscribe to {board['name']} now.")
    return context.redirect_back(f"/b/{board['name']}")


@routes.get("/report/{kind}/{number:int}")
def report(context: RequestContext, kind: str, number: int) -> Response:
    """Show the form for a report to the moderators."""
    context.require_login()
    return context.page("report.html", kind=kind, target=_target(context, kind, number), reasons=REPORTS, error="")


@routes.post("/report/{kind}/{number:int}")
def send_report(context: RequestContext, kind: str, number: int) -> Response:
    """Send a report."""
    context.require_login()
    target = _target(context, kind, number)
    reason = context.form.choice("reason", REPORTS)
    if not reason:
        values = {"kind": kind, "target": target, "reasons": REPORTS, "error": "Choose a reason."}
        return context.page("report.html", status=422, **values)
    context.write(
        f"INSERT INTO forum_reports (reporter, {kind}, reason, created) VALUES (?, ?, ?, ?)",
        *(context.account, number, reason, stamp()),
    )
    context.flash("Thank you. The moderators will look at it.")
    post = number if kind == "post" else target["post"]
    return Redirect(f"/b/{target['board_name']}/{post}")


@routes.post("/u/{name}/block")
def block(context: RequestContext, name: str) -> Response:
    """Block a user, or unblock them."""
    context.require_login()
    person = context.one("SELECT id, name FROM forum_users WHERE name = ?", name)
    context.require(person["id"] != context.account, "You cannot block yourself.")
    if context.row("SELECT 1 FROM forum_blocks WHERE account = ? AND user = ?", context.account, person["id"]):
        context.write("DELETE FROM forum_blocks WHERE account = ? AND user = ?", context.account, person["id"])
        context.flash(f"You no longer block {person['name']}.")
    else:
        query = "INSERT INTO forum_blocks (account, user, created, note) VALUES (?, ?, ?, ?)"
        context.write(query, context.account, person["id"], stamp(), context.form.text("note", most=200))
        context.flash(f"You have blocked {person['name']}.")
    return context.redirect_back(f"/u/{person['name']}")


def _target(context: RequestContext, kind: str, number: int) -> sqlite3.Row:
    """Return a post or comment that is not deleted. Raises NotFound."""
    if kind == "comment":
        return listing.load_comment(context, number)
    if kind != "post":
        raise NotFound
    row = listing.load_posts(context, [number]) if context.row("SELECT 1 FROM forum_posts WHERE id = ?", number) else []
    if not row or row[0]["deleted"]:
        raise NotFound
    return row[0]

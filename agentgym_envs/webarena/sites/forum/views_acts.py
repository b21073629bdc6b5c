"""What a reader does with a click: vote, save, hide, subscribe, block, report."""

from __future__ import annotations

import json
import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import board_of
from agentgym_envs.webarena.sites.forum.wordlists import REPORTS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Data, Missing, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_TABLES = {"post": "forum_posts", "comment": "forum_comments"}


@routes.post("/vote/{kind}/{number:int}")
def vote(visit: RequestContext, kind: str, number: int) -> Response:
    """Vote for (1) or against (-1) something, or no longer (0). A page's script is told the score instead of a page."""
    visit.must_be_signed_in()
    found = _thing(visit, kind, number)
    value = visit.form.number("value", 0, least=-1, most=1)
    old = visit.row(f"SELECT id, value FROM forum_votes WHERE account = ? AND {kind} = ?", visit.account, number)
    before = old["value"] if old else 0
    if old and not value:
        visit.write("DELETE FROM forum_votes WHERE id = ?", old["id"])
    elif old:
        visit.write("UPDATE forum_votes SET value = ? WHERE id = ?", value, old["id"])
    elif value:
        visit.write(f"INSERT INTO forum_votes (account, {kind}, value) VALUES (?, ?, ?)", visit.account, number, value)
    score = found["score"] + value - before
    visit.write(f"UPDATE {_TABLES[kind]} SET score = ? WHERE id = ?", score, number)
    if visit.form.ticked("quiet"):
        return Data(json.dumps({"score": score, "value": value}), "application/json")
    return visit.back()


@routes.post("/save/{kind}/{number:int}")
def save(visit: RequestContext, kind: str, number: int) -> Response:
    """Keep something for later, or no longer, if it was kept."""
    visit.must_be_signed_in()
    _thing(visit, kind, number)
    old = visit.row(f"SELECT id FROM forum_saved WHERE account = ? AND {kind} = ?", visit.account, number)
    if old:
        visit.write("DELETE FROM forum_saved WHERE id = ?", old["id"])
        visit.say(f"The {kind} is no longer saved.")
    else:
        query = f"INSERT INTO forum_saved (account, {kind}, created) VALUES (?, ?, ?)"
        visit.write(query, visit.account, number, stamp())
        visit.say(f"The {kind} has been saved.")
    return visit.back()


@routes.post("/hide/{number:int}")
def hide(visit: RequestContext, number: int) -> Response:
    """Have a post no longer listed, or listed again."""
    visit.must_be_signed_in()
    _thing(visit, "post", number)
    if visit.row("SELECT 1 FROM forum_hidden WHERE account = ? AND post = ?", visit.account, number):
        visit.write("DELETE FROM forum_hidden WHERE account = ? AND post = ?", visit.account, number)
        visit.say("The post is listed again.")
    else:
        visit.write("INSERT INTO forum_hidden (account, post) VALUES (?, ?)", visit.account, number)
        visit.say("The post has been hidden.")
    return visit.back()


@routes.post("/b/{name}/subscribe")
def subscribe(visit: RequestContext, name: str) -> Response:
    """Subscribe to a board, or no longer."""
    visit.must_be_signed_in()
    board = board_of(visit, name)
    if board["subscribed"]:
        visit.write("DELETE FROM forum_subscriptions WHERE account = ? AND board = ?", visit.account, board["id"])
        visit.say(f"You no longer subscribe to {board['name']}.")
    else:
        visit.write("INSERT INTO forum_subscriptions (account, board) VALUES (?, ?)", visit.account, board["id"])
        visit.say(f"You subscribe to {board['name']} now.")
    return visit.back(f"/b/{board['name']}")


@routes.get("/report/{kind}/{number:int}")
def report(visit: RequestContext, kind: str, number: int) -> Response:
    """The form in which something is reported to its moderators."""
    visit.must_be_signed_in()
    return visit.page("report.html", kind=kind, thing=_thing(visit, kind, number), reasons=REPORTS, wrong="")


@routes.post("/report/{kind}/{number:int}")
def reported(visit: RequestContext, kind: str, number: int) -> Response:
    """Report something."""
    visit.must_be_signed_in()
    thing = _thing(visit, kind, number)
    reason = visit.form.choice("reason", REPORTS)
    if not reason:
        values = {"kind": kind, "thing": thing, "reasons": REPORTS, "wrong": "Choose a reason."}
        return visit.page("report.html", status=422, **values)
    visit.write(
        f"INSERT INTO forum_reports (reporter, {kind}, reason, created) VALUES (?, ?, ?, ?)",
        *(visit.account, number, reason, stamp()),
    )
    visit.say("Thank you. The moderators will look at it.")
    post = number if kind == "post" else thing["post"]
    return Redirect(f"/b/{thing['board_name']}/{post}")


@routes.post("/u/{name}/block")
def block(visit: RequestContext, name: str) -> Response:
    """See no more of somebody, or again."""
    visit.must_be_signed_in()
    person = visit.one("SELECT id, name FROM forum_users WHERE name = ?", name)
    visit.must(person["id"] != visit.account, "You cannot block yourself.")
    if visit.row("SELECT 1 FROM forum_blocks WHERE account = ? AND user = ?", visit.account, person["id"]):
        visit.write("DELETE FROM forum_blocks WHERE account = ? AND user = ?", visit.account, person["id"])
        visit.say(f"You no longer block {person['name']}.")
    else:
        query = "INSERT INTO forum_blocks (account, user, created, note) VALUES (?, ?, ?, ?)"
        visit.write(query, visit.account, person["id"], stamp(), visit.form.text("note", most=200))
        visit.say(f"You have blocked {person['name']}.")
    return visit.back(f"/u/{person['name']}")


def _thing(visit: RequestContext, kind: str, number: int) -> sqlite3.Row:
    """A post or a comment that is still there. Raises Missing."""
    if kind == "comment":
        return listing.comment_of(visit, number)
    if kind != "post":
        raise Missing
    found = listing.posts_of(visit, [number]) if visit.row("SELECT 1 FROM forum_posts WHERE id = ?", number) else []
    if not found or found[0]["deleted"]:
        raise Missing
    return found[0]

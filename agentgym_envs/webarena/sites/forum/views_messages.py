"""Private messages, and notifications of replies."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Missing, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
MOST_MESSAGE, MOST_SUBJECT = 4_000, 120
_MINE = """
FROM forum_conversations c
JOIN forum_users u ON u.id = CASE WHEN c.opener = ?1 THEN c.partner ELSE c.opener END
WHERE ?1 IN (c.opener, c.partner)
"""
_UNREAD = "(SELECT COUNT(*) FROM forum_messages m WHERE m.conversation = c.id AND m.unread = 1 AND m.author <> ?1)"
_LATEST = "(SELECT MAX(created) FROM forum_messages m WHERE m.conversation = c.id)"


@routes.get("/messages")
def inbox(visit: RequestContext) -> Response:
    """All conversations, the latest first."""
    visit.must_be_signed_in()
    paging = Paging.of(visit.query, visit.value(f"SELECT COUNT(*) {_MINE}", visit.account), 15)
    rows = visit.rows(
        f"SELECT c.*, u.name AS other, {_UNREAD} AS unread, {_LATEST} AS latest, "
        f"(SELECT COUNT(*) FROM forum_messages m WHERE m.conversation = c.id) AS count {_MINE} "
        f"ORDER BY latest DESC, c.id DESC LIMIT 15 OFFSET ?2",
        *(visit.account, paging.skipped),
    )
    return visit.page("messages.html", rows=rows, paging=paging)


@routes.get("/messages/new")
def new(visit: RequestContext) -> Response:
    """The form for a message to somebody."""
    visit.must_be_signed_in()
    values = {"to": visit.query.text("to", most=60), "subject": "", "body": ""}
    return visit.page("message_new.html", values=values, wrong="")


@routes.post("/messages/new")
def sent(visit: RequestContext) -> Response:
    """Send a message, which opens a conversation."""
    visit.must_be_signed_in()
    values = {key: visit.form.text(key) for key in ("to", "subject", "body")}
    person = visit.value("SELECT id FROM forum_users WHERE lower(name) = lower(?)", values["to"])
    wrong = _wrong(visit, person, values)
    if wrong:
        return visit.page("message_new.html", values=values, wrong=wrong, status=422)
    query = "INSERT INTO forum_conversations (opener, partner, subject) VALUES (?, ?, ?)"
    conversation = visit.write(query, visit.account, person, values["subject"])
    _add(visit, conversation, values["body"])
    visit.say("Your message has been sent.")
    return Redirect(f"/messages/{conversation}")


@routes.get("/messages/{number:int}")
def conversation(visit: RequestContext, number: int) -> Response:
    """What was said in a conversation."""
    return _page(visit, _conversation(visit, number), "", "")


@routes.post("/messages/{number:int}")
def answer(visit: RequestContext, number: int) -> Response:
    """Answer; whoever answers has read what there was."""
    found = _conversation(visit, number)
    body = visit.form.text("body")
    if not body or len(body) > MOST_MESSAGE:
        return _page(visit, found, body, f"A message has 1 to {MOST_MESSAGE} characters.")
    _read(visit, number)
    _add(visit, number, body)
    visit.say("Your message has been sent.")
    return Redirect(f"/messages/{number}")


@routes.post("/messages/{number:int}/read")
def read(visit: RequestContext, number: int) -> Response:
    """Mark a conversation as read."""
    _conversation(visit, number)
    _read(visit, number)
    visit.say("The conversation is marked as read.")
    return visit.back("/messages")


@routes.get("/notifications")
def notifications(visit: RequestContext) -> Response:
    """What others answered, the latest first."""
    visit.must_be_signed_in()
    where = "n.account = ?1 AND n.comment = c.id AND c.deleted = 0 AND c.removed = 0"
    counted = f"SELECT COUNT(*) FROM forum_notifications n, forum_comments c WHERE {where}"
    paging = Paging.of(visit.query, visit.value(counted, visit.account), listing.PER_PAGE)
    rows = visit.rows(
        f"SELECT n.id, n.comment, n.unread FROM forum_notifications n, forum_comments c WHERE {where} "
        f"ORDER BY n.comment DESC LIMIT {listing.PER_PAGE} OFFSET ?2",
        *(visit.account, paging.skipped),
    )
    comments = listing.comments_of(visit, [row["comment"] for row in rows])
    return visit.page("notifications.html", pairs=list(zip(rows, comments, strict=True)), paging=paging)


@routes.post("/notifications/read")
def read_all(visit: RequestContext) -> Response:
    """Mark all notifications as read."""
    visit.must_be_signed_in()
    visit.write("UPDATE forum_notifications SET unread = 0 WHERE account = ? AND unread = 1", visit.account)
    visit.say("All notifications are marked as read.")
    return Redirect("/notifications")


@routes.post("/notifications/{number:int}/read")
def read_one(visit: RequestContext, number: int) -> Response:
    """Mark one notification as read."""
    visit.must_be_signed_in()
    found = visit.one("SELECT account FROM forum_notifications WHERE id = ?", number)
    visit.must(found["account"] == visit.account, "That notification is not yours.")
    visit.write("UPDATE forum_notifications SET unread = 0 WHERE id = ?", number)
    visit.say("The notification is marked as read.")
    return visit.back("/notifications")


def _wrong(visit: RequestContext, person: int | None, values: dict[str, str]) -> str:
    if person is None:
        return "There is no user of that name."
    if person == visit.account:
        return "You cannot write to yourself."
    if not values["subject"] or len(values["subject"]) > MOST_SUBJECT:
        return f"A subject has 1 to {MOST_SUBJECT} characters."
    if not values["body"] or len(values["body"]) > MOST_MESSAGE:
        return f"A message has 1 to {MOST_MESSAGE} characters."
    return ""


def _conversation(visit: RequestContext, number: int) -> sqlite3.Row:
    """One of the account's own. Raises Missing for all others: nobody is told that they exist."""
    visit.must_be_signed_in()
    found = visit.row(f"SELECT c.*, u.name AS other, {_UNREAD} AS unread {_MINE} AND c.id = ?2", visit.account, number)
    if found is None:
        raise Missing
    return found


def _page(visit: RequestContext, found: sqlite3.Row, body: str, wrong: str) -> Response:
    rows = visit.rows(
        "SELECT m.*, u.name, u.avatar FROM forum_messages m JOIN forum_users u ON u.id = m.author "
        "WHERE m.conversation = ? ORDER BY m.id",
        found["id"],
    )
    values = {"conversation": found, "rows": rows[-30:], "body": body, "wrong": wrong}
    return visit.page("conversation.html", status=422 if wrong else 200, **values)


def _read(visit: RequestContext, number: int) -> None:
    query = "UPDATE forum_messages SET unread = 0 WHERE conversation = ? AND author <> ? AND unread = 1"
    visit.write(query, number, visit.account)


def _add(visit: RequestContext, conversation: int, body: str) -> None:
    query = "INSERT INTO forum_messages (conversation, author, body, created, unread) VALUES (?, ?, ?, ?, 1)"
    visit.write(query, conversation, visit.account, body, stamp())

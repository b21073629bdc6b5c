"""Private messages, and notifications of replies."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
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
def inbox(context: RequestContext) -> Response:
    """All conversations, the latest first."""
    context.require_login()
    paging = Paging.of(context.query, context.value(f"SELECT COUNT(*) {_MINE}", context.account), 15)
    rows = context.rows(
        f"SELECT c.*, u.name AS other, {_UNREAD} AS unread, {_LATEST} AS latest, "
        f"(SELECT COUNT(*) FROM forum_messages m WHERE m.conversation = c.id) AS count {_MINE} "
        f"ORDER BY latest DESC, c.id DESC LIMIT 15 OFFSET ?2",
        *(context.account, paging.skipped),
    )
    return context.page("messages.html", rows=rows, paging=paging)


@routes.get("/messages/new")
def new(context: RequestContext) -> Response:
    """The form for a message to somebody."""
    context.require_login()
    values = {"to": context.query.text("to", most=60), "subject": "", "body": ""}
    return context.page("message_new.html", values=values, error="")


@routes.post("/messages/new")
def sent(context: RequestContext) -> Response:
    """Send a message, which opens a conversation."""
    context.require_login()
    values = {key: context.form.text(key) for key in ("to", "subject", "body")}
    person = context.value("SELECT id FROM forum_users WHERE lower(name) = lower(?)", values["to"])
    error = _wrong(context, person, values)
    if error:
        return context.page("message_new.html", values=values, error=error, status=422)
    query = "INSERT INTO forum_conversations (opener, partner, subject) VALUES (?, ?, ?)"
    conversation = context.write(query, context.account, person, values["subject"])
    _add(context, conversation, values["body"])
    context.flash("Your message has been sent.")
    return Redirect(f"/messages/{conversation}")


@routes.get("/messages/{number:int}")
def conversation(context: RequestContext, number: int) -> Response:
    """What was said in a conversation."""
    return _page(context, _conversation(context, number), "", "")


@routes.post("/messages/{number:int}")
def answer(context: RequestContext, number: int) -> Response:
    """Answer; whoever answers has read what there was."""
    found = _conversation(context, number)
    body = context.form.text("body")
    if not body or len(body) > MOST_MESSAGE:
        return _page(context, found, body, f"A message has 1 to {MOST_MESSAGE} characters.")
    _read(context, number)
    _add(context, number, body)
    context.flash("Your message has been sent.")
    return Redirect(f"/messages/{number}")


@routes.post("/messages/{number:int}/read")
def read(context: RequestContext, number: int) -> Response:
    """Mark a conversation as read."""
    _conversation(context, number)
    _read(context, number)
    context.flash("The conversation is marked as read.")
    return context.redirect_back("/messages")


@routes.get("/notifications")
def notifications(context: RequestContext) -> Response:
    """What others answered, the latest first."""
    context.require_login()
    where = "n.account = ?1 AND n.comment = c.id AND c.deleted = 0 AND c.removed = 0"
    counted = f"SELECT COUNT(*) FROM forum_notifications n, forum_comments c WHERE {where}"
    paging = Paging.of(context.query, context.value(counted, context.account), listing.PER_PAGE)
    rows = context.rows(
        f"SELECT n.id, n.comment, n.unread FROM forum_notifications n, forum_comments c WHERE {where} "
        f"ORDER BY n.comment DESC LIMIT {listing.PER_PAGE} OFFSET ?2",
        *(context.account, paging.skipped),
    )
    comments = listing.comments_of(context, [row["comment"] for row in rows])
    return context.page("notifications.html", pairs=list(zip(rows, comments, strict=True)), paging=paging)


@routes.post("/notifications/read")
def read_all(context: RequestContext) -> Response:
    """Mark all notifications as read."""
    context.require_login()
    context.write("UPDATE forum_notifications SET unread = 0 WHERE account = ? AND unread = 1", context.account)
    context.flash("All notifications are marked as read.")
    return Redirect("/notifications")


@routes.post("/notifications/{number:int}/read")
def read_one(context: RequestContext, number: int) -> Response:
    """Mark one notification as read."""
    context.require_login()
    found = context.one("SELECT account FROM forum_notifications WHERE id = ?", number)
    context.require(found["account"] == context.account, "That notification is not yours.")
    context.write("UPDATE forum_notifications SET unread = 0 WHERE id = ?", number)
    context.flash("The notification is marked as read.")
    return context.redirect_back("/notifications")


def _wrong(context: RequestContext, person: int | None, values: dict[str, str]) -> str:
    if person is None:
        return "There is no user of that name."
    if person == context.account:
        return "You cannot write to yourself."
    if not values["subject"] or len(values["subject"]) > MOST_SUBJECT:
        return f"A subject has 1 to {MOST_SUBJECT} characters."
    if not values["body"] or len(values["body"]) > MOST_MESSAGE:
        return f"A message has 1 to {MOST_MESSAGE} characters."
    return ""


def _conversation(context: RequestContext, number: int) -> sqlite3.Row:
    """One of the account's own. Raises Missing for all others: nobody is told that they exist."""
    context.require_login()
    found = context.row(
        f"SELECT c.*, u.name AS other, {_UNREAD} AS unread {_MINE} AND c.id = ?2", context.account, number
    )
    if found is None:
        raise NotFound
    return found


def _page(context: RequestContext, found: sqlite3.Row, body: str, error: str) -> Response:
    rows = context.rows(
        "SELECT m.*, u.name, u.avatar FROM forum_messages m JOIN forum_users u ON u.id = m.author "
        "WHERE m.conversation = ? ORDER BY m.id",
        found["id"],
    )
    values = {"conversation": found, "rows": rows[-30:], "body": body, "error": error}
    return context.page("conversation.html", status=422 if error else 200, **values)


def _read(context: RequestContext, number: int) -> None:
    query = "UPDATE forum_messages SET unread = 0 WHERE conversation = ? AND author <> ? AND unread = 1"
    context.write(query, number, context.account)


def _add(context: RequestContext, conversation: int, body: str) -> None:
    query = "INSERT INTO forum_messages (conversation, author, body, created, unread) VALUES (?, ?, ?, ?, 1)"
    context.write(query, conversation, context.account, body, stamp())

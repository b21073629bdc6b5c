"""Private messages and notifications of replies."""

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
    """List the conversations, newest first."""
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
    """Show the form for a message."""
    context.require_login()
    values = {"to": context.query.text("to", most=60), "subject": "", "body": ""}
    return context.page("message_new.html", values=values, error="")


@routes.post("/messages/new")
def send(context: RequestContext) -> Response:
    """Send a message, which starts a conversation."""
    context.require_login()
    values = {key: context.form.text(key) for key in ("to", "subject", "body")}
    person = context.value("SELECT id FROM forum_users WHERE lower(name) = lower(?)", values["to"])
    error = _form_error(context, person, values)
    if error:
        return context.page("message_new.html", values=values, error=error, status=422)
    query = "INSERT INTO forum_conversations (opener, partner, subject) VALUES (?, ?, ?)"
    conversation = context.write(query, context.account, person, values["subject"])
    _add(context, conversation, values["body"])
    context.flash("Your message has been sent.")
    return Redirect(f"/messages/{conversation}")


@routes.get("/messages/{number:int}")
def conversation(context: RequestContext, number: int) -> Response:
    """Show the messages of a conversation."""
    return _page(context, _conversation(context, number), "", "")


@routes.post("/messages/{number:int}")
def reply(context: RequestContext, number: int) -> Response:
    """Send a reply. It marks the conversation as read."""
    row = _conversation(context, number)
    body = context.form.text("body")
    if not body or len(body) > MOST_MESSAGE:
        return _page(context, row, body, f"A message has 1 to {MOST_MESSAGE} characters.")
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
    """List the replies to the account, newest first."""
    context.require_login()
    where = "n.account = ?1 AND n.comment = c.id AND c.deleted = 0 AND c.removed = 0"
    counted = f"SELECT COUNT(*) FROM forum_notifications n, forum_comments c WHERE {where}"
    paging = Paging.of(context.query, context.value(counted, context.account), listing.PER_PAGE)
    rows = context.rows(
        f"SELECT n.id, n.comment, n.unread FROM forum_notifications n, forum_comments c WHERE {where} "
        f"ORDER BY n.comment DESC LIMIT {listing.PER_PAGE} OFFSET ?2",
        *(context.account, paging.skipped),
    )
    comments = listing.load_comments(context, [row["comment"] for row in rows])
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
    row = context.one("SELECT account FROM forum_notifications WHERE id = ?", number)
    context.require(row["account"] == context.account, "That notification is not yours.")
    context.write("UPDATE forum_notifications SET unread = 0 WHERE id = ?", number)
    context.flash("The notification is marked as read.")
    return context.redirect_back("/notifications")


def _form_error(context: RequestContext, person: int | None, values: dict[str, str]) -> str:
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
    """Return a conversation of the account. Raises NotFound for those of others, so that they stay secret."""
    context.require_login()
    row = context.row(
        f"SELECT c.*, u.name AS other, {_UNREAD} AS unread {_MINE} AND c.id = ?2", context.account, number
    )
    if row is None:
        raise NotFound
    return row


def _page(context: RequestContext, row: sqlite3.Row, body: str, error: str) -> Response:
    rows = context.rows(
        "SELECT m.*, u.name, u.avatar FROM forum_messages m JOIN forum_users u ON u.id = m.author "
        "WHERE m.conversation = ? ORDER BY m.id",
        row["id"],
    )
    values = {"conversation": row, "rows": rows[-30:], "body": body, "error": error}
    return context.page("conversation.html", status=422 if error else 200, **values)


def _read(context: RequestContext, number: int) -> None:
    query = "UPDATE forum_messages SET unread = 0 WHERE conversation = ? AND author <> ? AND unread = 1"
    context.write(query, number, context.account)


def _add(context: RequestContext, conversation: int, body: str) -> None:
    query = "INSERT INTO forum_messages (conversation, author, body, created, unread) VALUES (?, ?, ?, ?, 1)"
    context.write(query, conversation, context.account, body, stamp())

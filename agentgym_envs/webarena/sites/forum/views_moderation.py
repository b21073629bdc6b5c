"""Moderation: lock, pin and remove posts, handle reports, ban users, and edit the texts of a board."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import moderated_board, sidebar
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_DONE = {
    ("locked", 1): "The post is locked.",
    ("locked", 0): "The post is open again.",
    ("pinned", 1): "The post is pinned to the top of the board.",
    ("pinned", 0): "The post is no longer pinned.",
    ("removed", 1): "The post has been removed.",
    ("removed", 0): "The post is back.",
}


@routes.post("/b/{name}/{post:int}/set/{flag}")
def set_flag(context: RequestContext, name: str, post: int, flag: str) -> Response:
    """Lock, pin or remove a post, or undo that."""
    moderated_board(context, name)
    row = listing.load_post(context, name, post)
    if flag not in ("locked", "pinned", "removed") or row["deleted"]:
        raise NotFound
    value = 0 if row[flag] else 1
    context.write(f"UPDATE forum_posts SET {flag} = ? WHERE id = ?", value, post)
    context.flash(_DONE[flag, value])
    return Redirect(f"/b/{row['board_name']}/{post}")


@routes.post("/b/{name}/{post:int}/comment/{number:int}/remove")
def remove_comment(context: RequestContext, name: str, post: int, number: int) -> Response:
    """Remove a comment, or restore it."""
    board = moderated_board(context, name)
    row = listing.load_comment(context, number)
    context.require(row["board"] == board["id"] and row["post"] == post, "That comment is in another board.")
    context.write("UPDATE forum_comments SET removed = ? WHERE id = ?", 0 if row["removed"] else 1, number)
    context.flash("The comment is back." if row["removed"] else "The comment has been removed.")
    return Redirect(f"/b/{board['name']}/{row['post']}")


@routes.get("/b/{name}/reports")
def reports(context: RequestContext, name: str) -> Response:
    """List the open or the settled reports of a board."""
    board = moderated_board(context, name)
    state = context.query.choice("state", ("open", "settled"), "open")
    where = "COALESCE(p.board, q.board) = ? AND r.resolved = ?"
    joined = (
        "forum_reports r LEFT JOIN forum_posts p ON p.id = r.post LEFT JOIN forum_comments c ON c.id = r.comment "
        "LEFT JOIN forum_posts q ON q.id = c.post JOIN forum_users u ON u.id = r.reporter"
    )
    given = (board["id"], int(state == "settled"))
    paging = Paging.of(context.query, context.value(f"SELECT COUNT(*) FROM {joined} WHERE {where}", *given), 10)
    rows = context.rows(
        f"SELECT r.*, u.name AS reporter_name, COALESCE(p.title, q.title) AS title, COALESCE(p.id, q.id) AS post_id, "
        f"c.body, (SELECT name FROM forum_users WHERE id = COALESCE(c.author, p.author)) AS author_name "
        f"FROM {joined} WHERE {where} ORDER BY r.created DESC, r.id DESC LIMIT 10 OFFSET ?",
        *(*given, paging.skipped),
    )
    return context.page("mod_reports.html", board=board, rows=rows, paging=paging, state=state)


@routes.post("/b/{name}/reports/{number:int}/{what}")
def settle(context: RequestContext, name: str, number: int, what: str) -> Response:
    """Dismiss a report, or remove its target."""
    board = moderated_board(context, name)
    report = _report(context, board, number)
    if what not in ("dismiss", "remove"):
        raise NotFound
    context.write("UPDATE forum_reports SET resolved = 1 WHERE id = ?", number)
    if what == "remove":
        table, key = ("forum_posts", "post") if report["post"] else ("forum_comments", "comment")
        context.write(f"UPDATE {table} SET removed = 1 WHERE id = ?", report[key])
    context.flash("What was reported has been removed." if what == "remove" else "The report has been dismissed.")
    return Redirect(f"/b/{board['name']}/reports")


def _report(context: RequestContext, board: sqlite3.Row, number: int) -> sqlite3.Row:
    """Return a report in this board. Raises NotFound."""
    return context.one(
        "SELECT r.* FROM forum_reports r LEFT JOIN forum_comments c ON c.id = r.comment "
        "JOIN forum_posts p ON p.id = COALESCE(r.post, c.post) WHERE r.id = ? AND p.board = ?",
        *(number, board["id"]),
    )


@routes.get("/b/{name}/bans")
def bans(context: RequestContext, name: str) -> Response:
    """List the bans of a board, with a form to ban a user."""
    return _bans(context, moderated_board(context, name), {"user": "", "reason": ""}, "")


@routes.post("/b/{name}/bans")
def ban(context: RequestContext, name: str) -> Response:
    """Ban a user."""
    board = moderated_board(context, name)
    values = {"user": context.form.text("user", most=60), "reason": context.form.text("reason", most=300)}
    person = context.value("SELECT id FROM forum_users WHERE lower(name) = lower(?)", values["user"])
    error = _ban_error(context, board, person, values["reason"])
    if error:
        return _bans(context, board, values, error)
    query = "INSERT INTO forum_bans (board, user, reason, created) VALUES (?, ?, ?, ?)"
    context.write(query, board["id"], person, values["reason"], stamp())
    context.flash(f"{values['user']} is banned.")
    return Redirect(f"/b/{board['name']}/bans")


def _ban_error(context: RequestContext, board: sqlite3.Row, person: int | None, reason: str) -> str:
    if person is None:
        return "There is no user of that name."
    if not reason:
        return "A ban needs a reason."
    if context.row("SELECT 1 FROM forum_moderators WHERE board = ? AND user = ?", board["id"], person):
        return "Moderators cannot be banned."
    banned = context.row("SELECT 1 FROM forum_bans WHERE board = ? AND user = ?", board["id"], person)
    return "That user is banned already." if banned else ""


def _bans(context: RequestContext, board: sqlite3.Row, values: dict[str, str], error: str) -> Response:
    query = (
        "SELECT x.*, u.name FROM forum_bans x JOIN forum_users u ON u.id = x.user WHERE x.board = ? "
        "ORDER BY x.created DESC, x.id DESC LIMIT 60"
    )
    row = {"board": board, "rows": context.rows(query, board["id"]), "values": values, "error": error}
    return context.page("mod_bans.html", status=422 if error else 200, **row)


@routes.post("/b/{name}/bans/{number:int}/lift")
def lift(context: RequestContext, name: str, number: int) -> Response:
    """Lift a ban."""
    board = moderated_board(context, name)
    context.one("SELECT id FROM forum_bans WHERE id = ? AND board = ?", number, board["id"])
    context.write("DELETE FROM forum_bans WHERE id = ?", number)
    context.flash("The ban has been lifted.")
    return Redirect(f"/b/{board['name']}/bans")


@routes.get("/b/{name}/edit")
def edit(context: RequestContext, name: str) -> Response:
    """Show the form for the title, description and sidebar of a board."""
    board = moderated_board(context, name)
    return context.page("mod_edit.html", board=board, values=dict(board), error="")


@routes.post("/b/{name}/edit")
def save(context: RequestContext, name: str) -> Response:
    """Save the title, description and sidebar of a board."""
    board = moderated_board(context, name)
    values = {key: context.form.text(key) for key in ("title", "description", "sidebar")}
    error = _texts_error(values)
    if error:
        return context.page("mod_edit.html", board=board, values=values, error=error, status=422)
    query = "UPDATE forum_boards SET title = ?, description = ?, sidebar = ? WHERE id = ?"
    context.write(query, *values.values(), board["id"])
    context.flash("The board has been changed.")
    return Redirect(f"/b/{board['name']}")


def _texts_error(values: dict[str, str]) -> str:
    if not values["title"] or len(values["title"]) > 80:
        return "A title has 1 to 80 characters."
    if not values["description"] or len(values["description"]) > 300:
        return "A description has 1 to 300 characters."
    return "A sidebar has at most 4000 characters." if len(values["sidebar"]) > 4_000 else ""


@routes.get("/b/{name}/rules")
def rules(context: RequestContext, name: str) -> Response:
    """List the rules of a board, with a form for a new rule."""
    board = moderated_board(context, name)
    return context.page("mod_rules.html", values={"title": "", "text": ""}, error="", **sidebar(context, board))


@routes.post("/b/{name}/rules")
def add_rule(context: RequestContext, name: str) -> Response:
    """Add a rule after the existing ones."""
    board = moderated_board(context, name)
    values = {"title": context.form.text("title"), "text": context.form.text("text")}
    if not 1 <= len(values["title"]) <= 100 or len(values["text"]) > 500:
        error = "A rule has a title of 1 to 100 characters and a text of at most 500."
        return context.page("mod_rules.html", values=values, error=error, status=422, **sidebar(context, board))
    last = context.value("SELECT COALESCE(MAX(position), 0) FROM forum_rules WHERE board = ?", board["id"])
    query = "INSERT INTO forum_rules (board, position, title, text) VALUES (?, ?, ?, ?)"
    context.write(query, board["id"], last + 1, *values.values())
    context.flash("The rule has been added.")
    return Redirect(f"/b/{board['name']}/rules")


@routes.post("/b/{name}/rules/{number:int}/delete")
def delete_rule(context: RequestContext, name: str, number: int) -> Response:
    """Delete a rule."""
    board = moderated_board(context, name)
    context.one("SELECT id FROM forum_rules WHERE id = ? AND board = ?", number, board["id"])
    context.write("DELETE FROM forum_rules WHERE id = ?", number)
    context.flash("The rule has been taken away.")
    return Redirect(f"/b/{board['name']}/rules")


@routes.post("/b/{name}/moderators")
def add_moderator(context: RequestContext, name: str) -> Response:
    """Make a user a moderator of a board."""
    board = moderated_board(context, name)
    person = context.row(
        "SELECT id, name FROM forum_users WHERE lower(name) = lower(?)", context.form.text("user", most=60)
    )
    if person is None:
        context.flash("There is no user of that name.", "error")
    elif context.row("SELECT 1 FROM forum_moderators WHERE board = ? AND user = ?", board["id"], person["id"]):
        context.flash(f"{person['name']} is a moderator already.", "error")
    else:
        query = "INSERT INTO forum_moderators (board, user, since) VALUES (?, ?, ?)"
        context.write(query, board["id"], person["id"], stamp())
        context.flash(f"{person['name']} is a moderator now.")
    return Redirect(f"/b/{board['name']}/edit")

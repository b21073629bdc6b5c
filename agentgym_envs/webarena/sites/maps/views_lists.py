"""Lists of places."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import PLACES
from agentgym_envs.webarena.sites.maps.drawing import WHOLE, MapPin, draw, view_around

routes = Routes()
VISIBILITY = (("private", "Private: only for me"), ("public", "Public: for everybody"))
_ON_A_PAGE = 12
_LISTS = (
    "SELECT l.*, a.user, (SELECT COUNT(*) FROM map_saved s WHERE s.list = l.id) AS count "
    "FROM map_lists l JOIN map_accounts a ON a.id = l.account"
)


@routes.get("/lists")
def lists(context: RequestContext) -> Response:
    """List the account's lists."""
    rows = context.rows(f"{_LISTS} WHERE l.account = ? ORDER BY l.name COLLATE NOCASE, l.id", context.require_login())
    return context.page("lists.html", rows=rows, own=True, paging=Paging(len(rows), max(len(rows), 1), 1))


@routes.get("/lists/public")
def public(context: RequestContext) -> Response:
    """List the public lists of all accounts."""
    count = context.value("SELECT COUNT(*) FROM map_lists WHERE visibility = 'public'")
    paging = Paging.of(context.query, count, _ON_A_PAGE)
    query = f"{_LISTS} WHERE l.visibility = 'public' ORDER BY l.name COLLATE NOCASE, l.id LIMIT ? OFFSET ?"
    return context.page("lists.html", rows=context.rows(query, _ON_A_PAGE, paging.skipped), own=False, paging=paging)


@routes.get("/lists/new")
def new(context: RequestContext) -> Response:
    """Show the form for a list."""
    context.require_login()
    return context.page("list_form.html", list=None, name="", about="", chosen="private", kinds=VISIBILITY, error="")


@routes.post("/lists/new")
def add(context: RequestContext) -> Response:
    """Create a list."""
    account = context.require_login()
    name, about, visibility = _read(context)
    error = _wrong(context, account, name, 0)
    if error:
        return _again(context, None, error)
    number = context.write(
        "INSERT INTO map_lists (account, name, about, visibility, created) VALUES (?, ?, ?, ?, ?)",
        account, name, about, visibility, stamp(),
    )  # fmt: skip
    context.flash(f"The list {name} is there now.")
    return Redirect(f"/list/{number}")


@routes.get("/list/{number:int}")
def show(context: RequestContext, number: int) -> Response:
    """Show the places of a list."""
    row = context.one(f"{_LISTS} WHERE l.id = ?", number)
    context.require(row["visibility"] == "public" or row["account"] == context.account, "This list is private.")
    query = PLACES.replace("SELECT p.*", "SELECT p.*, s.id AS saved, s.note")
    paging = Paging.of(context.query, row["count"], _ON_A_PAGE)
    order = "WHERE s.list = ? ORDER BY s.moment DESC, s.id DESC LIMIT ? OFFSET ?"
    rows = context.rows(f"{query} JOIN map_saved s ON s.place = p.id {order}", number, _ON_A_PAGE, paging.skipped)
    points = [(one["x"], one["y"]) for one in rows]
    marks = [MapPin(point, str(number)) for number, point in enumerate(points, paging.skipped + 1)]
    drawing = draw(context, view_around(points) if points else WHOLE, marks)
    own = row["account"] == context.account
    return context.page("list.html", list=row, rows=rows, paging=paging, own=own, drawing=drawing)


@routes.get("/list/{number:int}/edit")
def edit(context: RequestContext, number: int) -> Response:
    """Show the form for the name, description and visibility of a list."""
    row = _own(context, number)
    values = {"name": row["name"], "about": row["about"], "chosen": row["visibility"]}
    return context.page("list_form.html", list=row, kinds=VISIBILITY, error="", **values)


@routes.post("/list/{number:int}/edit")
def save(context: RequestContext, number: int) -> Response:
    """Save a list."""
    row = _own(context, number)
    name, about, visibility = _read(context)
    error = _wrong(context, row["account"], name, number)
    if error:
        return _again(context, row, error)
    context.write(
        "UPDATE map_lists SET name = ?, about = ?, visibility = ? WHERE id = ?", name, about, visibility, number
    )
    context.flash("The list is saved.")
    return Redirect(f"/list/{number}")


@routes.post("/list/{number:int}/delete")
def delete(context: RequestContext, number: int) -> Response:
    """Delete a list. Its places stay on the map."""
    row = _own(context, number)
    context.write("DELETE FROM map_saved WHERE list = ?", number)
    context.write("DELETE FROM map_lists WHERE id = ?", number)
    context.flash(f"The list {row['name']} is deleted.")
    return Redirect("/lists")


@routes.post("/place/{place:int}/save")
def keep(context: RequestContext, place: int) -> Response:
    """Add a place to a list of the account."""
    context.one("SELECT id FROM map_places WHERE id = ?", place)
    row = _own(context, context.form.number("list"))
    if context.row("SELECT id FROM map_saved WHERE list = ? AND place = ?", row["id"], place) is not None:
        context.flash(f"This place is in {row['name']} already.", "notice")
        return Redirect(f"/place/{place}")
    note = context.form.text("note", most=300)
    context.write(
        "INSERT INTO map_saved (list, place, note, moment) VALUES (?, ?, ?, ?)", row["id"], place, note, stamp()
    )
    context.flash(f"Saved in {row['name']}.")
    return Redirect(f"/place/{place}")


@routes.post("/saved/{number:int}/remove")
def remove(context: RequestContext, number: int) -> Response:
    """Remove a place from a list."""
    row = _kept(context, number)
    context.write("DELETE FROM map_saved WHERE id = ?", number)
    context.flash(f"{row['name']} is no longer in {row['list_name']}.")
    return context.redirect_back(f"/list/{row['list']}")


@routes.post("/saved/{number:int}/note")
def note(context: RequestContext, number: int) -> Response:
    """Save the note on a place in a list."""
    row = _kept(context, number)
    context.write("UPDATE map_saved SET note = ? WHERE id = ?", context.form.text("note", most=300), number)
    context.flash(f"Your note on {row['name']} is saved.")
    return Redirect(f"/list/{row['list']}")


def _own(context: RequestContext, number: int) -> sqlite3.Row:
    account = context.require_login()
    row = context.one("SELECT * FROM map_lists WHERE id = ?", number)
    context.require(row["account"] == account, "This list is somebody else's.")
    return row


def _kept(context: RequestContext, number: int) -> sqlite3.Row:
    """Return an entry of a list of the account."""
    account = context.require_login()
    row = context.one(
        "SELECT s.*, p.name, l.name AS list_name, l.account FROM map_saved s JOIN map_places p ON p.id = s.place "
        "JOIN map_lists l ON l.id = s.list WHERE s.id = ?",
        number,
    )
    context.require(row["account"] == account, "This list is somebody else's.")
    return row


def _read(context: RequestContext) -> tuple[str, str, str]:
    name, about = context.form.text("name", most=60), context.form.text("about", most=300)
    return name, about, context.form.choice("visibility", ("private", "public"), "private")


def _wrong(context: RequestContext, account: int, name: str, number: int) -> str:
    if not name:
        return "A list needs a name."
    query = "SELECT id FROM map_lists WHERE account = ? AND name = ? COLLATE NOCASE AND id != ?"
    return "You have a list of that name already." if context.row(query, account, name, number) else ""


def _again(context: RequestContext, row: sqlite3.Row | None, error: str) -> Response:
    name, about, chosen = _read(context)
    values = {"name": name, "about": about, "chosen": chosen}
    return context.page("list_form.html", 422, list=row, kinds=VISIBILITY, error=error, **values)

"""Notes: reports by contributors and their resolution."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.drawing import MapPin, MapView, draw
from agentgym_envs.webarena.sites.maps.geocoding import Location, find_locations, location_of
from agentgym_envs.webarena.sites.maps.geometry import distance

routes = Routes()
_ON_A_PAGE = 10
_MOST_TEXT = 2000
STATUSES = (("", "All"), ("open", "Open"), ("resolved", "Resolved"))
WHOSE = (("", "Everybody's"), ("opened", "Opened by me"), ("commented", "Commented on by me"))
_AMONG = (
    "FROM map_notes n JOIN map_towns t ON t.id = n.town "
    "JOIN map_note_comments c ON c.note = n.id AND c.action = 'opened' LEFT JOIN map_accounts a ON a.id = c.account"
)


@routes.get("/notes")
def notes(context: RequestContext) -> Response:
    """List the notes, newest first."""
    where, arguments = _filters(context)
    paging = Paging.of(context.query, context.value(f"SELECT COUNT(*) {_AMONG} WHERE {where}", *arguments), _ON_A_PAGE)
    rows = context.rows(
        f"SELECT n.*, t.name AS town_name, c.text, a.user, "
        f"(SELECT COUNT(*) FROM map_note_comments m WHERE m.note = n.id AND m.action = 'commented') AS comments "
        f"{_AMONG} WHERE {where} ORDER BY n.opened DESC, n.id DESC LIMIT ? OFFSET ?",
        *arguments, _ON_A_PAGE, paging.skipped,
    )  # fmt: skip
    towns = [(row["id"], row["name"]) for row in context.rows("SELECT id, name FROM map_towns ORDER BY name")]
    return context.page("notes.html", rows=rows, paging=paging, towns=towns, statuses=STATUSES, whose=WHOSE)


@routes.get("/notes/new")
def new(context: RequestContext) -> Response:
    """Show the form for a note, at the location "at" if there is one."""
    context.require_login()
    location = location_of(context, context.query.text("at", most=100))
    return _form(context, location.label if location else "", "")


@routes.post("/notes/new")
def add(context: RequestContext) -> Response:
    """Open a note."""
    account = context.require_login()
    where, text = context.form.text("where", most=100), context.form.text("text", most=_MOST_TEXT)
    locations = find_locations(context, where) if where else []
    if not text:
        return _form(context, where, text, "Please say what is wrong or missing.")
    if len(locations) != 1:
        return _form(context, where, text, "Please say where, so that only one place fits.", locations)
    note = _open(context, account, locations[0], text)
    context.flash("Thank you! Your note is on the map.")
    return Redirect(f"/note/{note}")


@routes.get("/note/{note:int}")
def show(context: RequestContext, note: int) -> Response:
    """Show a note with its comments."""
    return _shown(context, _note(context, note))


@routes.post("/note/{note:int}")
def answer(context: RequestContext, note: int) -> Response:
    """Comment on a note, resolve it or reopen it. Only a comment requires a text."""
    account = context.require_login()
    row = _note(context, note)
    text = context.form.text("text", most=_MOST_TEXT)
    allowed = ("commented", "resolved") if row["status"] == "open" else ("reopened",)
    action = context.form.choice("action", allowed)
    if not action:
        context.flash("This note is not as it was when you saw it. Please look again.", "error")
        return Redirect(f"/note/{note}")
    if action == "commented" and not text:
        return _shown(context, row, "Please write something.")
    _comment(context, note, account, action, text)
    if action == "resolved":
        context.write("UPDATE map_notes SET status = 'resolved', closed = ? WHERE id = ?", stamp(), note)
    elif action == "reopened":
        context.write("UPDATE map_notes SET status = 'open', closed = NULL WHERE id = ?", note)
    context.flash(
        {"commented": "Your comment is there.", "resolved": "The note is resolved."}.get(
            action, "The note is open again."
        )
    )
    return Redirect(f"/note/{note}")


def _filters(context: RequestContext) -> tuple[str, list[Any]]:
    query = context.query
    wanted: list[tuple[str, Any]] = [
        ("n.status = ?", query.choice("status", ("open", "resolved"))),
        ("n.town = ?", query.number("town")),
        ("n.place = ?", query.number("place")),
    ]
    whose = query.choice("whose", ("opened", "commented"))
    if whose:
        mine = "EXISTS (SELECT 1 FROM map_note_comments m WHERE m.note = n.id AND m.account = ? AND m.action = '{}')"
        wanted.append((mine.format(whose), context.require_login()))
    return " AND ".join(["1", *(one for one, value in wanted if value)]), [value for _, value in wanted if value]


def _note(context: RequestContext, note: int) -> sqlite3.Row:
    return context.one(
        "SELECT n.*, t.name AS town_name, p.name AS place_name FROM map_notes n JOIN map_towns t ON t.id = n.town "
        "LEFT JOIN map_places p ON p.id = n.place WHERE n.id = ?",
        note,
    )


def _shown(context: RequestContext, row: sqlite3.Row, error: str = "") -> Response:
    query = "SELECT c.*, a.user FROM map_note_comments c LEFT JOIN map_accounts a ON a.id = c.account"
    point = (row["x"], row["y"])
    drawing = draw(context, MapView(point, 8), [MapPin(point, "here")])
    comments = context.rows(f"{query} WHERE c.note = ? ORDER BY c.id", row["id"])
    return context.page("note.html", 422 if error else 200, note=row, comments=comments, error=error, drawing=drawing)


def _form(
    context: RequestContext, where: str, text: str, error: str = "", locations: list[Location] | None = None
) -> Response:
    return context.page(
        "note_form.html", 422 if error else 200, where=where, text=text, error=error, locations=locations or []
    )


def _open(context: RequestContext, account: int, location: Location, text: str) -> int:
    place = int(location.key.split("-")[1]) if location.key.startswith("place-") else None
    town = location.town or _nearest_town(context, location)
    note = context.write(
        "INSERT INTO map_notes (town, place, x, y, status, opened) VALUES (?, ?, ?, ?, 'open', ?)",
        town, place, *location.point, stamp(),
    )  # fmt: skip
    _comment(context, note, account, "opened", text)
    return note


def _nearest_town(context: RequestContext, location: Location) -> int:
    rows = context.rows("SELECT id, x, y FROM map_towns ORDER BY id")
    town: int = min(rows, key=lambda row: distance(location.point, (row["x"], row["y"])))["id"]
    return town


def _comment(context: RequestContext, note: int, account: int, action: str, text: str) -> None:
    context.write(
        "INSERT INTO map_note_comments (note, account, action, text, moment) VALUES (?, ?, ?, ?, ?)",
        note, account, action, text, stamp(),
    )  # fmt: skip

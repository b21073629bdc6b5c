"""Notes: what people report, and how it is settled."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.drawing import Mark, View, draw
from agentgym_envs.webarena.sites.maps.finding import Stop, find_stops, stop_of
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
def notes(visit: RequestContext) -> Response:
    """Notes, the newest first."""
    where, arguments = _filters(visit)
    paging = Paging.of(visit.query, visit.value(f"SELECT COUNT(*) {_AMONG} WHERE {where}", *arguments), _ON_A_PAGE)
    rows = visit.rows(
        f"SELECT n.*, t.name AS town_name, c.text, a.user, "
        f"(SELECT COUNT(*) FROM map_note_comments m WHERE m.note = n.id AND m.action = 'commented') AS comments "
        f"{_AMONG} WHERE {where} ORDER BY n.opened DESC, n.id DESC LIMIT ? OFFSET ?",
        *arguments, _ON_A_PAGE, paging.skipped,
    )  # fmt: skip
    towns = [(row["id"], row["name"]) for row in visit.rows("SELECT id, name FROM map_towns ORDER BY name")]
    return visit.page("notes.html", rows=rows, paging=paging, towns=towns, statuses=STATUSES, whose=WHOSE)


@routes.get("/notes/new")
def new(visit: RequestContext) -> Response:
    """The form for a note, about what "at" names if anything."""
    visit.must_be_signed_in()
    stop = stop_of(visit, visit.query.text("at", most=100))
    return _form(visit, stop.label if stop else "", "")


@routes.post("/notes/new")
def add(visit: RequestContext) -> Response:
    """Open a note."""
    account = visit.must_be_signed_in()
    where, text = visit.form.text("where", most=100), visit.form.text("text", most=_MOST_TEXT)
    stops = find_stops(visit, where) if where else []
    if not text:
        return _form(visit, where, text, "Please say what is wrong or missing.")
    if len(stops) != 1:
        return _form(visit, where, text, "Please say where, so that only one place fits.", stops)
    note = _open(visit, account, stops[0], text)
    visit.say("Thank you! Your note is on the map.")
    return Redirect(f"/note/{note}")


@routes.get("/note/{note:int}")
def show(visit: RequestContext, note: int) -> Response:
    """A note with its comments."""
    return _shown(visit, _note(visit, note))


@routes.post("/note/{note:int}")
def answer(visit: RequestContext, note: int) -> Response:
    """Comment on a note, resolve it or open it again; a comment needs a text, the others may have one."""
    account = visit.must_be_signed_in()
    row = _note(visit, note)
    text = visit.form.text("text", most=_MOST_TEXT)
    allowed = ("commented", "resolved") if row["status"] == "open" else ("reopened",)
    action = visit.form.choice("action", allowed)
    if not action:
        visit.say("This note is not as it was when you saw it. Please look again.", "error")
        return Redirect(f"/note/{note}")
    if action == "commented" and not text:
        return _shown(visit, row, "Please write something.")
    _comment(visit, note, account, action, text)
    if action == "resolved":
        visit.write("UPDATE map_notes SET status = 'resolved', closed = ? WHERE id = ?", stamp(), note)
    elif action == "reopened":
        visit.write("UPDATE map_notes SET status = 'open', closed = NULL WHERE id = ?", note)
    visit.say(
        {"commented": "Your comment is there.", "resolved": "The note is resolved."}.get(
            action, "The note is open again."
        )
    )
    return Redirect(f"/note/{note}")


def _filters(visit: RequestContext) -> tuple[str, list[Any]]:
    query = visit.query
    wanted: list[tuple[str, Any]] = [
        ("n.status = ?", query.choice("status", ("open", "resolved"))),
        ("n.town = ?", query.number("town")),
        ("n.place = ?", query.number("place")),
    ]
    whose = query.choice("whose", ("opened", "commented"))
    if whose:
        mine = "EXISTS (SELECT 1 FROM map_note_comments m WHERE m.note = n.id AND m.account = ? AND m.action = '{}')"
        wanted.append((mine.format(whose), visit.must_be_signed_in()))
    return " AND ".join(["1", *(one for one, value in wanted if value)]), [value for _, value in wanted if value]


def _note(visit: RequestContext, note: int) -> sqlite3.Row:
    return visit.one(
        "SELECT n.*, t.name AS town_name, p.name AS place_name FROM map_notes n JOIN map_towns t ON t.id = n.town "
        "LEFT JOIN map_places p ON p.id = n.place WHERE n.id = ?",
        note,
    )


def _shown(visit: RequestContext, row: sqlite3.Row, error: str = "") -> Response:
    query = "SELECT c.*, a.user FROM map_note_comments c LEFT JOIN map_accounts a ON a.id = c.account"
    point = (row["x"], row["y"])
    drawing = draw(visit, View(point, 8), [Mark(point, "here")])
    comments = visit.rows(f"{query} WHERE c.note = ? ORDER BY c.id", row["id"])
    return visit.page("note.html", 422 if error else 200, note=row, comments=comments, error=error, drawing=drawing)


def _form(visit: RequestContext, where: str, text: str, error: str = "", stops: list[Stop] | None = None) -> Response:
    return visit.page("note_form.html", 422 if error else 200, where=where, text=text, error=error, stops=stops or [])


def _open(visit: RequestContext, account: int, stop: Stop, text: str) -> int:
    place = int(stop.key.split("-")[1]) if stop.key.startswith("place-") else None
    town = stop.town or _nearest_town(visit, stop)
    note = visit.write(
        "INSERT INTO map_notes (town, place, x, y, status, opened) VALUES (?, ?, ?, ?, 'open', ?)",
        town, place, *stop.point, stamp(),
    )  # fmt: skip
    _comment(visit, note, account, "opened", text)
    return note


def _nearest_town(visit: RequestContext, stop: Stop) -> int:
    rows = visit.rows("SELECT id, x, y FROM map_towns ORDER BY id")
    found: int = min(rows, key=lambda row: distance(stop.point, (row["x"], row["y"])))["id"]
    return found


def _comment(visit: RequestContext, note: int, account: int, action: str, text: str) -> None:
    visit.write(
        "INSERT INTO map_note_comments (note, account, action, text, moment) VALUES (?, ?, ?, ?, ?)",
        note, account, action, text, stamp(),
    )  # fmt: skip

"""Lists of places that accounts keep."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import PLACES
from agentgym_envs.webarena.sites.maps.drawing import WHOLE, Mark, draw, view_around

routes = Routes()
VISIBILITY = (("private", "Private: only for me"), ("public", "Public: for everybody"))
_ON_A_PAGE = 12
_LISTS = (
    "SELECT l.*, a.user, (SELECT COUNT(*) FROM map_saved s WHERE s.list = l.id) AS count "
    "FROM map_lists l JOIN map_accounts a ON a.id = l.account"
)


@routes.get("/lists")
def lists(visit: RequestContext) -> Response:
    """One's own lists."""
    rows = visit.rows(f"{_LISTS} WHERE l.account = ? ORDER BY l.name COLLATE NOCASE, l.id", visit.must_be_signed_in())
    return visit.page("lists.html", rows=rows, own=True, paging=Paging(len(rows), max(len(rows), 1), 1))


@routes.get("/lists/public")
def public(visit: RequestContext) -> Response:
    """Everybody's public lists."""
    count = visit.value("SELECT COUNT(*) FROM map_lists WHERE visibility = 'public'")
    paging = Paging.of(visit.query, count, _ON_A_PAGE)
    query = f"{_LISTS} WHERE l.visibility = 'public' ORDER BY l.name COLLATE NOCASE, l.id LIMIT ? OFFSET ?"
    return visit.page("lists.html", rows=visit.rows(query, _ON_A_PAGE, paging.skipped), own=False, paging=paging)


@routes.get("/lists/new")
def new(visit: RequestContext) -> Response:
    """The form for a list."""
    visit.must_be_signed_in()
    return visit.page("list_form.html", list=None, name="", about="", chosen="private", kinds=VISIBILITY, error="")


@routes.post("/lists/new")
def add(visit: RequestContext) -> Response:
    """Begin a list."""
    account = visit.must_be_signed_in()
    name, about, visibility = _read(visit)
    error = _wrong(visit, account, name, 0)
    if error:
        return _again(visit, None, error)
    number = visit.write(
        "INSERT INTO map_lists (account, name, about, visibility, created) VALUES (?, ?, ?, ?, ?)",
        account, name, about, visibility, stamp(),
    )  # fmt: skip
    visit.say(f"The list {name} is there now.")
    return Redirect(f"/list/{number}")


@routes.get("/list/{number:int}")
def show(visit: RequestContext, number: int) -> Response:
    """The places of a list."""
    row = visit.one(f"{_LISTS} WHERE l.id = ?", number)
    visit.must(row["visibility"] == "public" or row["account"] == visit.account, "This list is private.")
    query = PLACES.replace("SELECT p.*", "SELECT p.*, s.id AS saved, s.note")
    paging = Paging.of(visit.query, row["count"], _ON_A_PAGE)
    order = "WHERE s.list = ? ORDER BY s.moment DESC, s.id DESC LIMIT ? OFFSET ?"
    rows = visit.rows(f"{query} JOIN map_saved s ON s.place = p.id {order}", number, _ON_A_PAGE, paging.skipped)
    points = [(one["x"], one["y"]) for one in rows]
    marks = [Mark(point, str(place)) for place, point in enumerate(points, paging.skipped + 1)]
    drawing = draw(visit, view_around(points) if points else WHOLE, marks)
    own = row["account"] == visit.account
    return visit.page("list.html", list=row, rows=rows, paging=paging, own=own, drawing=drawing)


@routes.get("/list/{number:int}/edit")
def edit(visit: RequestContext, number: int) -> Response:
    """The form for what a list is called, says and who may see it."""
    row = _own(visit, number)
    values = {"name": row["name"], "about": row["about"], "chosen": row["visibility"]}
    return visit.page("list_form.html", list=row, kinds=VISIBILITY, error="", **values)


@routes.post("/list/{number:int}/edit")
def save(visit: RequestContext, number: int) -> Response:
    """Change a list."""
    row = _own(visit, number)
    name, about, visibility = _read(visit)
    error = _wrong(visit, row["account"], name, number)
    if error:
        return _again(visit, row, error)
    visit.write(
        "UPDATE map_lists SET name = ?, about = ?, visibility = ? WHERE id = ?", name, about, visibility, number
    )
    visit.say("The list is saved.")
    return Redirect(f"/list/{number}")


@routes.post("/list/{number:int}/delete")
def delete(visit: RequestContext, number: int) -> Response:
    """Delete a list; the places in it stay on the map."""
    row = _own(visit, number)
    visit.write("DELETE FROM map_saved WHERE list = ?", number)
    visit.write("DELETE FROM map_lists WHERE id = ?", number)
    visit.say(f"The list {row['name']} is deleted.")
    return Redirect("/lists")


@routes.post("/place/{place:int}/save")
def keep(visit: RequestContext, place: int) -> Response:
    """Put a place on one of one's lists."""
    visit.one("SELECT id FROM map_places WHERE id = ?", place)
    row = _own(visit, visit.form.number("list"))
    if visit.row("SELECT id FROM map_saved WHERE list = ? AND place = ?", row["id"], place) is not None:
        visit.say(f"This place is in {row['name']} already.", "notice")
        return Redirect(f"/place/{place}")
    note = visit.form.text("note", most=300)
    visit.write(
        "INSERT INTO map_saved (list, place, note, moment) VALUES (?, ?, ?, ?)", row["id"], place, note, stamp()
    )
    visit.say(f"Saved in {row['name']}.")
    return Redirect(f"/place/{place}")


@routes.post("/saved/{number:int}/remove")
def remove(visit: RequestContext, number: int) -> Response:
    """Take a place off a list."""
    row = _kept(visit, number)
    visit.write("DELETE FROM map_saved WHERE id = ?", number)
    visit.say(f"{row['name']} is no longer in {row['list_name']}.")
    return visit.back(f"/list/{row['list']}")


@routes.post("/saved/{number:int}/note")
def note(visit: RequestContext, number: int) -> Response:
    """Change what one wrote beside a place on a list."""
    row = _kept(visit, number)
    visit.write("UPDATE map_saved SET note = ? WHERE id = ?", visit.form.text("note", most=300), number)
    visit.say(f"Your note on {row['name']} is saved.")
    return Redirect(f"/list/{row['list']}")


def _own(visit: RequestContext, number: int) -> sqlite3.Row:
    account = visit.must_be_signed_in()
    row = visit.one("SELECT * FROM map_lists WHERE id = ?", number)
    visit.must(row["account"] == account, "This list is somebody else's.")
    return row


def _kept(visit: RequestContext, number: int) -> sqlite3.Row:
    """A line of one of one's lists."""
    account = visit.must_be_signed_in()
    row = visit.one(
        "SELECT s.*, p.name, l.name AS list_name, l.account FROM map_saved s JOIN map_places p ON p.id = s.place "
        "JOIN map_lists l ON l.id = s.list WHERE s.id = ?",
        number,
    )
    visit.must(row["account"] == account, "This list is somebody else's.")
    return row


def _read(visit: RequestContext) -> tuple[str, str, str]:
    name, about = visit.form.text("name", most=60), visit.form.text("about", most=300)
    return name, about, visit.form.choice("visibility", ("private", "public"), "private")


def _wrong(visit: RequestContext, account: int, name: str, number: int) -> str:
    if not name:
        return "A list needs a name."
    query = "SELECT id FROM map_lists WHERE account = ? AND name = ? COLLATE NOCASE AND id != ?"
    return "You have a list of that name already." if visit.row(query, account, name, number) else ""


def _again(visit: RequestContext, row: sqlite3.Row | None, error: str) -> Response:
    name, about, chosen = _read(visit)
    values = {"name": name, "about": about, "chosen": chosen}
    return visit.page("list_form.html", 422, list=row, kinds=VISIBILITY, error=error, **values)

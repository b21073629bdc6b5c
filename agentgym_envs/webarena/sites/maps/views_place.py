"""The page of a place, its edits, and new places."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import PLACES, address, plain
from agentgym_envs.webarena.sites.maps.drawing import Mark, View, draw
from agentgym_envs.webarena.sites.maps.finding import Stop, find_stops
from agentgym_envs.webarena.sites.maps.geometry import degrees
from agentgym_envs.webarena.sites.maps.hours import days, is_open, is_valid
from agentgym_envs.webarena.sites.maps.kinds import CATEGORIES
from agentgym_envs.webarena.sites.maps.network import network
from agentgym_envs.webarena.sites.maps.plan import house_on

routes = Routes()
_SIZE = {
    "hospital": "Beds",
    "hostel": "Beds",
    "cinema": "Seats",
    "theatre": "Seats",
    "parking": "Spaces",
    "charging_station": "Sockets",
    "bicycle_rental": "Bicycles",
    "campsite": "Pitches",
    "school": "Pupils",
    "university": "Students",
}
WHEELCHAIR = (("", "Not known"), ("yes", "Yes"), ("limited", "Limited"), ("no", "No"))
INTERNET = (("", "Not known"), ("wlan", "Wireless"), ("no", "None"))
_TEXTS = {"name": 80, "hours": 120, "phone": 30, "website": 120, "operator": 60}
"""The fields of the form that are texts, and how long each may be."""


@routes.get("/places/new")
def new(visit: RequestContext) -> Response:
    """The form for a place that is not there yet."""
    visit.must_be_signed_in()
    return _form(visit, None, {"where": visit.query.text("where", most=100), "category": "", "comment": ""})


@routes.post("/places/new")
def add(visit: RequestContext) -> Response:
    """Add a place at an address."""
    account = visit.must_be_signed_in()
    values, error = _read(visit)
    where = visit.form.text("where", most=100)
    stops = find_stops(visit, where) if where else []
    category = visit.form.choice("category", tuple(CATEGORIES))
    if not error and not category:
        error = "Please choose what kind of place it is."
    if not error and (len(stops) != 1 or not stops[0].key.startswith("house-")):
        error = "Please give one address, such as 12 Mill Street, and the town."
    comment = visit.form.text("comment", most=200)
    if error:
        shown = {**values, "where": where, "category": category, "comment": comment}
        return _form(visit, None, shown, error)
    place = _insert(visit, account, values, category, stops[0])
    _log(visit, place, account, 1, comment or "New place")
    visit.say(f"{values['name']} is on the map now.")
    return Redirect(f"/place/{place}")


@routes.get("/place/{place:int}")
def show(visit: RequestContext, place: int) -> Response:
    """Everything that is known of a place."""
    row = _place(visit, place)
    point = (row["x"], row["y"])
    return visit.page(
        "place.html",
        place=row,
        address=address(row),
        facts=_facts(row),
        days=days(row["hours"]) if row["hours"] else [],
        open_now=is_open(row["hours"]) if row["hours"] else None,
        editor=visit.value("SELECT user FROM map_accounts WHERE id = ?", row["editor"]),
        notes=visit.rows(_NOTES, place),
        kept=visit.rows(_KEPT, visit.account, place),
        lists=visit.rows(_LISTS, visit.account, place),
        drawing=draw(visit, View(point, 8), [Mark(point, "here")]),
    )


@routes.get("/place/{place:int}/history")
def history(visit: RequestContext, place: int) -> Response:
    """The edits of a place, the newest first."""
    query = (
        "SELECT c.version, c.comment, c.moment, a.user FROM map_changes c JOIN map_accounts a ON a.id = c.account "
        "WHERE c.place = ? ORDER BY c.version DESC LIMIT 50"
    )
    return visit.page("place_history.html", place=_place(visit, place), changes=visit.rows(query, place))


@routes.get("/place/{place:int}/edit")
def edit(visit: RequestContext, place: int) -> Response:
    """The form for what is known of a place."""
    visit.must_be_signed_in()
    row = _place(visit, place)
    return _form(visit, row, {**{name: row[name] for name in row.keys()}, "comment": ""})  # noqa: SIM118 - a row is no mapping


@routes.post("/place/{place:int}/edit")
def save(visit: RequestContext, place: int) -> Response:
    """Change a place, if anything differs."""
    account = visit.must_be_signed_in()
    row = _place(visit, place)
    values, error = _read(visit)
    comment = visit.form.text("comment", most=200)
    if not error and not comment:
        error = "Please say in a few words what you changed."
    if error:
        return _form(visit, row, {**values, "comment": comment}, error)
    if all(row[name] == value for name, value in values.items()):
        visit.say("Nothing was changed.", "notice")
        return Redirect(f"/place/{place}")
    names = ", ".join(f"{name} = ?" for name in values)
    visit.write(
        f"UPDATE map_places SET {names}, version = version + 1, changed = ?, editor = ? WHERE id = ?",
        *values.values(), stamp(), account, place,
    )  # fmt: skip
    _log(visit, place, account, row["version"] + 1, comment)
    visit.say("Thank you! Your edit is saved.")
    return Redirect(f"/place/{place}")


_NOTES = "SELECT id, status, opened FROM map_notes WHERE place = ? AND status = 'open' ORDER BY id DESC LIMIT 5"
_KEPT = (
    "SELECT s.id, s.note, l.id AS list, l.name FROM map_saved s JOIN map_lists l ON l.id = s.list "
    "WHERE l.account = ? AND s.place = ? ORDER BY l.id"
)
_LISTS = (
    "SELECT id, name FROM map_lists WHERE account = ? "
    "AND id NOT IN (SELECT list FROM map_saved WHERE place = ?) ORDER BY id"
)


def _place(visit: RequestContext, place: int) -> sqlite3.Row:
    return visit.one(f"{PLACES} WHERE p.id = ?", place)


def _facts(row: sqlite3.Row) -> list[tuple[str, str]]:
    """What the table of a place says, without what has a form of its own."""
    told = [
        ("Cuisine", row["cuisine"] and plain(row["cuisine"])),
        ("Stars", row["stars"]),
        ("Operator", row["operator"]),
        (_SIZE.get(row["category"], "Rooms"), row["capacity"]),
        ("Elevation", row["elevation"] and f"{row['elevation']} m"),
        (
            "Charge" if row["category"] in ("parking", "charging_station") else "Entry",
            row["fee"] and row["fee"][0].upper() + row["fee"][1:],
        ),
        ("Wheelchair access", row["wheelchair"] and row["wheelchair"].capitalize()),
        ("Internet", row["internet"] and dict(INTERNET)[row["internet"]]),
        ("Seats outside", None if row["outdoor"] is None else "Yes" if row["outdoor"] else "No"),
    ]
    return [(name, str(value)) for name, value in told if value is not None]


def _form(visit: RequestContext, row: sqlite3.Row | None, values: Mapping[str, object], error: str = "") -> Response:
    empty = dict.fromkeys((*_TEXTS, "wheelchair", "internet"))
    return visit.page(
        "place_form.html",
        422 if error else 200,
        place=row,
        values={**empty, **values},
        error=error,
        categories=sorted(((key, one.label) for key, one in CATEGORIES.items()), key=lambda one: one[1]),
        wheelchair=WHEELCHAIR,
        internet=INTERNET,
    )


def _read(visit: RequestContext) -> tuple[dict[str, str | None], str]:
    """What the form says of a place, None where it leaves something empty; and what is wrong with it."""
    values: dict[str, str | None] = {name: visit.form.text(name, most=most) or None for name, most in _TEXTS.items()}
    values["wheelchair"] = visit.form.choice("wheelchair", ("yes", "limited", "no")) or None
    values["internet"] = visit.form.choice("internet", ("wlan", "no")) or None
    if not values["name"]:
        return values, "A place needs a name."
    if values["hours"] and not is_valid(values["hours"]):
        return values, "Please write the opening hours like this: Mo-Fr 09:00-18:00; Sa 09:00-13:00"
    if values["website"] and not values["website"].startswith(("http://", "https://")):
        return values, "The address of a website begins with https://"
    return values, ""


def _insert(visit: RequestContext, account: int, values: Mapping[str, str | None], category: str, stop: Stop) -> int:
    road, house = (int(part) for part in stop.key.split("-")[1:])
    spot = house_on(network(visit.database), road, house)
    columns: dict[str, object] = {
        **values,
        "category": category,
        "town": stop.town,
        "road": road,
        "house": house,
        "version": 1,
    }
    columns |= {"segment": spot.segment, "along": spot.along, "x": spot.point[0], "y": spot.point[1]}
    columns |= {"changed": stamp(), "editor": account}
    columns["lat"], columns["lon"] = degrees(spot.point)
    names, holes = ", ".join(columns), ", ".join("?" * len(columns))
    return visit.write(f"INSERT INTO map_places ({names}) VALUES ({holes})", *columns.values())


def _log(visit: RequestContext, place: int, account: int, version: int, comment: str) -> None:
    visit.write(
        "INSERT INTO map_changes (place, account, version, comment, moment) VALUES (?, ?, ?, ?, ?)",
        place, account, version, comment, stamp(),
    )  # fmt: skip

"""The page of a place, its edits, and new places."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import PLACES, address, plain
from agentgym_envs.webarena.sites.maps.drawing import MapPin, MapView, draw
from agentgym_envs.webarena.sites.maps.geocoding import Location, find_locations
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
"""Text fields of the form, with their maximum lengths."""


@routes.get("/places/new")
def new(context: RequestContext) -> Response:
    """Show the form for a new place."""
    context.require_login()
    return _form(context, None, {"where": context.query.text("where", most=100), "category": "", "comment": ""})


@routes.post("/places/new")
def add(context: RequestContext) -> Response:
    """Add a place at an address."""
    account = context.require_login()
    values, error = _read(context)
    where = context.form.text("where", most=100)
    locations = find_locations(context, where) if where else []
    category = context.form.choice("category", tuple(CATEGORIES))
    if not error and not category:
        error = "Please choose what kind of place it is."
    if not error and (len(locations) != 1 or not locations[0].key.startswith("house-")):
        error = "Please give one address, such as 12 Mill Street, and the town."
    comment = context.form.text("comment", most=200)
    if error:
        shown = {**values, "where": where, "category": category, "comment": comment}
        return _form(context, None, shown, error)
    place = _insert(context, account, values, category, locations[0])
    _log(context, place, account, 1, comment or "New place")
    context.flash(f"{values['name']} is on the map now.")
    return Redirect(f"/place/{place}")


@routes.get("/place/{place:int}")
def show(context: RequestContext, place: int) -> Response:
    """Show a place with all its details."""
    row = _place(context, place)
    point = (row["x"], row["y"])
    return context.page(
        "place.html",
        place=row,
        address=address(row),
        facts=_facts(row),
        days=days(row["hours"]) if row["hours"] else [],
        open_now=is_open(row["hours"]) if row["hours"] else None,
        editor=context.value("SELECT user FROM map_accounts WHERE id = ?", row["editor"]),
        notes=context.rows(_NOTES, place),
        kept=context.rows(_KEPT, context.account, place),
        lists=context.rows(_LISTS, context.account, place),
        drawing=draw(context, MapView(point, 8), [MapPin(point, "here")]),
    )


@routes.get("/place/{place:int}/history")
def history(context: RequestContext, place: int) -> Response:
    """List the edits of a place, newest first."""
    query = (
        "SELECT c.version, c.comment, c.moment, a.user FROM map_changes c JOIN map_accounts a ON a.id = c.account "
        "WHERE c.place = ? ORDER BY c.version DESC LIMIT 50"
    )
    return context.page("place_history.html", place=_place(context, place), changes=context.rows(query, place))


@routes.get("/place/{place:int}/edit")
def edit(context: RequestContext, place: int) -> Response:
    """Show the form of a place."""
    context.require_login()
    row = _place(context, place)
    return _form(context, row, {**{name: row[name] for name in row.keys()}, "comment": ""})  # noqa: SIM118 - a sqlite3.Row is not a mapping


@routes.post("/place/{place:int}/edit")
def save(context: RequestContext, place: int) -> Response:
    """Save a place, if anything changed."""
    account = context.require_login()
    row = _place(context, place)
    values, error = _read(context)
    comment = context.form.text("comment", most=200)
    if not error and not comment:
        error = "Please say in a few words what you changed."
    if error:
        return _form(context, row, {**values, "comment": comment}, error)
    if all(row[name] == value for name, value in values.items()):
        context.flash("Nothing was changed.", "notice")
        return Redirect(f"/place/{place}")
    names = ", ".join(f"{name} = ?" for name in values)
    context.write(
        f"UPDATE map_places SET {names}, version = version + 1, changed = ?, editor = ? WHERE id = ?",
        *values.values(), stamp(), account, place,
    )  # fmt: skip
    _log(context, place, account, row["version"] + 1, comment)
    context.flash("Thank you! Your edit is saved.")
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


def _place(context: RequestContext, place: int) -> sqlite3.Row:
    return context.one(f"{PLACES} WHERE p.id = ?", place)


def _facts(row: sqlite3.Row) -> list[tuple[str, str]]:
    """Return the facts about a place that have no section of their own."""
    facts = [
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
    return [(name, str(value)) for name, value in facts if value is not None]


def _form(context: RequestContext, row: sqlite3.Row | None, values: Mapping[str, object], error: str = "") -> Response:
    empty = dict.fromkeys((*_TEXTS, "wheelchair", "internet"))
    return context.page(
        "place_form.html",
        422 if error else 200,
        place=row,
        values={**empty, **values},
        error=error,
        categories=sorted(((key, one.label) for key, one in CATEGORIES.items()), key=lambda one: one[1]),
        wheelchair=WHEELCHAIR,
        internet=INTERNET,
    )


def _read(context: RequestContext) -> tuple[dict[str, str | None], str]:
    """Return the values from the form (None for an empty field), and an error message or ""."""
    values: dict[str, str | None] = {name: context.form.text(name, most=most) or None for name, most in _TEXTS.items()}
    values["wheelchair"] = context.form.choice("wheelchair", ("yes", "limited", "no")) or None
    values["internet"] = context.form.choice("internet", ("wlan", "no")) or None
    if not values["name"]:
        return values, "A place needs a name."
    if values["hours"] and not is_valid(values["hours"]):
        return values, "Please write the opening hours like this: Mo-Fr 09:00-18:00; Sa 09:00-13:00"
    if values["website"] and not values["website"].startswith(("http://", "https://")):
        return values, "The address of a website begins with https://"
    return values, ""


def _insert(
    context: RequestContext, account: int, values: Mapping[str, str | None], category: str, location: Location
) -> int:
    road, house = (int(part) for part in location.key.split("-")[1:])
    spot = house_on(network(context.database), road, house)
    columns: dict[str, object] = {
        **values,
        "category": category,
        "town": location.town,
        "road": road,
        "house": house,
        "version": 1,
    }
    columns |= {"segment": spot.segment, "along": spot.along, "x": spot.point[0], "y": spot.point[1]}
    columns |= {"changed": stamp(), "editor": account}
    columns["lat"], columns["lon"] = degrees(spot.point)
    names, holes = ", ".join(columns), ", ".join("?" * len(columns))
    return context.write(f"INSERT INTO map_places ({names}) VALUES ({holes})", *columns.values())


def _log(context: RequestContext, place: int, account: int, version: int, comment: str) -> None:
    context.write(
        "INSERT INTO map_changes (place, account, version, comment, moment) VALUES (?, ?, ?, ?, ?)",
        place, account, version, comment, stamp(),
    )  # fmt: skip

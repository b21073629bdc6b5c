"""Contributors, their edits, and the account's settings."""

from __future__ import annotations

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.common import current_account
from agentgym_envs.webarena.sites.maps.geocoding import find_locations, location_of
from agentgym_envs.webarena.sites.maps.network import MODES

routes = Routes()
_ON_A_PAGE = 12
UNITS = (("km", "Kilometres"), ("miles", "Miles"))
SORTS = {
    "edits": ("Most edits first", "edits DESC, a.id"),
    "name": ("Name", "a.user COLLATE NOCASE"),
    "joined": ("Longest here first", "a.joined"),
}
_COUNTS = (
    "(SELECT COUNT(*) FROM map_changes c WHERE c.account = a.id) AS edits, "
    "(SELECT COUNT(*) FROM map_note_comments m WHERE m.account = a.id AND m.action = 'opened') AS notes"
)
_CHANGES = (
    "SELECT c.*, a.user, p.name AS place_name, t.name AS town_name FROM map_changes c "
    "JOIN map_accounts a ON a.id = c.account JOIN map_places p ON p.id = c.place JOIN map_towns t ON t.id = p.town"
)


@routes.get("/history")
def history(context: RequestContext) -> Response:
    """List the edits, newest first, optionally in one town."""
    town = context.query.number("town")
    where, arguments = ("p.town = ?", [town]) if town else ("1", [])
    count = f"SELECT COUNT(*) FROM map_changes c JOIN map_places p ON p.id = c.place WHERE {where}"
    paging = Paging.of(context.query, context.value(count, *arguments), _ON_A_PAGE)
    query = f"{_CHANGES} WHERE {where} ORDER BY c.moment DESC, c.id DESC LIMIT ? OFFSET ?"
    rows = context.rows(query, *arguments, _ON_A_PAGE, paging.skipped)
    towns = [(row["id"], row["name"]) for row in context.rows("SELECT id, name FROM map_towns ORDER BY name")]
    return context.page("history.html", rows=rows, paging=paging, towns=towns)


@routes.get("/contributors")
def contributors(context: RequestContext) -> Response:
    """List the accounts."""
    sort = context.query.choice("sort", tuple(SORTS), "edits")
    paging = Paging.of(context.query, context.value("SELECT COUNT(*) FROM map_accounts"), _ON_A_PAGE)
    query = f"SELECT a.*, t.name AS town_name, {_COUNTS} FROM map_accounts a JOIN map_towns t ON t.id = a.town"
    rows = context.rows(f"{query} ORDER BY {SORTS[sort][1]} LIMIT ? OFFSET ?", _ON_A_PAGE, paging.skipped)
    sorts = [(key, label) for key, (label, _) in SORTS.items()]
    return context.page("contributors.html", rows=rows, paging=paging, sort=sort, sorts=sorts)


@routes.get("/user/{user}")
def profile(context: RequestContext, user: str) -> Response:
    """Show the public profile of an account."""
    query = f"SELECT a.*, t.name AS town_name, {_COUNTS} FROM map_accounts a JOIN map_towns t ON t.id = a.town"
    row = context.one(f"{query} WHERE a.user = ? COLLATE NOCASE", user)
    traces = "SELECT COUNT(*) FROM map_traces WHERE account = ? AND visibility = 'public'"
    return context.page(
        "user.html",
        person=row,
        traces=context.value(traces, row["id"]),
        changes=context.rows(f"{_CHANGES} WHERE c.account = ? ORDER BY c.moment DESC, c.id DESC LIMIT 8", row["id"]),
        lists=context.rows(
            "SELECT id, name FROM map_lists WHERE account = ? AND visibility = 'public' ORDER BY id", row["id"]
        ),
    )


@routes.get("/settings")
def settings(context: RequestContext) -> Response:
    """Show the form of the settings."""
    context.require_login()
    return _form(context, _addresses(context))


@routes.post("/settings")
def save(context: RequestContext) -> Response:
    """Save the profile text and the preferences."""
    account = context.require_login()
    context.write(
        "UPDATE map_accounts SET about = ?, units = ?, mode = ?, public_traces = ? WHERE id = ?",
        context.form.text("about", most=500),
        context.form.choice("units", ("km", "miles"), "km"),
        context.form.choice("mode", tuple(MODES), "car"),
        int(context.form.is_checked("public_traces")),
        account,
    )
    context.flash("Your settings are saved.")
    return Redirect("/settings")


@routes.post("/settings/addresses")
def save_addresses(context: RequestContext) -> Response:
    """Save the addresses of home and work. An empty field removes an address."""
    account = context.require_login()
    typed = {label: context.form.text(label.lower(), most=100) for label in ("Home", "Work")}
    candidates = {label: find_locations(context, text) if text else [] for label, text in typed.items()}
    for label, text in typed.items():
        if text and not (len(candidates[label]) == 1 and candidates[label][0].key.startswith("house-")):
            error = f"{label}: please give one address with its town, such as 12 Mill Street, Foxford."
            return _form(context, typed, error)
    for label, locations in candidates.items():
        _save_address(context, account, label, locations[0].key if locations else "")
    context.flash("Your addresses are saved.")
    return Redirect("/settings")


def _save_address(context: RequestContext, account: int, label: str, key: str) -> None:
    if not key:
        context.write("DELETE FROM map_addresses WHERE account = ? AND label = ?", account, label)
        return
    road, house = (int(part) for part in key.split("-")[1:])
    if context.row("SELECT id FROM map_addresses WHERE account = ? AND label = ?", account, label) is None:
        query = "INSERT INTO map_addresses (account, label, road, house) VALUES (?, ?, ?, ?)"
        context.write(query, account, label, road, house)
        return
    query = "UPDATE map_addresses SET road = ?, house = ? WHERE account = ? AND label = ?"
    context.write(query, road, house, account, label)


def _addresses(context: RequestContext) -> dict[str, str]:
    rows = context.rows("SELECT label, road, house FROM map_addresses WHERE account = ? ORDER BY id", context.account)
    locations = {row["label"]: location_of(context, f"house-{row['road']}-{row['house']}") for row in rows}
    return {label: location.label for label, location in locations.items() if location}


def _form(context: RequestContext, addresses: dict[str, str], error: str = "") -> Response:
    return context.page(
        "settings.html",
        422 if error else 200,
        account=current_account(context),
        addresses=addresses,
        units=UNITS,
        modes=list(MODES.items()),
        error=error,
    )

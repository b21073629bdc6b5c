"""Shared parts of the map's pages: queries of places, and the formats of lengths, durations and addresses."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.maps.kinds import CATEGORIES

PLACES = (
    "SELECT p.*, t.name AS town_name, t.zip, r.name AS road_name, r.town AS road_town FROM map_places p "
    "JOIN map_towns t ON t.id = p.town JOIN map_roads r ON r.id = p.road"
)
"""Query of all columns of places, with the names of their towns and roads."""
PLACES_COUNT = "SELECT COUNT(*) FROM map_places p JOIN map_towns t ON t.id = p.town"
NO_ACCOUNT = {"user": "", "name": "", "units": "km", "mode": "car"}
_METRES_PER_MILE = 1609.344


def current_account(context: RequestContext) -> sqlite3.Row | dict[str, str]:
    """Return the signed-in account, or default values without login."""
    return context.row("SELECT * FROM map_accounts WHERE id = ?", context.account) or NO_ACCOUNT


def format_length(metres: float, units: str = "km") -> str:
    """Format a length: "850 m", "12.4 km", "0.5 mi"."""
    if units == "miles":
        return f"{metres / _METRES_PER_MILE:,.1f} mi"
    return f"{10 * round(metres / 10)} m" if metres < 995 else f"{metres / 1000:,.1f} km"


def duration(seconds: int) -> str:
    """Format a duration in whole minutes: "8 min", "1 h 12 min"."""
    minutes = max(1, round(seconds / 60))
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours and rest else f"{hours} h" if hours else f"{minutes} min"


def address(row: sqlite3.Row) -> str:
    """Format the address of a row of `PLACES`: "84 Mill Street, 80013 Birchham" or "A21, near Birchham"."""
    if row["road_town"] is None:
        return f"{row['road_name']}, near {row['town_name']}"
    house = f"{row['house']} " if row["house"] else ""
    return f"{house}{row['road_name']}, {row['zip']} {row['town_name']}"


def label(category: str) -> str:
    """Return the label of a category."""
    return CATEGORIES[category].label


def plain(text: str) -> str:
    """Convert a value of a column to words: "fish_and_chips" to "Fish and chips"."""
    return text.replace("_", " ").capitalize()

"""The map site: its routes and accounts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.site import Site
from agentgym_envs.webarena.sites.maps import (
    views_directions,
    views_lists,
    views_map,
    views_notes,
    views_people,
    views_place,
    views_search,
    views_towns,
    views_traces,
)
from agentgym_envs.webarena.sites.maps.common import address, current_account, duration, format_length, label, plain

_VIEWS = (
    views_map,
    views_search,
    views_directions,
    views_place,
    views_towns,
    views_notes,
    views_lists,
    views_traces,
    views_people,
)


def _layout(context: RequestContext) -> Mapping[str, Any]:
    return {"me": current_account(context)}


def _account(database: sqlite3.Connection, name: str) -> int:
    query = "SELECT id FROM map_accounts WHERE user = ? COLLATE NOCASE OR email = ? COLLATE NOCASE"
    row = database.execute(query, (name, name)).fetchone()
    return int(row[0]) if row else 0


SITE = Site(
    name="maps",
    title="Waybook",
    routes=tuple(route for views in _VIEWS for route in views.routes.all),
    layout=_layout,
    find_account=_account,
    default_account=lambda database: 1,
    filters={"address": address, "label": label, "duration": duration, "length_in": format_length, "plain": plain},
)

"""The site: its routes, which are open only to who is signed in."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import wraps
from typing import Any

from agentgym_envs.webarena.sites.admin import (
    views_categories,
    views_customers,
    views_dashboard,
    views_documents,
    views_enquiries,
    views_marketing,
    views_order_steps,
    views_orders,
    views_pages,
    views_product_parts,
    views_products,
    views_reports,
    views_reviews,
    views_rules,
    views_search,
    views_settings,
)
from agentgym_envs.webarena.sites.admin.menu import MENU, place_of
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Handler, Route, Site
from agentgym_envs.webarena.sites.shop.pictures import picture

ADMIN = 1
"""The only account."""
_VIEWS = (
    views_dashboard,
    views_search,
    views_orders,
    views_order_steps,
    views_documents,
    views_products,
    views_product_parts,
    views_categories,
    views_customers,
    views_enquiries,
    views_rules,
    views_reviews,
    views_marketing,
    views_pages,
    views_reports,
    views_settings,
)


def _guarded(handler: Handler) -> Handler:
    """A handler for who is signed in."""

    @wraps(handler)
    def guarded(visit: RequestContext, **path: Any) -> Response:
        visit.must_be_signed_in()
        return handler(visit, **path)

    return guarded


def _layout(visit: RequestContext) -> Mapping[str, Any]:
    return {"menu": MENU, "place": place_of(visit.path)}


def _account(database: sqlite3.Connection, name: str) -> int:
    """The administrator's; it needs no row of its own."""
    return ADMIN if name.lower() in ("admin", "admin@shop.test") else 0


def _owner(database: sqlite3.Connection) -> int:
    return ADMIN


SITE = Site(
    name="admin",
    title="Storekeeper",
    routes=tuple(Route(r.method, r.path, _guarded(r.handler)) for views in _VIEWS for r in views.routes.all),
    layout=_layout,
    account=_account,
    owner=_owner,
    filters={"picture": picture},
)

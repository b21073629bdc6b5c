"""The administration site. Every route requires login."""

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
from agentgym_envs.webarena.sites.admin.menu import MENU, menu_path_of
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Handler, Site, SiteRoute
from agentgym_envs.webarena.sites.shop.pictures import picture

ADMIN = 1
"""Id of the only account."""
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
    """Wrap a handler so that it requires login."""

    @wraps(handler)
    def guarded(context: RequestContext, **path: Any) -> Response:
        context.require_login()
        return handler(context, **path)

    return guarded


def _layout(context: RequestContext) -> Mapping[str, Any]:
    return {"menu": MENU, "menu_path": menu_path_of(context.path)}


def _account(database: sqlite3.Connection, name: str) -> int:
    """Return the id of the administrator, who has no row in the database."""
    return ADMIN if name.lower() in ("admin", "admin@shop.test") else 0


def _owner(database: sqlite3.Connection) -> int:
    return ADMIN


SITE = Site(
    name="admin",
    title="Storekeeper",
    routes=tuple(SiteRoute(r.method, r.path, _guarded(r.handler)) for views in _VIEWS for r in views.routes.all),
    layout=_layout,
    find_account=_account,
    default_account=_owner,
    filters={"picture": picture},
)

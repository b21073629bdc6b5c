"""The shop site: its routes and accounts."""

from __future__ import annotations

from agentgym_envs.webarena.sites.framework.site import Site
from agentgym_envs.webarena.sites.shop import (
    store,
    views_account,
    views_addresses,
    views_cart,
    views_catalogue,
    views_checkout,
    views_orders,
    views_product,
    views_wishes,
)
from agentgym_envs.webarena.sites.shop.cards import card
from agentgym_envs.webarena.sites.shop.pictures import picture

_VIEWS = (
    views_catalogue,
    views_product,
    views_cart,
    views_checkout,
    views_orders,
    views_addresses,
    views_account,
    views_wishes,
)
SITE = Site(
    name="shop",
    title="One Roof Market",
    routes=tuple(route for views in _VIEWS for route in views.routes.all),
    layout=store.layout,
    find_account=store.account,
    default_account=lambda database: 1,
    filters={"picture": picture, "card": card},
)

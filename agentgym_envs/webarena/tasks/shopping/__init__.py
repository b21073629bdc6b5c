"""The tasks in the shop."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.shopping import (
    account,
    browsing,
    cart,
    catalogue,
    combined,
    lookups,
    ordering,
    orders,
    reviews,
    start_pages,
)
from agentgym_envs.webarena.tasks.template import templates_in

TEMPLATES = templates_in(catalogue, browsing, lookups, reviews, orders, cart, ordering, account, combined, start_pages)

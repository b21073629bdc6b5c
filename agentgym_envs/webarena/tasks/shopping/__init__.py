"""The tasks in the shop."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.shopping import (
    account,
    browsing,
    buying,
    cart,
    catalogue,
    combined,
    comparing,
    drafts,
    lookups,
    opinions,
    ordering,
    orders,
    reviews,
    spending,
    start_pages,
)
from agentgym_envs.webarena.tasks.template import templates_in

TEMPLATES = templates_in(
    catalogue,
    browsing,
    buying,
    lookups,
    reviews,
    orders,
    cart,
    ordering,
    account,
    combined,
    spending,
    comparing,
    drafts,
    opinions,
    start_pages,
)

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
)
from agentgym_envs.webarena.tasks.template import AnyTemplate

TEMPLATES: tuple[AnyTemplate, ...] = (
    *catalogue.TEMPLATES,
    *browsing.TEMPLATES,
    *lookups.TEMPLATES,
    *reviews.TEMPLATES,
    *orders.TEMPLATES,
    *cart.TEMPLATES,
    *ordering.TEMPLATES,
    *account.TEMPLATES,
    *combined.TEMPLATES,
)

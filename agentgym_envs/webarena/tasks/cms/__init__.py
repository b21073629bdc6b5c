"""The tasks in the administration, group "cms"."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.cms import (
    batches,
    browsing,
    combined,
    content,
    customers,
    fulfilling,
    marketing,
    opinions,
    orders,
    periods,
    products,
    reports,
    reviews,
    start_pages,
)
from agentgym_envs.webarena.tasks.template import templates_in

TEMPLATES = templates_in(
    orders,
    browsing,
    fulfilling,
    products,
    customers,
    reviews,
    marketing,
    content,
    reports,
    combined,
    opinions,
    batches,
    periods,
    start_pages,
)

"""The tasks in the administration, group "cms"."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.cms import (
    browsing,
    combined,
    content,
    customers,
    fulfilling,
    marketing,
    orders,
    products,
    reports,
    reviews,
    start_pages,
)
from agentgym_envs.webarena.tasks.template import templates_in

TEMPLATES = templates_in(
    orders, browsing, fulfilling, products, customers, reviews, marketing, content, reports, combined, start_pages
)

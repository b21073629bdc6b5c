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
)
from agentgym_envs.webarena.tasks.template import AnyTemplate

_MODULES = (orders, browsing, fulfilling, products, customers, reviews, marketing, content, reports, combined)
TEMPLATES: tuple[AnyTemplate, ...] = tuple(template for module in _MODULES for template in module.TEMPLATES)

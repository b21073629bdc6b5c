"""The dashboard and its chart."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.admin.days import RANGES, interval_label
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
RANGE_CHOICES = tuple((key, value[0]) for key, value in RANGES.items())
CHARTS = (("orders", "Orders"), ("amounts", "Amounts"))
_SOLD = "status <> 'canceled'"
_LATEST = """
SELECT o.id, o.number, c.first || ' ' || c.last AS customer, o.total,
    (SELECT SUM(quantity) FROM shop_order_lines WHERE order_id = o.id) AS items
FROM shop_orders o JOIN shop_customers c ON c.id = o.customer ORDER BY o.moment DESC, o.id DESC LIMIT 5
"""
_BESTSELLERS = f"""
SELECT p.id, p.name, p.price, SUM(l.quantity) AS quantity FROM shop_order_lines l
JOIN shop_orders o ON o.id = l.order_id JOIN shop_products p ON p.id = l.product
WHERE o.{_SOLD} GROUP BY p.id ORDER BY quantity DESC, p.name, p.id LIMIT 5
"""
_NEWEST = """
SELECT c.id, c.first || ' ' || c.last AS name, c.joined, COUNT(o.id) AS orders, COALESCE(SUM(o.total), 0) AS total
FROM (SELECT * FROM shop_customers ORDER BY joined DESC, id DESC LIMIT 5) c
LEFT JOIN shop_orders o ON o.customer = c.id AND o.status <> 'canceled' GROUP BY c.id ORDER BY c.joined DESC, c.id DESC
"""
_MOST_ACTIVE = f"""
SELECT c.id, c.first || ' ' || c.last AS name, COUNT(*) AS orders, SUM(o.total) AS total
FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
WHERE o.{_SOLD} GROUP BY c.id ORDER BY orders DESC, total DESC, c.id LIMIT 5
"""


class Bar(NamedTuple):
    """A bar of the chart: its label, its value as text, and its height in percent."""

    label: str
    text: str
    height: float


@routes.get("/")
def dashboard(context: RequestContext) -> Response:
    """Show the dashboard."""
    period = context.query.choice("range", list(RANGES), "1y")
    chart = context.query.choice("chart", [key for key, _ in CHARTS], "orders")
    sums = "COALESCE(SUM(total), 0) AS total, COALESCE(SUM(tax), 0) AS tax, COALESCE(SUM(shipping), 0) AS shipping"
    return context.page(
        "dashboard.html",
        period=period,
        chart=chart,
        ranges=RANGE_CHOICES,
        charts=CHARTS,
        life=context.one(f"SELECT COUNT(*) AS orders, COALESCE(SUM(total), 0) AS total FROM shop_orders WHERE {_SOLD}"),
        totals=context.one(
            f"SELECT COUNT(*) AS orders, {sums} FROM shop_orders WHERE {_SOLD} AND moment >= ?", RANGES[period][1]()[0]
        ),
        bars=_bars(context, period, chart),
        **_lists(context),
    )


def _lists(context: RequestContext) -> dict[str, Any]:
    searches = "SELECT term, results, uses FROM shop_searches ORDER BY {} DESC, id LIMIT 5"
    return {
        "latest": context.rows(_LATEST),
        "last_searches": context.rows(searches.format("last")),
        "top_searches": context.rows(searches.format("uses")),
        "bestsellers": context.rows(_BESTSELLERS),
        "newest": context.rows(_NEWEST),
        "most_active": context.rows(_MOST_ACTIVE),
    }


def _bars(context: RequestContext, period: str, chart: str) -> list[Bar]:
    """Return a bar for each hour, day or month of the range, including those without sales."""
    _, starts, length = RANGES[period]
    measure = "COUNT(*)" if chart == "orders" else "SUM(total)"
    query = f"SELECT substr(moment, 1, ?), {measure} FROM shop_orders WHERE {_SOLD} AND moment >= ? GROUP BY 1"
    keys = starts()
    values: dict[str, int] = {row[0]: row[1] for row in context.rows(query, length, keys[0])}
    most = max(values.values(), default=0) or 1
    format_value: Any = str if chart == "orders" else money
    return [
        Bar(_label(key), format_value(values.get(key, 0)), round(100 * values.get(key, 0) / most, 1)) for key in keys
    ]


def _label(key: str) -> str:
    """Format an hour such as "2026-03-16 09" as "9:00", and a day or month as in reports."""
    return f"{int(key[11:])}:00" if len(key) > 10 else interval_label(key)

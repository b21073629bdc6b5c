"""The dashboard, with its chart."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.admin.days import RANGES, told
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
    """A bar of the chart: its label and value, and how high it is in percent."""

    label: str
    told: str
    height: float


@routes.get("/")
def dashboard(visit: RequestContext) -> Response:
    """Everything at a glance."""
    period = visit.query.choice("range", list(RANGES), "1y")
    chart = visit.query.choice("chart", [key for key, _ in CHARTS], "orders")
    sums = "COALESCE(SUM(total), 0) AS total, COALESCE(SUM(tax), 0) AS tax, COALESCE(SUM(shipping), 0) AS shipping"
    return visit.page(
        "dashboard.html",
        period=period,
        chart=chart,
        ranges=RANGE_CHOICES,
        charts=CHARTS,
        life=visit.one(f"SELECT COUNT(*) AS orders, COALESCE(SUM(total), 0) AS total FROM shop_orders WHERE {_SOLD}"),
        totals=visit.one(
            f"SELECT COUNT(*) AS orders, {sums} FROM shop_orders WHERE {_SOLD} AND moment >= ?", RANGES[period][1]()[0]
        ),
        bars=_bars(visit, period, chart),
        **_lists(visit),
    )


def _lists(visit: RequestContext) -> dict[str, Any]:
    searches = "SELECT term, results, uses FROM shop_searches ORDER BY {} DESC, id LIMIT 5"
    return {
        "latest": visit.rows(_LATEST),
        "last_searches": visit.rows(searches.format("last")),
        "top_searches": visit.rows(searches.format("uses")),
        "bestsellers": visit.rows(_BESTSELLERS),
        "newest": visit.rows(_NEWEST),
        "most_active": visit.rows(_MOST_ACTIVE),
    }


def _bars(visit: RequestContext, period: str, chart: str) -> list[Bar]:
    """One for each hour, day or month of the range, even where nothing was sold."""
    _, starts, length = RANGES[period]
    measure = "COUNT(*)" if chart == "orders" else "SUM(total)"
    query = f"SELECT substr(moment, 1, ?), {measure} FROM shop_orders WHERE {_SOLD} AND moment >= ? GROUP BY 1"
    keys = starts()
    values: dict[str, int] = {row[0]: row[1] for row in visit.rows(query, length, keys[0])}
    most = max(values.values(), default=0) or 1
    tell: Any = str if chart == "orders" else money
    return [Bar(_label(key), tell(values.get(key, 0)), round(100 * values.get(key, 0) / most, 1)) for key in keys]


def _label(key: str) -> str:
    """An hour such as "2026-03-16 09" as "9:00", a day or a month as reports tell it."""
    return f"{int(key[11:])}:00" if len(key) > 10 else told(key)

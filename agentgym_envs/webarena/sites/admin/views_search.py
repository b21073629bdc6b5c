"""The search in the header: orders, customers and products."""

from __future__ import annotations

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
MOST, SUGGESTIONS = 10, 6
_ORDERS = """
SELECT o.id, o.number, o.moment, o.status, o.total, c.first || ' ' || c.last AS customer
FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
WHERE instr(o.number, ?) ORDER BY o.number = ? DESC, o.moment DESC, o.id DESC LIMIT ?
"""
_CUSTOMERS = """
SELECT id, first || ' ' || last AS name, email, customer_group FROM shop_customers
WHERE instr(lower(first || ' ' || last || ' ' || email), lower(?)) ORDER BY last, first, id LIMIT ?
"""
_PRODUCTS = """
SELECT id, name, sku, price FROM shop_products WHERE instr(lower(name || ' ' || sku), lower(?))
ORDER BY name, id LIMIT ?
"""


@routes.get("/suggest")
def suggest(context: RequestContext) -> Response:
    """List customers and products for the search box."""
    query = context.query.text("q", most=200)
    people = [(f"/customers/{row['id']}", row["name"]) for row in context.rows(_CUSTOMERS, query, SUGGESTIONS)]
    products = [(f"/products/{row['id']}", row["name"]) for row in context.rows(_PRODUCTS, query, SUGGESTIONS)]
    return context.page("suggestions.html", suggestions=[*people, *products][:SUGGESTIONS])


@routes.get("/search")
def search(context: RequestContext) -> Response:
    """Show up to ten results of each kind."""
    query = context.query.text("q", most=200)
    number = query.lstrip("#")
    return context.page(
        "search.html",
        query=query,
        orders=context.rows(_ORDERS, number, number.zfill(9), MOST) if number.isdigit() else [],
        customers=context.rows(_CUSTOMERS, query, MOST) if query else [],
        products=context.rows(_PRODUCTS, query, MOST) if query else [],
    )

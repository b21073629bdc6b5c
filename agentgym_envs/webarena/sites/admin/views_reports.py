"""Reports."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.admin.reports import Report
from agentgym_envs.webarena.sites.admin.views_marketing import TERMS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
LOW = 10
"""Fewer in stock are few."""
_INTERVAL = Column("interval", "Interval", "interval")
ORDERS = Report(
    title="Orders Report",
    source="""SELECT {interval} AS interval, COUNT(*) AS orders, SUM((SELECT SUM(quantity) FROM shop_order_lines
        WHERE order_id = o.id)) AS items, SUM(o.total) AS total, SUM(o.tax) AS tax, SUM(o.shipping) AS shipping,
        SUM(o.discount) AS discount,
        SUM((SELECT COALESCE(SUM(total), 0) FROM shop_refunds WHERE order_id = o.id)) AS refunded
        FROM shop_orders o WHERE {where} GROUP BY 1 ORDER BY 1""",
    columns=(
        _INTERVAL,
        Column("orders", "Orders", "number"),
        Column("items", "Sales Items", "number"),
        Column("total", "Sales Total", "money"),
        Column("tax", "Sales Tax", "money"),
        Column("shipping", "Sales Shipping", "money"),
        Column("discount", "Sales Discount", "money"),
        Column("refunded", "Refunded", "money"),
    ),
    sums=("orders", "items", "total", "tax", "shipping", "discount", "refunded"),
)
BESTSELLERS = Report(
    title="Bestsellers Report",
    source="""SELECT interval, id, name, price, quantity FROM (
        SELECT {interval} AS interval, p.id, p.name, p.price, SUM(l.quantity) AS quantity, ROW_NUMBER() OVER (
            PARTITION BY {interval} ORDER BY SUM(l.quantity) DESC, p.name, p.id) AS place
        FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id JOIN shop_products p ON p.id = l.product
        WHERE {where} GROUP BY 1, p.id
    ) WHERE place <= 5 ORDER BY interval, place""",
    columns=(
        _INTERVAL,
        Column("name", "Product"),
        Column("price", "Price", "money"),
        Column("quantity", "Order Quantity", "number"),
    ),
    path="/products/{id}",
)
PRODUCTS = Report(
    title="Ordered Products Report",
    source="""SELECT p.id, p.name, p.sku, SUM(l.quantity) AS quantity, SUM(l.quantity * l.price) AS worth
        FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id JOIN shop_products p ON p.id = l.product
        WHERE {where} GROUP BY p.id ORDER BY quantity DESC, p.name, p.id""",
    columns=(
        Column("name", "Product"),
        Column("sku", "SKU"),
        Column("quantity", "Ordered Quantity", "number"),
        Column("worth", "Sales", "money"),
    ),
    sums=("quantity", "worth"),
    periods=False,
    path="/products/{id}",
)
COUPONS = Report(
    title="Coupons Report",
    source="""SELECT {interval} AS interval, o.coupon, COUNT(*) AS uses, SUM(o.subtotal) AS subtotal,
        SUM(o.discount) AS discount, SUM(o.total) AS total
        FROM shop_orders o WHERE {where} AND o.coupon <> '' GROUP BY 1, 2 ORDER BY 1, uses DESC, 2""",
    columns=(
        _INTERVAL,
        Column("coupon", "Coupon Code"),
        Column("uses", "Uses", "number"),
        Column("subtotal", "Sales Subtotal", "money"),
        Column("discount", "Sales Discount", "money"),
        Column("total", "Sales Total", "money"),
    ),
    sums=("uses", "subtotal", "discount", "total"),
)
CUSTOMERS = Report(
    title="Order Count Report",
    source="""SELECT c.id, c.first || ' ' || c.last AS customer, c.email, COUNT(*) AS orders,
        CAST(ROUND(AVG(o.total)) AS INTEGER) AS average, SUM(o.total) AS total
        FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
        WHERE {where} GROUP BY c.id ORDER BY orders DESC, total DESC, c.id""",
    columns=(
        Column("customer", "Customer"),
        Column("email", "E-mail"),
        Column("orders", "Orders", "number"),
        Column("average", "Average", "money"),
        Column("total", "Total", "money"),
    ),
    sums=("orders", "total"),
    periods=False,
    path="/customers/{id}",
    names="customer",
)
LOW_STOCK = Grid(
    title="Low Stock Report",
    source=f"""SELECT p.id, p.name, p.sku, p.stock, k.name AS category FROM shop_products p
        JOIN shop_categories k ON k.id = p.category WHERE p.stock < {LOW} AND p.enabled""",
    columns=(
        Column("name", "Product"),
        Column("sku", "SKU"),
        Column("category", "Category"),
        Column("stock", "Stock Quantity", "number"),
    ),
    filters=(
        Filter("name", "Product"),
        Filter("sku", "SKU"),
        Filter("category", "Category"),
        Filter("stock", "Stock quantity", "number"),
    ),
    order="stock",
    falling=False,
    path="/products/{id}",
)
REVIEWS = Grid(
    title="Product Reviews Report",
    source="""SELECT p.id, p.name, COUNT(*) AS reviews, ROUND(AVG(r.rating), 2) AS average, MAX(r.moment) AS last,
        SUM(r.status = 'approved') AS approved FROM shop_reviews r JOIN shop_products p ON p.id = r.product
        GROUP BY p.id""",
    columns=(
        Column("name", "Product"),
        Column("reviews", "Reviews", "number"),
        Column("approved", "Approved", "number"),
        Column("average", "Average Rating"),
        Column("last", "Last Review", "day"),
    ),
    filters=(
        Filter("name", "Product"),
        Filter("reviews", "Reviews", "number"),
        Filter("last", "Last review", "day"),
    ),
    order="reviews",
    path="/products/{id}",
)
REVIEWERS = Grid(
    title="Customer Reviews Report",
    source="""SELECT c.id, c.first || ' ' || c.last AS name, COUNT(*) AS reviews, ROUND(AVG(r.rating), 2) AS average,
        MAX(r.moment) AS last FROM shop_reviews r JOIN shop_customers c ON c.id = r.customer GROUP BY c.id""",
    columns=(
        Column("name", "Customer"),
        Column("reviews", "Reviews", "number"),
        Column("average", "Average Rating"),
        Column("last", "Last Review", "day"),
    ),
    filters=(
        Filter("name", "Customer"),
        Filter("reviews", "Reviews", "number"),
        Filter("last", "Last review", "day"),
    ),
    order="reviews",
    path="/customers/{id}",
)


@routes.get("/reports/orders")
def orders(visit: RequestContext) -> Response:
    """Sales by day, month or year."""
    return ORDERS.page(visit)


@routes.get("/reports/bestsellers")
def bestsellers(visit: RequestContext) -> Response:
    """The five products that sold best in each interval."""
    return BESTSELLERS.page(visit)


@routes.get("/reports/products")
def products(visit: RequestContext) -> Response:
    """What was sold over all of the time, most first."""
    return PRODUCTS.page(visit)


@routes.get("/reports/coupons")
def coupons(visit: RequestContext) -> Response:
    """How coupons were used."""
    return COUPONS.page(visit)


@routes.get("/reports/customers")
def customers(visit: RequestContext) -> Response:
    """Who ordered most often."""
    return CUSTOMERS.page(visit)


@routes.get("/reports/low-stock")
def low_stock(visit: RequestContext) -> Response:
    """What runs out."""
    return LOW_STOCK.page(visit, "grid.html")


@routes.get("/reports/reviews")
def reviews(visit: RequestContext) -> Response:
    """How often products were reviewed."""
    return REVIEWS.page(visit, "grid.html")


@routes.get("/reports/reviewers")
def reviewers(visit: RequestContext) -> Response:
    """How often customers wrote reviews."""
    return REVIEWERS.page(visit, "grid.html")


@routes.get("/reports/search-terms")
def terms(visit: RequestContext) -> Response:
    """What was searched for most."""
    return TERMS.page(visit, "grid.html", heading="Search Terms Report")

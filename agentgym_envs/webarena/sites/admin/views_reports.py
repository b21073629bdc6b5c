"""Reports."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
from agentgym_envs.webarena.sites.admin.reports import SalesReport
from agentgym_envs.webarena.sites.admin.views_marketing import TERMS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
LOW = 10
"""Stock below this number is low."""
_INTERVAL = GridColumn("interval", "Interval", "interval")
ORDERS = SalesReport(
    title="Orders Report",
    source="""SELECT {interval} AS interval, COUNT(*) AS orders, SUM((SELECT SUM(quantity) FROM shop_order_lines
        WHERE order_id = o.id)) AS items, SUM(o.total) AS total, SUM(o.tax) AS tax, SUM(o.shipping) AS shipping,
        SUM(o.discount) AS discount,
        SUM((SELECT COALESCE(SUM(total), 0) FROM shop_refunds WHERE order_id = o.id)) AS refunded
        FROM shop_orders o WHERE {where} GROUP BY 1 ORDER BY 1""",
    columns=(
        _INTERVAL,
        GridColumn("orders", "Orders", "number"),
        GridColumn("items", "Sales Items", "number"),
        GridColumn("total", "Sales Total", "money"),
        GridColumn("tax", "Sales Tax", "money"),
        GridColumn("shipping", "Sales Shipping", "money"),
        GridColumn("discount", "Sales Discount", "money"),
        GridColumn("refunded", "Refunded", "money"),
    ),
    sums=("orders", "items", "total", "tax", "shipping", "discount", "refunded"),
)
BESTSELLERS = SalesReport(
    title="Bestsellers Report",
    source="""SELECT interval, id, name, price, quantity FROM (
        SELECT {interval} AS interval, p.id, p.name, p.price, SUM(l.quantity) AS quantity, ROW_NUMBER() OVER (
            PARTITION BY {interval} ORDER BY SUM(l.quantity) DESC, p.name, p.id) AS rank
        FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id JOIN shop_products p ON p.id = l.product
        WHERE {where} GROUP BY 1, p.id
    ) WHERE rank <= 5 ORDER BY interval, rank""",
    columns=(
        _INTERVAL,
        GridColumn("name", "Product"),
        GridColumn("price", "Price", "money"),
        GridColumn("quantity", "Order Quantity", "number"),
    ),
    path="/products/{id}",
)
PRODUCTS = SalesReport(
    title="Ordered Products Report",
    source="""SELECT p.id, p.name, p.sku, SUM(l.quantity) AS quantity, SUM(l.quantity * l.price) AS worth
        FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id JOIN shop_products p ON p.id = l.product
        WHERE {where} GROUP BY p.id ORDER BY quantity DESC, p.name, p.id""",
    columns=(
        GridColumn("name", "Product"),
        GridColumn("sku", "SKU"),
        GridColumn("quantity", "Ordered Quantity", "number"),
        GridColumn("worth", "Sales", "money"),
    ),
    sums=("quantity", "worth"),
    periods=False,
    path="/products/{id}",
)
COUPONS = SalesReport(
    title="Coupons Report",
    source="""SELECT {interval} AS interval, o.coupon, COUNT(*) AS uses, SUM(o.subtotal) AS subtotal,
        SUM(o.discount) AS discount, SUM(o.total) AS total
        FROM shop_orders o WHERE {where} AND o.coupon <> '' GROUP BY 1, 2 ORDER BY 1, uses DESC, 2""",
    columns=(
        _INTERVAL,
        GridColumn("coupon", "Coupon Code"),
        GridColumn("uses", "Uses", "number"),
        GridColumn("subtotal", "Sales Subtotal", "money"),
        GridColumn("discount", "Sales Discount", "money"),
        GridColumn("total", "Sales Total", "money"),
    ),
    sums=("uses", "subtotal", "discount", "total"),
)
CUSTOMERS = SalesReport(
    title="Order Count Report",
    source="""SELECT c.id, c.first || ' ' || c.last AS customer, c.email, COUNT(*) AS orders,
        CAST(ROUND(AVG(o.total)) AS INTEGER) AS average, SUM(o.total) AS total
        FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
        WHERE {where} GROUP BY c.id ORDER BY orders DESC, total DESC, c.id""",
    columns=(
        GridColumn("customer", "Customer"),
        GridColumn("email", "E-mail"),
        GridColumn("orders", "Orders", "number"),
        GridColumn("average", "Average", "money"),
        GridColumn("total", "Total", "money"),
    ),
    sums=("orders", "total"),
    periods=False,
    path="/customers/{id}",
    link_column="customer",
)
LOW_STOCK = Grid(
    title="Low Stock Report",
    source=f"""SELECT p.id, p.name, p.sku, p.stock, k.name AS category FROM shop_products p
        JOIN shop_categories k ON k.id = p.category WHERE p.stock < {LOW} AND p.enabled""",
    columns=(
        GridColumn("name", "Product"),
        GridColumn("sku", "SKU"),
        GridColumn("category", "Category"),
        GridColumn("stock", "Stock Quantity", "number"),
    ),
    filters=(
        GridFilter("name", "Product"),
        GridFilter("sku", "SKU"),
        GridFilter("category", "Category"),
        GridFilter("stock", "Stock quantity", "number"),
    ),
    order="stock",
    descending=False,
    path="/products/{id}",
)
REVIEWS = Grid(
    title="Product Reviews Report",
    source="""SELECT p.id, p.name, COUNT(*) AS reviews, ROUND(AVG(r.rating), 2) AS average, MAX(r.moment) AS last,
        SUM(r.status = 'approved') AS approved FROM shop_reviews r JOIN shop_products p ON p.id = r.product
        GROUP BY p.id""",
    columns=(
        GridColumn("name", "Product"),
        GridColumn("reviews", "Reviews", "number"),
        GridColumn("approved", "Approved", "number"),
        GridColumn("average", "Average Rating"),
        GridColumn("last", "Last Review", "day"),
    ),
    filters=(
        GridFilter("name", "Product"),
        GridFilter("reviews", "Reviews", "number"),
        GridFilter("last", "Last review", "day"),
    ),
    order="reviews",
    path="/products/{id}",
)
REVIEWERS = Grid(
    title="Customer Reviews Report",
    source="""SELECT c.id, c.first || ' ' || c.last AS name, COUNT(*) AS reviews, ROUND(AVG(r.rating), 2) AS average,
        MAX(r.moment) AS last FROM shop_reviews r JOIN shop_customers c ON c.id = r.customer GROUP BY c.id""",
    columns=(
        GridColumn("name", "Customer"),
        GridColumn("reviews", "Reviews", "number"),
        GridColumn("average", "Average Rating"),
        GridColumn("last", "Last Review", "day"),
    ),
    filters=(
        GridFilter("name", "Customer"),
        GridFilter("reviews", "Reviews", "number"),
        GridFilter("last", "Last review", "day"),
    ),
    order="reviews",
    path="/customers/{id}",
)


@routes.get("/reports/orders")
def orders(context: RequestContext) -> Response:
    """Show sales by day, month or year."""
    return ORDERS.page(context)


@routes.get("/reports/bestsellers")
def bestsellers(context: RequestContext) -> Response:
    """Show the five best-selling products of each interval."""
    return BESTSELLERS.page(context)


@routes.get("/reports/products")
def products(context: RequestContext) -> Response:
    """Show the quantities sold over the whole period, highest first."""
    return PRODUCTS.page(context)


@routes.get("/reports/coupons")
def coupons(context: RequestContext) -> Response:
    """Show the use of coupons."""
    return COUPONS.page(context)


@routes.get("/reports/customers")
def customers(context: RequestContext) -> Response:
    """Show the customers with the most orders."""
    return CUSTOMERS.page(context)


@routes.get("/reports/low-stock")
def low_stock(context: RequestContext) -> Response:
    """Show products with low stock."""
    return LOW_STOCK.page(context, "grid.html")


@routes.get("/reports/reviews")
def reviews(context: RequestContext) -> Response:
    """Show the number of reviews by product."""
    return REVIEWS.page(context, "grid.html")


@routes.get("/reports/reviewers")
def reviewers(context: RequestContext) -> Response:
    """Show the number of reviews by customer."""
    return REVIEWERS.page(context, "grid.html")


@routes.get("/reports/search-terms")
def terms(context: RequestContext) -> Response:
    """Show the most used search terms."""
    return TERMS.page(context, "grid.html", heading="Search Terms Report")

"""The orders of a customer."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.cart import put_in
from agentgym_envs.webarena.sites.shop.store import cards

routes = Routes()
ORDERS_A_PAGE = 10
STATUSES = ("pending", "processing", "complete", "canceled", "on hold", "closed")


@routes.get("/account/orders")
def orders(context: RequestContext) -> Response:
    """List the orders, newest first, optionally with one status."""
    account = context.require_login()
    status = context.query.choice("status", STATUSES)
    where = "customer = ? AND (? = '' OR status = ?)"
    count = context.value(f"SELECT COUNT(*) FROM shop_orders WHERE {where}", account, status, status)
    paging = Paging.of(context.query, count, ORDERS_A_PAGE)
    rows = context.rows(
        "SELECT o.*, (SELECT SUM(quantity) FROM shop_order_lines l WHERE l.order_id = o.id) AS items, "
        "(SELECT name FROM shop_order_addresses a WHERE a.order_id = o.id AND a.kind = 'shipping') AS recipient "
        f"FROM shop_orders o WHERE {where} ORDER BY moment DESC, id DESC LIMIT {paging.size} OFFSET ?",
        *(account, status, status, paging.skipped),
    )
    return context.page("orders.html", orders=rows, paging=paging, chosen=status, statuses=STATUSES)


@routes.get("/account/orders/{number}")
def order(context: RequestContext, number: str) -> Response:
    """Show an order with all its details."""
    order = _order(context, number)
    return context.page(
        "order.html",
        order=order,
        lines=context.rows(
            "SELECT l.*, p.slug, p.enabled FROM shop_order_lines l JOIN shop_products p ON p.id = l.product "
            "WHERE l.order_id = ? ORDER BY l.id",
            order["id"],
        ),
        addresses=context.rows("SELECT * FROM shop_order_addresses WHERE order_id = ? ORDER BY kind DESC", order["id"]),
        comments=context.rows(
            "SELECT * FROM shop_order_comments WHERE order_id = ? AND visible = 1 ORDER BY moment, id", order["id"]
        ),
        tracks=context.rows(
            "SELECT t.*, s.number AS shipment_number FROM shop_tracks t JOIN shop_shipments s ON s.id = t.shipment "
            "WHERE s.order_id = ? ORDER BY t.id",
            order["id"],
        ),
        invoices=context.rows("SELECT * FROM shop_invoices WHERE order_id = ? ORDER BY id", order["id"]),
        shipments=context.rows("SELECT * FROM shop_shipments WHERE order_id = ? ORDER BY id", order["id"]),
        refunds=context.rows("SELECT * FROM shop_refunds WHERE order_id = ? ORDER BY id", order["id"]),
    )


@routes.post("/account/orders/{number}/reorder")
def reorder(context: RequestContext, number: str) -> Response:
    """Add all products of an order to the cart."""
    order = _order(context, number)
    for line in context.rows("SELECT * FROM shop_order_lines WHERE order_id = ? ORDER BY id", order["id"]):
        product = cards(context, "p.id = ?", line["product"])
        gone = "It is no longer sold."
        if error := put_in(context, product[0], line["options"], line["quantity"]) if product else gone:
            context.flash(f"{line['name']} was not added. {error}", "error")
        else:
            context.flash(f"You added {line['name']} to your shopping cart.")
    return Redirect("/cart")


@routes.post("/account/orders/{number}/cancel")
def cancel(context: RequestContext, number: str) -> Response:
    """Cancel a pending order."""
    order = _order(context, number)
    context.require(order["status"] == "pending", "Only pending orders can be canceled.")
    context.write("UPDATE shop_orders SET status = 'canceled' WHERE id = ?", order["id"])
    for line in context.rows("SELECT product, quantity FROM shop_order_lines WHERE order_id = ?", order["id"]):
        context.write("UPDATE shop_products SET stock = stock + ? WHERE id = ?", line["quantity"], line["product"])
    context.flash(f"Order # {number} has been canceled.")
    return Redirect(f"/account/orders/{number}")


def _order(context: RequestContext, number: str) -> sqlite3.Row:
    """Return an order of the signed-in customer."""
    account = context.require_login()
    order = context.row("SELECT * FROM shop_orders WHERE number = ? AND customer = ?", number, account)
    if order is None:
        raise NotFound("You have no order of that number.")
    return order

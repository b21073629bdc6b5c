"""A customer's orders."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Missing, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.cart import put_in
from agentgym_envs.webarena.sites.shop.store import cards

routes = Routes()
ORDERS_A_PAGE = 10
STATUSES = ("pending", "processing", "complete", "canceled", "on hold", "closed")


@routes.get("/account/orders")
def orders(visit: RequestContext) -> Response:
    """All orders, newest first, of one status if the query says so."""
    account = visit.must_be_signed_in()
    status = visit.query.choice("status", STATUSES)
    where = "customer = ? AND (? = '' OR status = ?)"
    count = visit.value(f"SELECT COUNT(*) FROM shop_orders WHERE {where}", account, status, status)
    paging = Paging.of(visit.query, count, ORDERS_A_PAGE)
    rows = visit.rows(
        "SELECT o.*, (SELECT SUM(quantity) FROM shop_order_lines l WHERE l.order_id = o.id) AS items, "
        "(SELECT name FROM shop_order_addresses a WHERE a.order_id = o.id AND a.kind = 'shipping') AS recipient "
        f"FROM shop_orders o WHERE {where} ORDER BY moment DESC, id DESC LIMIT {paging.size} OFFSET ?",
        *(account, status, status, paging.skipped),
    )
    return visit.page("orders.html", orders=rows, paging=paging, chosen=status, statuses=STATUSES)


@routes.get("/account/orders/{number}")
def order(visit: RequestContext, number: str) -> Response:
    """An order with everything that belongs to it."""
    found = _order(visit, number)
    return visit.page(
        "order.html",
        order=found,
        lines=visit.rows(
            "SELECT l.*, p.slug, p.enabled FROM shop_order_lines l JOIN shop_products p ON p.id = l.product "
            "WHERE l.order_id = ? ORDER BY l.id",
            found["id"],
        ),
        addresses=visit.rows("SELECT * FROM shop_order_addresses WHERE order_id = ? ORDER BY kind DESC", found["id"]),
        comments=visit.rows(
            "SELECT * FROM shop_order_comments WHERE order_id = ? AND visible = 1 ORDER BY moment, id", found["id"]
        ),
        tracks=visit.rows(
            "SELECT t.*, s.number AS shipment_number FROM shop_tracks t JOIN shop_shipments s ON s.id = t.shipment "
            "WHERE s.order_id = ? ORDER BY t.id",
            found["id"],
        ),
        invoices=visit.rows("SELECT * FROM shop_invoices WHERE order_id = ? ORDER BY id", found["id"]),
        shipments=visit.rows("SELECT * FROM shop_shipments WHERE order_id = ? ORDER BY id", found["id"]),
        refunds=visit.rows("SELECT * FROM shop_refunds WHERE order_id = ? ORDER BY id", found["id"]),
    )


@routes.post("/account/orders/{number}/reorder")
def reorder(visit: RequestContext, number: str) -> Response:
    """Put everything from an order into the cart once more."""
    found = _order(visit, number)
    for line in visit.rows("SELECT * FROM shop_order_lines WHERE order_id = ? ORDER BY id", found["id"]):
        product = cards(visit, "p.id = ?", line["product"])
        gone = "It is no longer sold."
        if wrong := put_in(visit, product[0], line["options"], line["quantity"]) if product else gone:
            visit.say(f"{line['name']} was not added. {wrong}", "error")
        else:
            visit.say(f"You added {line['name']} to your shopping cart.")
    return Redirect("/cart")


@routes.post("/account/orders/{number}/cancel")
def cancel(visit: RequestContext, number: str) -> Response:
    """Cancel an order that nobody has begun to pack."""
    found = _order(visit, number)
    visit.must(found["status"] == "pending", "Only pending orders can be canceled.")
    visit.write("UPDATE shop_orders SET status = 'canceled' WHERE id = ?", found["id"])
    for line in visit.rows("SELECT product, quantity FROM shop_order_lines WHERE order_id = ?", found["id"]):
        visit.write("UPDATE shop_products SET stock = stock + ? WHERE id = ?", line["quantity"], line["product"])
    visit.say(f"Order # {number} has been canceled.")
    return Redirect(f"/account/orders/{number}")


def _order(visit: RequestContext, number: str) -> sqlite3.Row:
    """An order of who is signed in."""
    account = visit.must_be_signed_in()
    found = visit.row("SELECT * FROM shop_orders WHERE number = ? AND customer = ?", number, account)
    if found is None:
        raise Missing("You have no order of that number.")
    return found

"""Orders: the grid, an order's page, its comments and addresses."""

from __future__ import annotations

from typing import Any

from agentgym_envs.webarena.sites.admin.forms import Checked
from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.admin.order_rules import STATUS_CHOICES, Order, set_status
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Missing, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
ADDRESS = ("name", "street", "town", "region", "zip", "phone")
_SOURCE = """
SELECT o.id, o.number, o.moment, o.status, o.total, b.name AS bill_to, s.name AS ship_to,
    c.first || ' ' || c.last AS customer, c.email
FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
LEFT JOIN shop_order_addresses b ON b.order_id = o.id AND b.kind = 'billing'
LEFT JOIN shop_order_addresses s ON s.order_id = o.id AND s.kind = 'shipping'
"""
ORDERS = Grid(
    title="Orders",
    source=_SOURCE,
    columns=(
        Column("number", "Order #"),
        Column("moment", "Purchase Date", "moment"),
        Column("customer", "Customer"),
        Column("ship_to", "Ship-to Name"),
        Column("total", "Grand Total", "money"),
        Column("status", "Status", "status"),
    ),
    filters=(
        Filter("number", "Order number"),
        Filter("moment", "Purchase date", "day"),
        Filter("total", "Grand total", "money"),
        Filter("customer", "Customer"),
        Filter("email", "Customer e-mail"),
        Filter("ship_to", "Ship-to name"),
        Filter("status", "Status", "choice", STATUS_CHOICES),
    ),
    order="moment",
    path="/orders/{id}",
    names="number",
)


@routes.get("/orders")
def orders(visit: RequestContext) -> Response:
    """All orders."""
    return ORDERS.page(visit, "grid.html")


@routes.get("/orders/{id:int}")
def order_page(visit: RequestContext, id: int) -> Response:
    """One of them, with all that belongs to it."""
    return _order_page(visit, Order.of(visit, id))


def _order_page(visit: RequestContext, order: Order, status: int = 200, **more: Any) -> Response:
    id = order.row["id"]
    shipments = """SELECT s.*, (SELECT group_concat(carrier || ' ' || number, ', ') FROM shop_tracks
        WHERE shipment = s.id) AS tracks FROM shop_shipments s WHERE s.order_id = ? ORDER BY s.id"""
    values = {
        "order": order,
        "lines": visit.rows("SELECT * FROM shop_order_lines WHERE order_id = ? ORDER BY id", id),
        "addresses": {kind: _address(visit, id, kind) for kind in ("billing", "shipping")},
        "comments": visit.rows(
            "SELECT * FROM shop_order_comments WHERE order_id = ? ORDER BY moment DESC, id DESC", id
        ),
        "invoices": visit.rows("SELECT * FROM shop_invoices WHERE order_id = ? ORDER BY id", id),
        "shipments": visit.rows(shipments, id),
        "refunds": visit.rows("SELECT * FROM shop_refunds WHERE order_id = ? ORDER BY id", id),
        "values": {},
        "wrong": [],
    }
    return visit.page("order.html", status, **{**values, **more})


def _address(visit: RequestContext, id: int, kind: str) -> Any:
    return visit.row("SELECT * FROM shop_order_addresses WHERE order_id = ? AND kind = ?", id, kind)


@routes.post("/orders/{id:int}/comments")
def comment(visit: RequestContext, id: int) -> Response:
    """Say something about an order, and perhaps set its status."""
    order, sent = Order.of(visit, id), Checked(visit)
    status = sent.choice("status", "Status", order.next_statuses)
    text = sent.text("comment", "Comment", most=2_000)
    if sent.wrong:
        return _order_page(visit, order, 422, values=sent.as_sent("status", "comment"), wrong=sent.wrong)
    set_status(visit, order, status)
    add_comment(visit, id, status, text, sent.ticked("visible"), sent.ticked("notify"))
    visit.say("You added the comment to the order.")
    return Redirect(f"/orders/{id}")


def add_comment(visit: RequestContext, id: int, status: str, text: str, visible: int, notified: int) -> None:
    """Write a comment into an order's history."""
    insert = """INSERT INTO shop_order_comments (order_id, moment, status, text, visible, notified)
        VALUES (?, ?, ?, ?, ?, ?)"""
    visit.write(insert, id, stamp(), status, text, visible, notified)


@routes.get("/orders/{id:int}/{kind}-address")
def address_form(visit: RequestContext, id: int, kind: str) -> Response:
    """The form for an order's address."""
    found = _address(visit, id, kind)
    if found is None:
        raise Missing
    return _address_form(visit, id, kind, {name: found[name] for name in ADDRESS})


def _address_form(
    visit: RequestContext, id: int, kind: str, values: dict[str, str], wrong: tuple[str, ...] = ()
) -> Response:
    order = Order.of(visit, id)
    status = 422 if wrong else 200
    return visit.page("order_address.html", status, order=order, kind=kind, values=values, wrong=wrong)


@routes.post("/orders/{id:int}/{kind}-address")
def edit_address(visit: RequestContext, id: int, kind: str) -> Response:
    """Change it, of this order only."""
    if _address(visit, id, kind) is None:
        raise Missing
    sent = Checked(visit)
    values = read_address(sent)
    if sent.wrong:
        return _address_form(visit, id, kind, sent.as_sent(*ADDRESS), tuple(sent.wrong))
    columns = ", ".join(f"{name} = ?" for name in ADDRESS)
    update = f"UPDATE shop_order_addresses SET {columns} WHERE order_id = ? AND kind = ?"
    visit.write(update, *values.values(), id, kind)
    visit.say(f"You updated the {kind} address of the order.")
    return Redirect(f"/orders/{id}")


def read_address(sent: Checked) -> dict[str, str]:
    """The fields of an address."""
    labels = ("Name", "Street Address", "City", "State/Region", "Zip/Postal Code", "Phone Number")
    return {name: sent.text(name, label, most=120) for name, label in zip(ADDRESS, labels, strict=True)}

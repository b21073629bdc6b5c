"""Orders: the grid, and the page of an order with its comments and addresses."""

from __future__ import annotations

from typing import Any

from agentgym_envs.webarena.sites.admin.forms import CheckedForm
from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
from agentgym_envs.webarena.sites.admin.order_rules import STATUS_CHOICES, AdminOrder, set_status
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
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
        GridColumn("number", "Order #"),
        GridColumn("moment", "Purchase Date", "moment"),
        GridColumn("customer", "Customer"),
        GridColumn("ship_to", "Ship-to Name"),
        GridColumn("total", "Grand Total", "money"),
        GridColumn("status", "Status", "status"),
    ),
    filters=(
        GridFilter("number", "Order number"),
        GridFilter("moment", "Purchase date", "day"),
        GridFilter("total", "Grand total", "money"),
        GridFilter("customer", "Customer"),
        GridFilter("email", "Customer e-mail"),
        GridFilter("ship_to", "Ship-to name"),
        GridFilter("status", "Status", "choice", STATUS_CHOICES),
    ),
    order="moment",
    path="/orders/{id}",
    link_column="number",
)


@routes.get("/orders")
def orders(context: RequestContext) -> Response:
    """List the orders."""
    return ORDERS.page(context, "grid.html")


@routes.get("/orders/{id:int}")
def order_page(context: RequestContext, id: int) -> Response:
    """Show an order with all its details."""
    return _order_page(context, AdminOrder.of(context, id))


def _order_page(context: RequestContext, order: AdminOrder, status: int = 200, **more: Any) -> Response:
    id = order.row["id"]
    shipments = """SELECT s.*, (SELECT group_concat(carrier || ' ' || number, ', ') FROM shop_tracks
        WHERE shipment = s.id) AS tracks FROM shop_shipments s WHERE s.order_id = ? ORDER BY s.id"""
    values = {
        "order": order,
        "lines": context.rows("SELECT * FROM shop_order_lines WHERE order_id = ? ORDER BY id", id),
        "addresses": {kind: _address(context, id, kind) for kind in ("billing", "shipping")},
        "comments": context.rows(
            "SELECT * FROM shop_order_comments WHERE order_id = ? ORDER BY moment DESC, id DESC", id
        ),
        "invoices": context.rows("SELECT * FROM shop_invoices WHERE order_id = ? ORDER BY id", id),
        "shipments": context.rows(shipments, id),
        "refunds": context.rows("SELECT * FROM shop_refunds WHERE order_id = ? ORDER BY id", id),
        "values": {},
        "errors": [],
    }
    return context.page("order.html", status, **{**values, **more})


def _address(context: RequestContext, id: int, kind: str) -> Any:
    return context.row("SELECT * FROM shop_order_addresses WHERE order_id = ? AND kind = ?", id, kind)


@routes.post("/orders/{id:int}/comments")
def comment(context: RequestContext, id: int) -> Response:
    """Add a comment to an order and optionally set its status."""
    order, form = AdminOrder.of(context, id), CheckedForm(context)
    status = form.choice("status", "Status", order.next_statuses)
    text = form.text("comment", "Comment", most=2_000)
    if form.errors:
        return _order_page(context, order, 422, values=form.as_sent("status", "comment"), errors=form.errors)
    set_status(context, order, status)
    add_comment(context, id, status, text, form.flag("visible"), form.flag("notify"))
    context.flash("You added the comment to the order.")
    return Redirect(f"/orders/{id}")


def add_comment(context: RequestContext, id: int, status: str, text: str, visible: int, notified: int) -> None:
    """Insert a comment into the history of an order."""
    insert = """INSERT INTO shop_order_comments (order_id, moment, status, text, visible, notified)
        VALUES (?, ?, ?, ?, ?, ?)"""
    context.write(insert, id, stamp(), status, text, visible, notified)


@routes.get("/orders/{id:int}/{kind}-address")
def address_form(context: RequestContext, id: int, kind: str) -> Response:
    """Show the form for an address of an order."""
    address = _address(context, id, kind)
    if address is None:
        raise NotFound
    return _address_form(context, id, kind, {name: address[name] for name in ADDRESS})


def _address_form(
    context: RequestContext, id: int, kind: str, values: dict[str, str], errors: tuple[str, ...] = ()
) -> Response:
    order = AdminOrder.of(context, id)
    status = 422 if errors else 200
    return context.page("order_address.html", status, order=order, kind=kind, values=values, errors=errors)


@routes.post("/orders/{id:int}/{kind}-address")
def edit_address(context: RequestContext, id: int, kind: str) -> Response:
    """Save an address of this order."""
    if _address(context, id, kind) is None:
        raise NotFound
    form = CheckedForm(context)
    values = read_address(form)
    if form.errors:
        return _address_form(context, id, kind, form.as_sent(*ADDRESS), tuple(form.errors))
    columns = ", ".join(f"{name} = ?" for name in ADDRESS)
    update = f"UPDATE shop_order_addresses SET {columns} WHERE order_id = ? AND kind = ?"
    context.write(update, *values.values(), id, kind)
    context.flash(f"You updated the {kind} address of the order.")
    return Redirect(f"/orders/{id}")


def read_address(form: CheckedForm) -> dict[str, str]:
    """Return the fields of an address."""
    labels = ("Name", "Street Address", "City", "State/Region", "Zip/Postal Code", "Phone Number")
    return {name: form.text(name, label, most=120) for name, label in zip(ADDRESS, labels, strict=True)}

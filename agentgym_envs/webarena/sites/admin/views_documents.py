"""Invoices, shipments with their tracking numbers, and credit memos."""

from __future__ import annotations

from typing import Any

from agentgym_envs.webarena.sites.admin.forms import CheckedForm, choices
from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
from agentgym_envs.webarena.sites.admin.order_rules import STATUS_CHOICES, AdminOrder
from agentgym_envs.webarena.sites.admin.views_order_steps import read_track
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.names import CARRIERS

routes = Routes()
_OF_ORDER = """
SELECT d.id, d.number, d.moment, {more}o.number AS order_number, o.moment AS ordered, o.status,
    c.first || ' ' || c.last AS customer
FROM {table} d JOIN shop_orders o ON o.id = d.order_id JOIN shop_customers c ON c.id = o.customer
"""
_MONEY = (GridColumn("total", "Amount", "money"),)
_MONEY_FILTER = (GridFilter("total", "Amount", "money"),)


def _grid(
    title: str, what: str, date: str, path: str, source: str, columns: Any = _MONEY, filters: Any = _MONEY_FILTER
) -> Grid:
    return Grid(
        title=title,
        source=source,
        columns=(
            GridColumn("number", f"{what} #"),
            GridColumn("moment", date, "moment"),
            GridColumn("order_number", "Order #"),
            GridColumn("ordered", "Order Date", "day"),
            GridColumn("customer", "Customer"),
            *columns,
            GridColumn("status", "Order Status", "status"),
        ),
        filters=(
            GridFilter("number", f"{what} number"),
            GridFilter("moment", date.capitalize(), "day"),
            GridFilter("order_number", "Order number"),
            GridFilter("customer", "Customer"),
            *filters,
            GridFilter("status", "Order status", "choice", STATUS_CHOICES),
        ),
        order="moment",
        path=path + "/{id}",
        link_column="number",
    )


_INVOICED = _OF_ORDER.format(table="shop_invoices", more="d.total, ")
_REFUNDED = _OF_ORDER.format(table="shop_refunds", more="d.total, ")
_PACKED = "(SELECT SUM(quantity) FROM shop_order_lines WHERE order_id = o.id) AS quantity, "
_SHIPPED = _OF_ORDER.format(table="shop_shipments", more=_PACKED)
INVOICES = _grid("Invoices", "Invoice", "Invoice Date", "/invoices", _INVOICED)
SHIPMENTS = _grid(
    "Shipments",
    "Shipment",
    "Ship Date",
    "/shipments",
    _SHIPPED,
    (GridColumn("quantity", "Total Quantity", "number"),),
    (),
)
REFUNDS = _grid("Credit Memos", "Credit Memo", "Created", "/credit-memos", _REFUNDED)


@routes.get("/invoices")
def invoices(context: RequestContext) -> Response:
    """List the invoices."""
    return INVOICES.page(context, "grid.html")


@routes.get("/shipments")
def shipments(context: RequestContext) -> Response:
    """List the shipments."""
    return SHIPMENTS.page(context, "grid.html")


@routes.get("/credit-memos")
def refunds(context: RequestContext) -> Response:
    """List the credit memos."""
    return REFUNDS.page(context, "grid.html")


@routes.get("/invoices/{id:int}")
def invoice(context: RequestContext, id: int) -> Response:
    """Show an invoice."""
    document = context.one("SELECT * FROM shop_invoices WHERE id = ?", id)
    return _document(context, "Invoice", document)


@routes.get("/credit-memos/{id:int}")
def refund(context: RequestContext, id: int) -> Response:
    """Show a credit memo."""
    document = context.one("SELECT * FROM shop_refunds WHERE id = ?", id)
    return _document(context, "Credit Memo", document)


@routes.get("/shipments/{id:int}")
def shipment(context: RequestContext, id: int) -> Response:
    """Show a shipment."""
    return _shipment(context, id, {}, ())


def _shipment(context: RequestContext, id: int, values: dict[str, str], errors: tuple[str, ...]) -> Response:
    document = context.one("SELECT * FROM shop_shipments WHERE id = ?", id)
    tracks = context.rows("SELECT * FROM shop_tracks WHERE shipment = ? ORDER BY id", id)
    return _document(
        context, "Shipment", document, tracks=tracks, carriers=choices(CARRIERS), values=values, errors=errors
    )


def _document(context: RequestContext, what: str, document: Any, **more: Any) -> Response:
    order = AdminOrder.of(context, document["order_id"])
    lines = context.rows("SELECT * FROM shop_order_lines WHERE order_id = ? ORDER BY id", document["order_id"])
    status = 422 if more.get("errors") else 200
    return context.page("document.html", status, what=what, document=document, order=order, lines=lines, **more)


@routes.post("/shipments/{id:int}/tracks")
def add_track(context: RequestContext, id: int) -> Response:
    """Add a tracking number."""
    form = CheckedForm(context)
    carrier, track = read_track(form, needed=True)
    if form.errors:
        return _shipment(context, id, form.as_sent("carrier", "track"), tuple(form.errors))
    document = context.one("SELECT id FROM shop_shipments WHERE id = ?", id)
    context.write(
        "INSERT INTO shop_tracks (shipment, carrier, number) VALUES (?, ?, ?)", document["id"], carrier, track
    )
    context.flash("You added the tracking number.")
    return Redirect(f"/shipments/{id}")


@routes.post("/shipments/{id:int}/tracks/{track:int}/delete")
def delete_track(context: RequestContext, id: int, track: int) -> Response:
    """Delete a tracking number."""
    context.one("SELECT id FROM shop_tracks WHERE id = ? AND shipment = ?", track, id)
    context.write("DELETE FROM shop_tracks WHERE id = ?", track)
    context.flash("You deleted the tracking number.")
    return Redirect(f"/shipments/{id}")

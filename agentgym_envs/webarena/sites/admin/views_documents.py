"""Invoices, shipments with their tracking numbers, and credit memos."""

from __future__ import annotations

from typing import Any

from agentgym_envs.webarena.sites.admin.forms import Checked, choices
from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.admin.order_rules import STATUS_CHOICES, Order
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
_MONEY = (Column("total", "Amount", "money"),)
_MONEY_FILTER = (Filter("total", "Amount", "money"),)


def _grid(
    title: str, what: str, date: str, path: str, source: str, columns: Any = _MONEY, filters: Any = _MONEY_FILTER
) -> Grid:
    return Grid(
        title=title,
        source=source,
        columns=(
            Column("number", f"{what} #"),
            Column("moment", date, "moment"),
            Column("order_number", "Order #"),
            Column("ordered", "Order Date", "day"),
            Column("customer", "Customer"),
            *columns,
            Column("status", "Order Status", "status"),
        ),
        filters=(
            Filter("number", f"{what} number"),
            Filter("moment", date.capitalize(), "day"),
            Filter("order_number", "Order number"),
            Filter("customer", "Customer"),
            *filters,
            Filter("status", "Order status", "choice", STATUS_CHOICES),
        ),
        order="moment",
        path=path + "/{id}",
        names="number",
    )


_INVOICED = _OF_ORDER.format(table="shop_invoices", more="d.total, ")
_REFUNDED = _OF_ORDER.format(table="shop_refunds", more="d.total, ")
_PACKED = "(SELECT SUM(quantity) FROM shop_order_lines WHERE order_id = o.id) AS quantity, "
_SHIPPED = _OF_ORDER.format(table="shop_shipments", more=_PACKED)
INVOICES = _grid("Invoices", "Invoice", "Invoice Date", "/invoices", _INVOICED)
SHIPMENTS = _grid(
    "Shipments", "Shipment", "Ship Date", "/shipments", _SHIPPED, (Column("quantity", "Total Quantity", "number"),), ()
)
REFUNDS = _grid("Credit Memos", "Credit Memo", "Created", "/credit-memos", _REFUNDED)


@routes.get("/invoices")
def invoices(visit: RequestContext) -> Response:
    """All invoices."""
    return INVOICES.page(visit, "grid.html")


@routes.get("/shipments")
def shipments(visit: RequestContext) -> Response:
    """All shipments."""
    return SHIPMENTS.page(visit, "grid.html")


@routes.get("/credit-memos")
def refunds(visit: RequestContext) -> Response:
    """All credit memos."""
    return REFUNDS.page(visit, "grid.html")


@routes.get("/invoices/{id:int}")
def invoice(visit: RequestContext, id: int) -> Response:
    """One invoice."""
    found = visit.one("SELECT * FROM shop_invoices WHERE id = ?", id)
    return _document(visit, "Invoice", found)


@routes.get("/credit-memos/{id:int}")
def refund(visit: RequestContext, id: int) -> Response:
    """One credit memo."""
    found = visit.one("SELECT * FROM shop_refunds WHERE id = ?", id)
    return _document(visit, "Credit Memo", found)


@routes.get("/shipments/{id:int}")
def shipment(visit: RequestContext, id: int) -> Response:
    """One shipment."""
    return _shipment(visit, id, {}, ())


def _shipment(visit: RequestContext, id: int, values: dict[str, str], wrong: tuple[str, ...]) -> Response:
    found = visit.one("SELECT * FROM shop_shipments WHERE id = ?", id)
    tracks = visit.rows("SELECT * FROM shop_tracks WHERE shipment = ? ORDER BY id", id)
    return _document(visit, "Shipment", found, tracks=tracks, carriers=choices(CARRIERS), values=values, wrong=wrong)


def _document(visit: RequestContext, what: str, found: Any, **more: Any) -> Response:
    order = Order.of(visit, found["order_id"])
    lines = visit.rows("SELECT * FROM shop_order_lines WHERE order_id = ? ORDER BY id", found["order_id"])
    status = 422 if more.get("wrong") else 200
    return visit.page("document.html", status, what=what, document=found, order=order, lines=lines, **more)


@routes.post("/shipments/{id:int}/tracks")
def add_track(visit: RequestContext, id: int) -> Response:
    """Add a tracking number."""
    sent = Checked(visit)
    carrier, track = read_track(sent, needed=True)
    if sent.wrong:
        return _shipment(visit, id, sent.as_sent("carrier", "track"), tuple(sent.wrong))
    found = visit.one("SELECT id FROM shop_shipments WHERE id = ?", id)
    visit.write("INSERT INTO shop_tracks (shipment, carrier, number) VALUES (?, ?, ?)", found["id"], carrier, track)
    visit.say("You added the tracking number.")
    return Redirect(f"/shipments/{id}")


@routes.post("/shipments/{id:int}/tracks/{track:int}/delete")
def delete_track(visit: RequestContext, id: int, track: int) -> Response:
    """Take a tracking number away."""
    visit.one("SELECT id FROM shop_tracks WHERE id = ? AND shipment = ?", track, id)
    visit.write("DELETE FROM shop_tracks WHERE id = ?", track)
    visit.say("You deleted the tracking number.")
    return Redirect(f"/shipments/{id}")

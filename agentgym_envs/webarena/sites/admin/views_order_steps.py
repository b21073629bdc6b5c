"""Steps in processing an order: cancel, hold, unhold, invoice, ship and refund."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.forms import CheckedForm, choices, dollars
from agentgym_envs.webarena.sites.admin.order_rules import AdminOrder, advance_status, next_number, set_status
from agentgym_envs.webarena.sites.admin.views_orders import add_comment
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.names import CARRIERS

routes = Routes()


def _refuse(context: RequestContext, order: AdminOrder, why: str) -> Response:
    context.flash(why, "error")
    return Redirect(f"/orders/{order.row['id']}")


@routes.post("/orders/{id:int}/cancel")
def cancel(context: RequestContext, id: int) -> Response:
    """Cancel an order."""
    order = AdminOrder.of(context, id)
    if not order.may_cancel:
        return _refuse(context, order, "You have not canceled the order: its status does not allow it.")
    set_status(context, order, "canceled")
    _restock(context, id)
    context.flash("You canceled the order.")
    return Redirect(f"/orders/{id}")


@routes.post("/orders/{id:int}/hold")
def hold(context: RequestContext, id: int) -> Response:
    """Put an order on hold."""
    order = AdminOrder.of(context, id)
    if not order.may_hold:
        return _refuse(context, order, "You have not put the order on hold: its status does not allow it.")
    set_status(context, order, "on hold")
    context.flash("You put the order on hold.")
    return Redirect(f"/orders/{id}")


@routes.post("/orders/{id:int}/unhold")
def unhold(context: RequestContext, id: int) -> Response:
    """Release an order from hold."""
    order = AdminOrder.of(context, id)
    if not order.may_unhold:
        return _refuse(context, order, "The order is not on hold.")
    set_status(context, order, order.status_after_hold)
    context.flash("You released the order from holding status.")
    return Redirect(f"/orders/{id}")


def _lines(context: RequestContext, id: int) -> list[object]:
    return list(context.rows("SELECT * FROM shop_order_lines WHERE order_id = ? ORDER BY id", id))


@routes.get("/orders/{id:int}/invoice")
def invoice_form(context: RequestContext, id: int) -> Response:
    """Show the items to invoice."""
    order = AdminOrder.of(context, id)
    context.require(order.may_invoice, "This order cannot be invoiced now.")
    return context.page("order_invoice.html", order=order, lines=_lines(context, id), values={}, errors=())


@routes.post("/orders/{id:int}/invoice")
def invoice(context: RequestContext, id: int) -> Response:
    """Invoice the whole order."""
    order, form = AdminOrder.of(context, id), CheckedForm(context)
    if not order.may_invoice:
        return _refuse(context, order, "This order cannot be invoiced now.")
    text = form.text("comment", "Comment", most=2_000, needed=False)
    if form.errors:
        values = form.as_sent("comment")
        return context.page(
            "order_invoice.html", 422, order=order, lines=_lines(context, id), values=values, errors=form.errors
        )
    insert = "INSERT INTO shop_invoices (number, order_id, moment, total) VALUES (?, ?, ?, ?)"
    context.write(insert, next_number(context, "shop_invoices"), id, stamp(), order.row["total"])
    _finish(context, order, text, form)
    context.flash("The invoice has been created.")
    return Redirect(f"/orders/{id}")


def _finish(context: RequestContext, order: AdminOrder, text: str, form: CheckedForm) -> None:
    """Set the resulting status and save the comment."""
    advance_status(context, order)
    _note(context, order, text, form)


def _note(context: RequestContext, order: AdminOrder, text: str, form: CheckedForm) -> None:
    if text:
        id = order.row["id"]
        add_comment(context, id, AdminOrder.of(context, id).status, text, form.flag("visible"), form.flag("notify"))


@routes.get("/orders/{id:int}/ship")
def ship_form(context: RequestContext, id: int) -> Response:
    """Show the items to ship."""
    order = AdminOrder.of(context, id)
    context.require(order.may_ship, "This order cannot be shipped now.")
    return _ship_form(context, order, {}, ())


def _ship_form(context: RequestContext, order: AdminOrder, values: dict[str, str], errors: tuple[str, ...]) -> Response:
    lines = _lines(context, order.row["id"])
    status = 422 if errors else 200
    return context.page(
        "order_ship.html", status, order=order, lines=lines, carriers=choices(CARRIERS), values=values, errors=errors
    )


@routes.post("/orders/{id:int}/ship")
def ship(context: RequestContext, id: int) -> Response:
    """Ship the whole order, with or without a tracking number."""
    order, form = AdminOrder.of(context, id), CheckedForm(context)
    if not order.may_ship:
        return _refuse(context, order, "This order cannot be shipped now.")
    carrier, track = read_track(form, needed=False)
    text = form.text("comment", "Comment", most=2_000, needed=False)
    if form.errors:
        return _ship_form(context, order, form.as_sent("carrier", "track", "comment"), tuple(form.errors))
    insert = "INSERT INTO shop_shipments (number, order_id, moment) VALUES (?, ?, ?)"
    shipment = context.write(insert, next_number(context, "shop_shipments"), id, stamp())
    if track:
        context.write("INSERT INTO shop_tracks (shipment, carrier, number) VALUES (?, ?, ?)", shipment, carrier, track)
    _finish(context, order, text, form)
    context.flash("The shipment has been created.")
    return Redirect(f"/orders/{id}")


def read_track(form: CheckedForm, needed: bool) -> tuple[str, str]:
    """Return the carrier and the tracking number of a form."""
    return form.choice("carrier", "Carrier", CARRIERS), form.text("track", "Tracking Number", most=40, needed=needed)


@routes.get("/orders/{id:int}/refund")
def refund_form(context: RequestContext, id: int) -> Response:
    """Show the items to refund."""
    order = AdminOrder.of(context, id)
    context.require(order.may_refund, "This order cannot be refunded now.")
    return _refund_form(context, order, {"shipping": dollars(order.row["shipping"]), "fee": dollars(0)}, ())


def _refund_form(
    context: RequestContext, order: AdminOrder, values: dict[str, str], errors: tuple[str, ...]
) -> Response:
    lines = _lines(context, order.row["id"])
    return context.page(
        "order_refund.html", 422 if errors else 200, order=order, lines=lines, values=values, errors=errors
    )


@routes.post("/orders/{id:int}/refund")
def refund(context: RequestContext, id: int) -> Response:
    """Refund the order, with a chosen part of the shipping cost and less a fee."""
    order, form = AdminOrder.of(context, id), CheckedForm(context)
    if not order.may_refund:
        return _refuse(context, order, "This order cannot be refunded now.")
    shipping, fee = form.amount("shipping", "Refund Shipping"), form.amount("fee", "Adjustment Fee")
    total = order.row["total"] - order.row["shipping"] + shipping - fee
    if shipping > order.row["shipping"]:
        form.refuse("Refund Shipping may not be more than was paid for it.")
    elif total <= 0:
        form.refuse("The credit memo's total must be positive.")
    text = form.text("comment", "Comment", most=2_000, needed=False)
    if form.errors:
        return _refund_form(context, order, form.as_sent("shipping", "fee", "comment"), tuple(form.errors))
    _write_refund(context, id, total, shipping, form)
    set_status(context, order, "closed")
    _note(context, order, text, form)
    context.flash("You created the credit memo.")
    return Redirect(f"/orders/{id}")


def _write_refund(context: RequestContext, id: int, total: int, shipping: int, form: CheckedForm) -> None:
    insert = "INSERT INTO shop_refunds (number, order_id, moment, total, shipping) VALUES (?, ?, ?, ?, ?)"
    context.write(insert, next_number(context, "shop_refunds"), id, stamp(), total, shipping)
    if form.flag("restock"):
        _restock(context, id)


def _restock(context: RequestContext, id: int) -> None:
    """Add the ordered quantities back to the stock."""
    for line in context.rows(
        "SELECT product, SUM(quantity) AS n FROM shop_order_lines WHERE order_id = ? GROUP BY product", id
    ):
        context.write("UPDATE shop_products SET stock = stock + ? WHERE id = ?", line["n"], line["product"])

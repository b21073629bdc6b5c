"""What is done with an order: cancel, hold, unhold, invoice, ship and refund."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.forms import Checked, choices, dollars
from agentgym_envs.webarena.sites.admin.order_rules import Order, move_on, next_number, set_status
from agentgym_envs.webarena.sites.admin.views_orders import add_comment
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.names import CARRIERS

routes = Routes()


def _refused(visit: RequestContext, order: Order, why: str) -> Response:
    visit.say(why, "error")
    return Redirect(f"/orders/{order.row['id']}")


@routes.post("/orders/{id:int}/cancel")
def cancel(visit: RequestContext, id: int) -> Response:
    """Cancel an order."""
    order = Order.of(visit, id)
    if not order.may_cancel:
        return _refused(visit, order, "You have not canceled the order: its status does not allow it.")
    set_status(visit, order, "canceled")
    _restock(visit, id)
    visit.say("You canceled the order.")
    return Redirect(f"/orders/{id}")


@routes.post("/orders/{id:int}/hold")
def hold(visit: RequestContext, id: int) -> Response:
    """Put it on hold."""
    order = Order.of(visit, id)
    if not order.may_hold:
        return _refused(visit, order, "You have not put the order on hold: its status does not allow it.")
    set_status(visit, order, "on hold")
    visit.say("You put the order on hold.")
    return Redirect(f"/orders/{id}")


@routes.post("/orders/{id:int}/unhold")
def unhold(visit: RequestContext, id: int) -> Response:
    """Release it."""
    order = Order.of(visit, id)
    if not order.may_unhold:
        return _refused(visit, order, "The order is not on hold.")
    set_status(visit, order, order.unheld)
    visit.say("You released the order from holding status.")
    return Redirect(f"/orders/{id}")


def _lines(visit: RequestContext, id: int) -> list[object]:
    return list(visit.rows("SELECT * FROM shop_order_lines WHERE order_id = ? ORDER BY id", id))


@routes.get("/orders/{id:int}/invoice")
def invoice_form(visit: RequestContext, id: int) -> Response:
    """What is about to be invoiced."""
    order = Order.of(visit, id)
    visit.must(order.may_invoice, "This order cannot be invoiced now.")
    return visit.page("order_invoice.html", order=order, lines=_lines(visit, id), values={}, wrong=())


@routes.post("/orders/{id:int}/invoice")
def invoice(visit: RequestContext, id: int) -> Response:
    """Invoice all of it."""
    order, sent = Order.of(visit, id), Checked(visit)
    if not order.may_invoice:
        return _refused(visit, order, "This order cannot be invoiced now.")
    text = sent.text("comment", "Comment", most=2_000, needed=False)
    if sent.wrong:
        values = sent.as_sent("comment")
        return visit.page(
            "order_invoice.html", 422, order=order, lines=_lines(visit, id), values=values, wrong=sent.wrong
        )
    insert = "INSERT INTO shop_invoices (number, order_id, moment, total) VALUES (?, ?, ?, ?)"
    visit.write(insert, next_number(visit, "shop_invoices"), id, stamp(), order.row["total"])
    _finish(visit, order, text, sent)
    visit.say("The invoice has been created.")
    return Redirect(f"/orders/{id}")


def _finish(visit: RequestContext, order: Order, text: str, sent: Checked) -> None:
    """The status that follows, and what was said."""
    move_on(visit, order)
    _note(visit, order, text, sent)


def _note(visit: RequestContext, order: Order, text: str, sent: Checked) -> None:
    if text:
        id = order.row["id"]
        add_comment(visit, id, Order.of(visit, id).status, text, sent.ticked("visible"), sent.ticked("notify"))


@routes.get("/orders/{id:int}/ship")
def ship_form(visit: RequestContext, id: int) -> Response:
    """What is about to be sent."""
    order = Order.of(visit, id)
    visit.must(order.may_ship, "This order cannot be shipped now.")
    return _ship_form(visit, order, {}, ())


def _ship_form(visit: RequestContext, order: Order, values: dict[str, str], wrong: tuple[str, ...]) -> Response:
    lines = _lines(visit, order.row["id"])
    status = 422 if wrong else 200
    return visit.page(
        "order_ship.html", status, order=order, lines=lines, carriers=choices(CARRIERS), values=values, wrong=wrong
    )


@routes.post("/orders/{id:int}/ship")
def ship(visit: RequestContext, id: int) -> Response:
    """Ship all of it, with a tracking number or without."""
    order, sent = Order.of(visit, id), Checked(visit)
    if not order.may_ship:
        return _refused(visit, order, "This order cannot be shipped now.")
    carrier, track = read_track(sent, needed=False)
    text = sent.text("comment", "Comment", most=2_000, needed=False)
    if sent.wrong:
        return _ship_form(visit, order, sent.as_sent("carrier", "track", "comment"), tuple(sent.wrong))
    insert = "INSERT INTO shop_shipments (number, order_id, moment) VALUES (?, ?, ?)"
    shipment = visit.write(insert, next_number(visit, "shop_shipments"), id, stamp())
    if track:
        visit.write("INSERT INTO shop_tracks (shipment, carrier, number) VALUES (?, ?, ?)", shipment, carrier, track)
    _finish(visit, order, text, sent)
    visit.say("The shipment has been created.")
    return Redirect(f"/orders/{id}")


def read_track(sent: Checked, needed: bool) -> tuple[str, str]:
    """A carrier and a tracking number."""
    return sent.choice("carrier", "Carrier", CARRIERS), sent.text("track", "Tracking Number", most=40, needed=needed)


@routes.get("/orders/{id:int}/refund")
def refund_form(visit: RequestContext, id: int) -> Response:
    """What is about to be given back."""
    order = Order.of(visit, id)
    visit.must(order.may_refund, "This order cannot be refunded now.")
    return _refund_form(visit, order, {"shipping": dollars(order.row["shipping"]), "fee": dollars(0)}, ())


def _refund_form(visit: RequestContext, order: Order, values: dict[str, str], wrong: tuple[str, ...]) -> Response:
    lines = _lines(visit, order.row["id"])
    return visit.page("order_refund.html", 422 if wrong else 200, order=order, lines=lines, values=values, wrong=wrong)


@routes.post("/orders/{id:int}/refund")
def refund(visit: RequestContext, id: int) -> Response:
    """Give back everything but a part of the shipping and a fee."""
    order, sent = Order.of(visit, id), Checked(visit)
    if not order.may_refund:
        return _refused(visit, order, "This order cannot be refunded now.")
    shipping, fee = sent.amount("shipping", "Refund Shipping"), sent.amount("fee", "Adjustment Fee")
    total = order.row["total"] - order.row["shipping"] + shipping - fee
    if shipping > order.row["shipping"]:
        sent.refuse("Refund Shipping may not be more than was paid for it.")
    elif total <= 0:
        sent.refuse("The credit memo's total must be positive.")
    text = sent.text("comment", "Comment", most=2_000, needed=False)
    if sent.wrong:
        return _refund_form(visit, order, sent.as_sent("shipping", "fee", "comment"), tuple(sent.wrong))
    _write_refund(visit, id, total, shipping, sent)
    set_status(visit, order, "closed")
    _note(visit, order, text, sent)
    visit.say("You created the credit memo.")
    return Redirect(f"/orders/{id}")


def _write_refund(visit: RequestContext, id: int, total: int, shipping: int, sent: Checked) -> None:
    insert = "INSERT INTO shop_refunds (number, order_id, moment, total, shipping) VALUES (?, ?, ?, ?, ?)"
    visit.write(insert, next_number(visit, "shop_refunds"), id, stamp(), total, shipping)
    if sent.ticked("restock"):
        _restock(visit, id)


def _restock(visit: RequestContext, id: int) -> None:
    """Put what was ordered back on the shelf."""
    for line in visit.rows(
        "SELECT product, SUM(quantity) AS n FROM shop_order_lines WHERE order_id = ? GROUP BY product", id
    ):
        visit.write("UPDATE shop_products SET stock = stock + ? WHERE id = ?", line["n"], line["product"])

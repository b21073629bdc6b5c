"""The checkout: address and shipping, then payment, then the order."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.cart import Cart, cart_of
from agentgym_envs.webarena.sites.shop.money import PAYMENT_METHODS, SHIPPING_METHODS
from agentgym_envs.webarena.sites.shop.store import customer_of

routes = Routes()
_ADDRESS_FIELDS = ("name", "street", "town", "region", "zip", "phone")


@routes.get("/checkout")
def shipping(context: RequestContext) -> Response:
    """Show the first step: address and shipping method."""
    cart = cart_of(context)
    if cart.problem:
        return Redirect("/cart")
    chosen = customer_of(context)["address"]
    costs = [(method, cart.totals(method).shipping) for method in SHIPPING_METHODS]
    return context.page("checkout.html", cart=cart, addresses=_addresses(context), chosen=chosen, costs=costs)


@routes.get("/checkout/payment")
def payment(context: RequestContext) -> Response:
    """Show the second step: payment method and summary."""
    cart, address = cart_of(context), _address(context, context.query.number("address"))
    method = context.query.choice("shipping", SHIPPING_METHODS)
    if cart.problem or address is None or not method:
        return Redirect("/checkout")
    return context.page(
        "payment.html",
        cart=cart,
        address=address,
        method=method,
        totals=cart.totals(method),
        payments=PAYMENT_METHODS,
    )


@routes.post("/checkout/place")
def place(context: RequestContext) -> Response:
    """Place the order."""
    cart, address = cart_of(context), _address(context, context.form.number("address"))
    method = context.form.choice("shipping", SHIPPING_METHODS)
    paid = context.form.choice("payment", PAYMENT_METHODS)
    if cart.problem:
        context.flash(cart.problem, "error")
        return Redirect("/cart")
    if address is None or not method:
        context.flash("Please choose an address and a shipping method.", "error")
        return Redirect("/checkout")
    if not paid:
        context.flash("Please choose a payment method.", "error")
        return context.redirect_back("/checkout")
    number = _write_order(context, cart, address, method, paid)
    return Redirect(f"/checkout/done/{number}")


@routes.get("/checkout/done/{number}")
def done(context: RequestContext, number: str) -> Response:
    """Confirm the order."""
    account = context.require_login()
    order = context.one("SELECT * FROM shop_orders WHERE number = ? AND customer = ?", number, account)
    return context.page("done.html", order=order)


def _addresses(context: RequestContext) -> list[sqlite3.Row]:
    return context.rows("SELECT * FROM shop_addresses WHERE customer = ? ORDER BY id", context.account)


def _address(context: RequestContext, number: int) -> sqlite3.Row | None:
    return context.row("SELECT * FROM shop_addresses WHERE id = ? AND customer = ?", number, context.account)


def _write_order(context: RequestContext, cart: Cart, address: sqlite3.Row, method: str, paid: str) -> str:
    """Write everything that an order changes; return its number."""
    cost = cart.totals(method)
    number = f"{int(context.value('SELECT MAX(number) FROM shop_orders') or 0) + 1:09d}"
    coupon = next((rule["coupon"] for rule in cart.rules if rule["coupon"]), "")
    order = context.write(
        "INSERT INTO shop_orders (number, customer, moment, status, shipping_method, payment_method, coupon, subtotal, "
        "discount, shipping, tax, total) VALUES (?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?)",
        *(number, context.account, stamp(), method, paid, coupon),
        *(cost.subtotal, cost.discount, cost.shipping, cost.tax, cost.total),
    )
    for line in cart.lines:
        product = line.product
        context.write(
            "INSERT INTO shop_order_lines (order_id, product, sku, name, options, price, quantity) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(order, product["id"], product["sku"], product["name"], line.options, line.price, line.quantity),
        )
        context.write("UPDATE shop_products SET stock = stock - ? WHERE id = ?", line.quantity, product["id"])
    for rule in cart.rules:
        context.write("UPDATE shop_rules SET used = used + 1 WHERE id = ?", rule["id"])
    _write_addresses(context, order, address)
    context.write("DELETE FROM shop_cart_lines WHERE cart = ?", cart.number)
    context.write("UPDATE shop_carts SET coupon = '' WHERE id = ?", cart.number)
    return number


def _write_addresses(context: RequestContext, order: int, address: sqlite3.Row) -> None:
    """Write the shipping address, and the default address for billing if there is one."""
    bill = _address(context, customer_of(context)["address"] or 0) or address
    for kind, row in (("shipping", address), ("billing", bill)):
        context.write(
            "INSERT INTO shop_order_addresses (order_id, kind, name, street, town, region, zip, phone) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(order, kind, *(row[name] for name in _ADDRESS_FIELDS)),
        )

"""The shopping cart: its lines, its price, and the addition of products."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.sites.clock import TODAY
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.shop.money import Totals, discount_of, totals
from agentgym_envs.webarena.sites.shop.searching import FOUND
from agentgym_envs.webarena.sites.shop.store import PRODUCTS, settings

MOST = 100
"""Maximum quantity of one product."""


@dataclass(frozen=True, slots=True)
class CartLine:
    """A line of a cart. `price` is the unit price, including the surcharge of its options."""

    id: int
    product: sqlite3.Row
    options: str
    quantity: int
    price: int

    @property
    def total(self) -> int:
        """Price of the whole line."""
        return self.price * self.quantity

    @property
    def problem(self) -> str:
        """Reason why this line cannot be ordered, or ""."""
        if not self.product["sold"]:
            return "This product is no longer sold."
        if self.product["stock"] < self.quantity:
            return _short(self.product["stock"])
        return ""


@dataclass(frozen=True, slots=True)
class Cart:
    """The cart of a customer. `number` is 0 until a product is added for the first time."""

    number: int
    coupon: str
    lines: list[CartLine]
    rules: list[dict[str, Any]]
    settings: dict[str, str]

    @property
    def subtotal(self) -> int:
        """Sum of the lines."""
        return sum(line.total for line in self.lines)

    def totals(self, method: str = "") -> Totals:
        """Return the totals with a shipping method."""
        return totals(self.subtotal, self.rules, method, self.settings)

    @property
    def problem(self) -> str:
        """Reason why the cart cannot be ordered, or ""."""
        if not self.lines:
            return "Your cart is empty."
        wanted = Counter[int]()
        for line in self.lines:
            wanted[line.product["id"]] += line.quantity
            if line.problem or wanted[line.product["id"]] > line.product["stock"]:
                return f"{line.product['name']}: {line.problem or _short(line.product['stock'])}"
        return ""


def cart_of(context: RequestContext) -> Cart:
    """Return the cart of the signed-in customer. Raises LoginRequired."""
    account = context.require_login()
    row = context.row("SELECT id, coupon FROM shop_carts WHERE customer = ?", account)
    number, coupon = (row["id"], row["coupon"]) if row else (0, "")
    lines = _lines(context, number)
    subtotal = sum(line.total for line in lines)
    rules = [rule for rule in rules_for(context, account, coupon) if discount_of(rule, subtotal)]
    return Cart(number, coupon, lines, rules, settings(context))


def _lines(context: RequestContext, cart: int) -> list[CartLine]:
    rows = context.rows(
        "SELECT l.id AS line, l.options, l.quantity, p.id, p.sku, p.name, p.slug, p.stock, c.slug AS shelf, "
        f"COALESCE(p.special_price, p.price) AS final, ({FOUND}) AS sold FROM {PRODUCTS} "
        "JOIN shop_cart_lines l ON l.product = p.id WHERE l.cart = ? ORDER BY l.id",
        cart,
    )
    return [
        CartLine(
            row["line"],
            row,
            row["options"],
            row["quantity"],
            row["final"] + extra_of(context, row["id"], row["options"]),
        )
        for row in rows
    ]


def extra_of(context: RequestContext, product: int, options: str) -> int:
    """Return the surcharge of the options of a line ("Colour: Blue, Size: M")."""
    if not options:
        return 0
    named = "instr(?, ', ' || name || ': ' || value || ',') > 0"
    query = f"SELECT SUM(extra) FROM shop_options WHERE product = ? AND {named}"
    return context.value(query, product, f", {options},") or 0


def rules_for(context: RequestContext, account: int, coupon: str) -> list[dict[str, Any]]:
    """Return the price rules that apply today to a customer, with this coupon code or none."""
    rows = context.rows(
        "SELECT r.* FROM shop_rules r JOIN shop_customers k ON k.id = ? WHERE r.active = 1 "
        "AND (r.coupon = '' OR lower(r.coupon) = lower(?)) AND r.customer_group IN ('', k.customer_group) "
        "AND COALESCE(r.starts, '') <= ? AND COALESCE(r.ends, '9999') >= ? ORDER BY r.id",
        account,
        coupon,
        TODAY.isoformat(),
        TODAY.isoformat(),
    )
    return [dict(row) for row in rows]


def put_in(context: RequestContext, product: sqlite3.Row, options: str, quantity: int) -> str:
    """Add a product to the cart. Return the reason if that is not possible, otherwise ""."""
    account = context.require_login()
    cart_id: Any = context.value("SELECT id FROM shop_carts WHERE customer = ?", account)
    query = "SELECT id, quantity FROM shop_cart_lines WHERE cart = ? AND product = ? AND options = ?"
    line = context.row(query, cart_id or 0, product["id"], options)
    wanted = quantity + (line["quantity"] if line else 0)
    if product["stock"] < wanted or wanted > MOST:
        return _short(min(product["stock"], MOST))
    cart = cart_id or context.write("INSERT INTO shop_carts (customer) VALUES (?)", account)
    if line:
        context.write("UPDATE shop_cart_lines SET quantity = ? WHERE id = ?", wanted, line["id"])
    else:
        context.write(
            "INSERT INTO shop_cart_lines (cart, product, options, quantity) VALUES (?, ?, ?, ?)",
            cart,
            product["id"],
            options,
            quantity,
        )
    return ""


def _short(stock: int) -> str:
    return f"Only {stock} of this product can be ordered." if stock > 0 else "This product is out of stock."

"""The cart: what lies in it, what it costs, and how things get into it."""

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
"""Of one product."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a cart. `price` is of one, with what its options cost."""

    id: int
    product: sqlite3.Row
    options: str
    quantity: int
    price: int

    @property
    def total(self) -> int:
        """Of all of them."""
        return self.price * self.quantity

    @property
    def problem(self) -> str:
        """Why this cannot be ordered; "" if it can."""
        if not self.product["sold"]:
            return "This product is no longer sold."
        if self.product["stock"] < self.quantity:
            return _short(self.product["stock"])
        return ""


@dataclass(frozen=True, slots=True)
class Cart:
    """A customer's cart. `number` is 0 as long as nothing was ever put into it."""

    number: int
    coupon: str
    lines: list[Line]
    rules: list[dict[str, Any]]
    settings: dict[str, str]

    @property
    def subtotal(self) -> int:
        """What the goods cost."""
        return sum(line.total for line in self.lines)

    def totals(self, method: str = "") -> Totals:
        """What is to be paid with a way of shipping."""
        return totals(self.subtotal, self.rules, method, self.settings)

    @property
    def problem(self) -> str:
        """Why it cannot be ordered; "" if it can."""
        if not self.lines:
            return "Your cart is empty."
        wanted = Counter[int]()
        for line in self.lines:
            wanted[line.product["id"]] += line.quantity
            if line.problem or wanted[line.product["id"]] > line.product["stock"]:
                return f"{line.product['name']}: {line.problem or _short(line.product['stock'])}"
        return ""


def cart_of(context: RequestContext) -> Cart:
    """The cart of who is signed in. Raises SignInFirst."""
    account = context.require_login()
    kept = context.row("SELECT id, coupon FROM shop_carts WHERE customer = ?", account)
    number, coupon = (kept["id"], kept["coupon"]) if kept else (0, "")
    lines = _lines(context, number)
    subtotal = sum(line.total for line in lines)
    rules = [rule for rule in rules_for(context, account, coupon) if discount_of(rule, subtotal)]
    return Cart(number, coupon, lines, rules, settings(context))


def _lines(context: RequestContext, cart: int) -> list[Line]:
    rows = context.rows(
        "SELECT l.id AS line, l.options, l.quantity, p.id, p.sku, p.name, p.slug, p.stock, c.slug AS shelf, "
        f"COALESCE(p.special_price, p.price) AS final, ({FOUND}) AS sold FROM {PRODUCTS} "
        "JOIN shop_cart_lines l ON l.product = p.id WHERE l.cart = ? ORDER BY l.id",
        cart,
    )
    return [
        Line(
            row["line"],
            row,
            row["options"],
            row["quantity"],
            row["final"] + extra_of(context, row["id"], row["options"]),
        )
        for row in rows
    ]


def extra_of(context: RequestContext, product: int, options: str) -> int:
    """What the options of a line ("Colour: Blue, Size: M") add to the price."""
    if not options:
        return 0
    named = "instr(?, ', ' || name || ': ' || value || ',') > 0"
    query = f"SELECT SUM(extra) FROM shop_options WHERE product = ? AND {named}"
    return context.value(query, product, f", {options},") or 0


def rules_for(context: RequestContext, account: int, coupon: str) -> list[dict[str, Any]]:
    """The price rules that hold today for a customer, with or without that coupon."""
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
    """Put some of a product into the cart; returns why that cannot be, or ""."""
    account = context.require_login()
    kept: Any = context.value("SELECT id FROM shop_carts WHERE customer = ?", account)
    query = "SELECT id, quantity FROM shop_cart_lines WHERE cart = ? AND product = ? AND options = ?"
    line = context.row(query, kept or 0, product["id"], options)
    wanted = quantity + (line["quantity"] if line else 0)
    if product["stock"] < wanted or wanted > MOST:
        return _short(min(product["stock"], MOST))
    cart = kept or context.write("INSERT INTO shop_carts (customer) VALUES (?)", account)
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

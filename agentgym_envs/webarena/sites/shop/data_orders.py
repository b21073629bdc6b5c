"""What was ordered in a world's shop, and what became of it."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.shop.data_people import Customer
from agentgym_envs.webarena.sites.shop.data_products import Item
from agentgym_envs.webarena.sites.shop.money import PAYMENT_METHODS, SHIPPING_METHODS, Totals, totals

ORDERS, OWN = 600, 25
DAYS, OWN_DAYS = 500, 428
_HOURS = (2, 1, 1, 0, 0, 1, 3, 6, 8, 9, 10, 10, 12, 11, 9, 8, 8, 9, 11, 14, 16, 15, 10, 5)
_MONTHS = {1: 0.8, 2: 0.8, 6: 0.9, 7: 0.8, 11: 1.5, 12: 1.9}


class Line(NamedTuple):
    """A product in an order; `price` is what one was sold for then."""

    item: Item
    options: str
    price: int
    quantity: int


@dataclass(slots=True)
class Order:
    """An order. `day` is how many days ago it was made."""

    customer: Customer
    moment: datetime.datetime
    status: str
    lines: list[Line]
    shipping: str
    payment: str
    totals: Totals
    coupon: str = ""
    id: int = 0
    number: str = ""
    invoiced: datetime.datetime | None = None
    shipped: datetime.datetime | None = None
    refunded: datetime.datetime | None = None
    comments: list[tuple[datetime.datetime, str, str, int]] = field(default_factory=list)

    @property
    def days(self) -> float:
        """How many days ago it was made."""
        return (NOW - self.moment) / datetime.timedelta(days=1)


class Market:
    """Who may buy what, and how likely."""

    def __init__(self, rng: random.Random, customers: Sequence[Customer], items: Sequence[Item]) -> None:
        self.rng, self.customers, self.items = rng, customers, items
        self._of_items = list(accumulate(item.popularity for item in items))
        self._of_customers = list(accumulate(customer.weight for customer in customers))

    def customer(self, moment: str) -> Customer:
        """Somebody who had an account then."""
        while True:
            found = self.rng.choices(self.customers, cum_weights=self._of_customers)[0]
            if found.joined < moment:
                return found

    def item(self, moment: str) -> Item:
        """Something that was sold then."""
        while True:
            found = self.rng.choices(self.items, cum_weights=self._of_items)[0]
            if found.created < moment:
                return found


def make_orders(market: Market, rules: Sequence[Mapping[str, Any]], settings: Mapping[str, str]) -> list[Order]:
    """All orders by their moments, with the owner's among them."""
    rng, owner = market.rng, market.customers[0]
    moments = [(_moment(rng, DAYS), False) for _ in range(ORDERS - OWN)]
    moments += [(moment, True) for moment in _own_moments(rng)]
    orders = []
    for moment, own in sorted(moments):
        customer = owner if own else market.customer(stamp(moment))
        orders.append(_order(market, customer, moment, rules, settings))
    _settle_own([order for order in orders if order.customer is owner], rng)
    offset = rng.randint(60, 400)
    for number, order in enumerate(orders, 1):
        order.id, order.number = number, f"{offset + number:09d}"
        _follow(rng, order)
    return orders


def _moment(rng: random.Random, days: float, least: float = 0.0) -> datetime.datetime:
    """A moment of the past: more of them lately, before the holidays, and in the evening."""
    while True:
        ago = least + (days - least) * (1 - rng.random() ** 0.6)
        day = NOW - datetime.timedelta(days=ago)
        moment = day.replace(hour=rng.choices(range(24), _HOURS)[0], minute=rng.randrange(60), second=rng.randrange(60))
        if moment < NOW and rng.random() * 1.9 < _MONTHS.get(moment.month, 1.0):
            return moment


def _own_moments(rng: random.Random) -> list[datetime.datetime]:
    """When the owner bought: never twice on a day, first just after joining, last some days ago."""
    moments: dict[datetime.date, datetime.datetime] = {}
    for least, most in ((0.6, 1.4), (2.2, 3.4), (OWN_DAYS - 2, OWN_DAYS)):
        moment = NOW - datetime.timedelta(days=rng.uniform(least, most))
        moments[moment.date()] = moment.replace(microsecond=0)
    while len(moments) < OWN:
        moment = _moment(rng, OWN_DAYS - 6, 8)
        moments.setdefault(moment.date(), moment)
    return list(moments.values())


def _order(
    market: Market,
    customer: Customer,
    moment: datetime.datetime,
    rules: Sequence[Mapping[str, Any]],
    settings: Mapping[str, str],
) -> Order:
    rng = market.rng
    lines = _lines(market, customer, moment)
    subtotal = sum(line.price * line.quantity for line in lines)
    usable = [rule for rule in rules if _was_valid(rule, moment, subtotal)]
    used = [rng.choice(usable)] if usable and rng.random() < 0.14 else []
    shipping = rng.choices(SHIPPING_METHODS, (72, 20, 8))[0]
    made = totals(subtotal, used, shipping, settings)
    order = Order(customer, moment, "", lines, shipping, rng.choices(PAYMENT_METHODS, (50, 30, 20))[0], made)
    order.coupon = used[0]["coupon"] if used else ""
    order.status = _status(rng, order.days)
    return order


def _lines(market: Market, customer: Customer, moment: datetime.datetime) -> list[Line]:
    """What somebody bought: one to five products, dealers more of each."""
    rng, lines = market.rng, dict[int, Line]()
    for _ in range(rng.choices((1, 2, 3, 4, 5), (40, 30, 17, 9, 4))[0]):
        item = market.item(stamp(moment))
        options, extra = item.chosen(rng)
        recent = item.special is not None and (NOW - moment).days < 45
        price = (item.final if recent else item.price) + extra
        most = (1, 1, 1, 1, 2, 3) if customer.group == "General" else (1, 2, 3, 4, 6, 10)
        lines.setdefault(item.id, Line(item, options, price, rng.choice(most)))
    return list(lines.values())


def _was_valid(rule: Mapping[str, Any], moment: datetime.datetime, subtotal: int) -> bool:
    day = moment.date().isoformat()
    if not rule["coupon"] or subtotal < rule["minimum"]:
        return False
    return (rule["starts"] or "") <= day <= (rule["ends"] or "9999")


def _status(rng: random.Random, days: float) -> str:
    """What had become of an order after so many days."""
    if days < 4:
        return rng.choices(("pending", "processing"), (70, 30))[0]
    if days < 14:
        return rng.choices(("pending", "processing", "complete", "on hold", "canceled"), (25, 40, 20, 10, 5))[0]
    if days < 70:
        return rng.choices(("complete", "canceled", "closed", "on hold", "pending"), (74, 10, 4, 6, 6))[0]
    return rng.choices(("complete", "canceled", "closed"), (86, 10, 4))[0]


def _settle_own(orders: Sequence[Order], rng: random.Random) -> None:
    """The owner's orders have every status: the last is pending, the one before in the works."""
    for order in orders[:-2]:
        order.status = "complete"
    orders[-1].status, orders[-2].status = "pending", "processing"
    chosen = rng.sample(orders[1:-3], 5)
    for order, status in zip(chosen, ("canceled", "canceled", "canceled", "canceled", "closed"), strict=True):
        order.status = status


def _follow(rng: random.Random, order: Order) -> None:
    """When an order was paid, sent and refunded."""
    if order.status in ("processing", "complete", "closed"):
        order.invoiced = _after(rng, order.moment, 0.02, 0.9)
    if order.status in ("complete", "closed"):
        order.shipped = _after(rng, order.invoiced or order.moment, 0.3, 3.0)
    if order.status == "closed":
        order.refunded = _after(rng, order.shipped or order.moment, 4, 20)


def _after(rng: random.Random, moment: datetime.datetime, least: float, most: float) -> datetime.datetime:
    """A moment some days after another, and before now."""
    seconds = min(rng.uniform(least, most) * 86_400, (NOW - moment).total_seconds() * 0.8)
    return moment + datetime.timedelta(seconds=int(seconds))


def write_orders(database: sqlite3.Connection, rng: random.Random, orders: Sequence[Order]) -> None:
    """Put the orders into the database, with their lines and the addresses they went to."""
    database.executemany(
        "INSERT INTO shop_orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", map(_order_row, orders)
    )
    database.executemany(
        "INSERT INTO shop_order_lines (order_id, product, sku, name, options, price, quantity) VALUES (?,?,?,?,?,?,?)",
        (
            (order.id, line.item.id, line.item.sku, line.item.name, line.options, line.price, line.quantity)
            for order in orders
            for line in order.lines
        ),
    )
    database.executemany(
        "INSERT INTO shop_order_addresses (order_id, kind, name, street, town, region, zip, phone) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        _addresses(rng, orders),
    )


def _order_row(order: Order) -> tuple[object, ...]:
    made = order.totals
    head = (order.id, order.number, order.customer.id, stamp(order.moment), order.status, order.shipping, order.payment)
    return *head, order.coupon, made.subtotal, made.discount, made.shipping, made.tax, made.total


def _addresses(rng: random.Random, orders: Sequence[Order]) -> Iterable[tuple[object, ...]]:
    """Bills go to the default address, and so do most parcels."""
    for order in orders:
        shipping = order.customer.addresses[-1 if rng.random() < 0.2 else 0]
        yield order.id, "shipping", *shipping.row
        yield order.id, "billing", *order.customer.addresses[0].row

"""The orders of the shop and their progress."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import NamedTuple

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.shop.money import PAYMENT_METHODS, SHIPPING_METHODS, Totals, totals
from agentgym_envs.webarena.sites.shop.scale import ShopScale
from agentgym_envs.webarena.sites.shop.seed_people import Customer
from agentgym_envs.webarena.sites.shop.seed_products import Item

OWN = 25
"""Number of orders of the agent's account."""
DAYS, OWN_DAYS = 500, 428
_HOURS = (2, 1, 1, 0, 0, 1, 3, 6, 8, 9, 10, 10, 12, 11, 9, 8, 8, 9, 11, 14, 16, 15, 10, 5)
_MONTHS = {6: 0.9, 7: 0.8, 11: 1.4, 12: 1.7}
_OWN_LATELY = (0.6, 1.4), (2.2, 3.4), (4.2, 5.4), (6.2, 7.4), (8.2, 11.4)
_RECENT_DAYS = 52


class OrderLine(NamedTuple):
    """A product in an order; `price` is the unit price at that time."""

    item: Item
    options: str
    price: int
    quantity: int


@dataclass(slots=True)
class ShopOrder:
    """An order and its progress."""

    customer: Customer
    moment: datetime.datetime
    status: str
    lines: list[OrderLine]
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
        """Age of the order in days."""
        return (NOW - self.moment) / datetime.timedelta(days=1)


class Market:
    """Draws customers and products for orders."""

    def __init__(self, rng: random.Random, customers: Sequence[Customer], items: Sequence[Item]) -> None:
        self.rng, self.customers, self.items = rng, customers, items
        self._of_items = list(accumulate(item.popularity for item in items))
        self._of_customers = list(accumulate(customer.weight for customer in customers))

    def customer(self, moment: str) -> Customer:
        """Draw a customer who had an account at that time."""
        while True:
            candidate = self.rng.choices(self.customers, cum_weights=self._of_customers)[0]
            if candidate.joined < moment:
                return candidate

    def item(self, moment: str) -> Item:
        """Draw a product that existed at that time."""
        while True:
            candidate = self.rng.choices(self.items, cum_weights=self._of_items)[0]
            if candidate.created < moment:
                return candidate


def make_orders(market: Market, settings: Mapping[str, str], scale: ShopScale) -> list[ShopOrder]:
    """Generate all orders, sorted by time, including those of the agent's account."""
    rng, owner = market.rng, market.customers[0]
    moments = [(_moment(rng, _RECENT_DAYS), False) for _ in range(scale.recent_orders)]
    moments += [(_moment(rng, DAYS, _RECENT_DAYS), False) for _ in range(scale.orders - OWN - scale.recent_orders)]
    moments += [(moment, True) for moment in _own_moments(rng)]
    orders = []
    for moment, own in sorted(moments):
        customer = owner if own else market.customer(stamp(moment))
        orders.append(_order(market, customer, moment, settings))
    _set_statuses([order for order in orders if order.customer is not owner], rng, scale)
    _set_own_statuses([order for order in orders if order.customer is owner], rng)
    offset = rng.randint(60, 400)
    for number, order in enumerate(orders, 1):
        order.id, order.number = number, f"{offset + number:09d}"
        _set_dates(rng, order)
    return orders


def _moment(rng: random.Random, days: float, least: float = 0.0) -> datetime.datetime:
    """Draw a past time. Recent days, months before holidays and evenings are more likely."""
    while True:
        ago = least + (days - least) * (1 - rng.random() ** 0.7)
        day = NOW - datetime.timedelta(days=ago)
        moment = day.replace(hour=rng.choices(range(24), _HOURS)[0], minute=rng.randrange(60), second=rng.randrange(60))
        if moment < NOW and rng.random() * 1.7 < _MONTHS.get(moment.month, 1.0):
            return moment


def _own_moments(rng: random.Random) -> list[datetime.datetime]:
    """Draw the times of the agent's orders: at most one per day, from just after joining to about a day ago."""
    moments: dict[datetime.date, datetime.datetime] = {}
    for least, most in (*_OWN_LATELY, (OWN_DAYS - 2, OWN_DAYS)):
        moment = NOW - datetime.timedelta(days=rng.uniform(least, most))
        moments[moment.date()] = moment.replace(microsecond=0)
    while len(moments) < OWN:
        moment = _moment(rng, OWN_DAYS - 6, 13)
        moments.setdefault(moment.date(), moment)
    return list(moments.values())


def _order(market: Market, customer: Customer, moment: datetime.datetime, settings: Mapping[str, str]) -> ShopOrder:
    rng = market.rng
    lines = _lines(market, customer, moment)
    shipping = rng.choices(SHIPPING_METHODS, (72, 20, 8))[0]
    costs = totals(sum(line.price * line.quantity for line in lines), (), shipping, settings)
    return ShopOrder(customer, moment, "", lines, shipping, rng.choices(PAYMENT_METHODS, (50, 30, 20))[0], costs)


def _lines(market: Market, customer: Customer, moment: datetime.datetime) -> list[OrderLine]:
    """Draw one to five products; wholesale customers and retailers buy larger quantities."""
    rng, lines = market.rng, dict[int, OrderLine]()
    for _ in range(rng.choices((1, 2, 3, 4, 5), (40, 30, 17, 9, 4))[0]):
        item = market.item(stamp(moment))
        options, extra = item.chosen(rng)
        recent = item.special is not None and (NOW - moment).days < 45
        price = (item.final if recent else item.price) + extra
        most = (1, 1, 1, 1, 2, 3) if customer.group == "General" else (1, 2, 3, 4, 6, 10)
        lines.setdefault(item.id, OrderLine(item, options, price, rng.choice(most)))
    return list(lines.values())


def _set_statuses(orders: Sequence[ShopOrder], rng: random.Random, scale: ShopScale) -> None:
    """Set the statuses. Most orders are complete; many recent ones are open, above all the newest."""
    for order in orders:
        order.status = rng.choices(("complete", "canceled", "closed"), (86, 10, 4))[0]
    recent = iter(sorted(orders[-scale.recent_orders :], key=lambda order: order.days + rng.uniform(0, 60)))
    for status, count in scale.open_orders.items():
        for order in islice(recent, count):
            order.status = status


def _set_own_statuses(orders: Sequence[ShopOrder], rng: random.Random) -> None:
    """Give the agent's orders every status except "on hold". The newest is pending, and the four before it are open."""
    for order in orders:
        order.status = "complete"
    before = rng.sample(("pending", "pending", "processing", "processing"), 4)
    lost = dict.fromkeys(rng.sample(range(1, OWN - 6), 5), "canceled")
    lost[max(lost)] = "closed"
    for index, status in (*enumerate(before, OWN - 5), (OWN - 1, "pending"), *lost.items()):
        orders[index].status = status


def _set_dates(rng: random.Random, order: ShopOrder) -> None:
    """Set the dates of invoice, shipment and refund."""
    begun = order.status == "processing"
    if begun and order.payment == "Cash on Delivery" and rng.random() < 0.8:
        order.shipped = _after(rng, order.moment, 0.3, 3.0)
    elif begun or order.status in ("complete", "closed"):
        order.invoiced = _after(rng, order.moment, 0.02, 0.9)
    if order.status in ("complete", "closed"):
        order.shipped = _after(rng, order.invoiced or order.moment, 0.3, 3.0)
    if order.status == "closed":
        order.refunded = _after(rng, order.shipped or order.moment, 4, 20)


def _after(rng: random.Random, moment: datetime.datetime, least: float, most: float) -> datetime.datetime:
    """Draw a time some days after another one, but before now."""
    seconds = min(rng.uniform(least, most) * 86_400, (NOW - moment).total_seconds() * 0.8)
    return moment + datetime.timedelta(seconds=int(seconds))


def write_orders(database: sqlite3.Connection, rng: random.Random, orders: Sequence[ShopOrder]) -> None:
    """Write the orders with their lines and addresses."""
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


def _order_row(order: ShopOrder) -> tuple[object, ...]:
    costs = order.totals
    head = (order.id, order.number, order.customer.id, stamp(order.moment), order.status, order.shipping, order.payment)
    return *head, order.coupon, costs.subtotal, costs.discount, costs.shipping, costs.tax, costs.total


def _addresses(rng: random.Random, orders: Sequence[ShopOrder]) -> Iterable[tuple[object, ...]]:
    """Yield the addresses. Bills and most parcels go to the default address."""
    for order in orders:
        shipping = order.customer.addresses[-1 if rng.random() < 0.2 else 0]
        yield order.id, "shipping", *shipping.row
        yield order.id, "billing", *order.customer.addresses[0].row

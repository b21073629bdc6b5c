"""Documents of orders: invoices, shipments, refunds and comments."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Callable, Iterable, Sequence

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.shop.names import CARRIERS
from agentgym_envs.webarena.sites.shop.seed_orders import ShopOrder

_CANCELED = (
    "Canceled at the customer's request: ordered by mistake.",
    "Canceled at the customer's request: found it elsewhere for less.",
    "Canceled at the customer's request: would have come too late for a birthday.",
    "Canceled: no payment came within fourteen days.",
    "Canceled: the last piece was damaged in our warehouse.",
    "Canceled at the customer's request: wrong size chosen.",
)
_HELD = (
    "On hold: the street could not be found; we have asked the customer.",
    "On hold: waiting for a delivery from the maker.",
    "On hold: payment is being checked by the bank.",
)
_REFUNDED = (
    "The parcel came back unopened; refunded.",
    "Arrived broken. Photographs received; refunded.",
    "Did not fit; returned in good order and refunded.",
    "The customer was not content with the quality; refunded.",
)
_SENT = (
    "Handed to {carrier} this morning.",
    "Your parcel is on its way with {carrier}.",
    "Sent in one parcel. Thank you for your order!",
    "Packed with extra paper, since it is fragile. On its way with {carrier}.",
)
_WISHES = (
    "Please leave the parcel with the neighbours if nobody is in.",
    "It is a present: please do not put the invoice into the box.",
    "Please ring twice, the first bell is broken.",
    "Could it arrive before the weekend?",
    "Please deliver to the back door.",
    "Would you wrap it, please? I am glad to pay for it.",
)


def write_paperwork(database: sqlite3.Connection, rng: random.Random, orders: Sequence[ShopOrder]) -> None:
    """Write the documents of all orders."""
    invoices = _numbered(rng, orders, lambda order: order.invoiced)
    database.executemany(
        "INSERT INTO shop_invoices VALUES (?, ?, ?, ?, ?)", ((*row, order.totals.total) for row, order in invoices)
    )
    shipments = _numbered(rng, orders, lambda order: order.shipped)
    database.executemany("INSERT INTO shop_shipments VALUES (?, ?, ?, ?)", (row for row, _ in shipments))
    refunds = _numbered(rng, orders, lambda order: order.refunded)
    database.executemany(
        "INSERT INTO shop_refunds VALUES (?, ?, ?, ?, ?, ?)", ((*row, *_refund(rng, order)) for row, order in refunds)
    )
    carriers = {order.id: (row[0], rng.choice(CARRIERS)) for row, order in shipments if rng.random() < 0.85}
    database.executemany(
        "INSERT INTO shop_tracks (shipment, carrier, number) VALUES (?, ?, ?)",
        ((shipment, carrier, f"{rng.randrange(10**9, 10**10)}") for shipment, carrier in carriers.values()),
    )
    comments = [comment for order in orders for comment in _comments(rng, order, carriers.get(order.id, (0, ""))[1])]
    comments.sort(key=lambda row: str(row[1]))
    database.executemany(
        "INSERT INTO shop_order_comments (order_id, moment, status, text, visible, notified) VALUES (?, ?, ?, ?, ?, ?)",
        comments,
    )


def _numbered(
    rng: random.Random, orders: Sequence[ShopOrder], moment: Callable[[ShopOrder], datetime.datetime | None]
) -> list[tuple[tuple[int, str, int, str], ShopOrder]]:
    """Return rows (id, number, order, time) of the documents, sorted by time."""
    dated = sorted((when, order.id, order) for order in orders if (when := moment(order)) is not None)
    offset = rng.randint(0, 60)
    return [
        ((number, f"{offset + number:09d}", order.id, stamp(when)), order)
        for number, (when, _, order) in enumerate(dated, 1)
    ]


def _refund(rng: random.Random, order: ShopOrder) -> tuple[int, int]:
    """Return the total, with or without the shipping cost, and the shipping cost."""
    shipping = rng.choice((order.totals.shipping, 0))
    return order.totals.total - order.totals.shipping + shipping, shipping


def _comments(rng: random.Random, order: ShopOrder, carrier: str) -> Iterable[tuple[object, ...]]:
    """Yield comments of customers and of the shop as (order, time, status, text, visible, notified)."""
    ordered = stamp(order.moment)
    if rng.random() < 0.1:
        yield order.id, ordered, "pending", rng.choice(_WISHES), 1, 0
    if order.status == "canceled":
        yield order.id, _next_day(rng, order), "canceled", rng.choice(_CANCELED), rng.randint(0, 1), 1
    if order.status == "on hold":
        yield order.id, _next_day(rng, order), "on hold", rng.choice(_HELD), 0, 0
    if order.shipped and carrier and rng.random() < 0.2:
        yield (
            order.id,
            stamp(order.shipped),
            order.status.replace("closed", "complete"),
            rng.choice(_SENT).format(carrier=carrier),
            1,
            1,
        )
    if order.refunded:
        yield order.id, stamp(order.refunded), "closed", rng.choice(_REFUNDED), 1, rng.randint(0, 1)


def _next_day(rng: random.Random, order: ShopOrder) -> str:
    return stamp(order.moment + datetime.timedelta(days=min(rng.uniform(0.1, 2), order.days * 0.8)))

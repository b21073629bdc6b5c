"""The cart price rules of a world's shop, and which orders they made cheaper."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.clock import TODAY
from agentgym_envs.webarena.sites.shop.money import totals
from agentgym_envs.webarena.sites.shop.seed_orders import Order

_OCCASIONS = {
    "PAYDAY": "Payday treat",
    "WELCOME": "Welcome gift for new customers",
    "THANKS": "A thank-you to loyal customers",
    "HELLO": "Newsletter welcome",
    "SUNNY": "Sunny side up",
    "COSY": "Cosy evenings",
    "LUCKY": "Lucky week",
    "FRIENDS": "Bring a friend",
    "EXTRA": "Extra for full carts",
    "HARVEST": "A good harvest",
    "DOORSTEP": "To your doorstep",
    "MIDNIGHT": "Night owls' sale",
    "PICNIC": "Picnic weekend",
    "BIRTHDAY": "The shop's birthday",
    "ATTIC": "Clear out the attic",
    "RAINYDAY": "Rainy day offer",
    "PENPAL": "Readers of our letters",
    "TEATIME": "Teatime treat",
    "NEIGHBOUR": "For the neighbours",
    "LANTERN": "Lantern nights",
    "MOVING": "New home, new things",
    "LATELY": "We have missed you",
}


class _Sort(NamedTuple):
    """Rules that run alike: days from today on which they begin, how many days they last."""

    many: int
    active: int
    starts: tuple[int, int]
    lasts: tuple[int, int] | None
    minimums: tuple[int, ...] = ()
    groups: tuple[str, ...] = ("",)


_SORTS = (
    _Sort(5, 1, (-200, -20), (206, 320)),
    _Sort(1, 1, (-300, -200), None, minimums=(300, 400, 500)),
    _Sort(1, 1, (-340, -240), (346, 460), groups=("Wholesale", "Retailer")),
    _Sort(1, 1, (-110, -90), (50, 80)),
    _Sort(1, 1, (20, 60), (20, 60)),
    _Sort(1, 0, (-150, -40), (180, 260)),
    _Sort(6, 0, (-440, -130), (40, 100)),
)
"""Running, for large carts, for dealers, over but not switched off, to come, switched off, over."""
_MOST_USED = 19


def make_rules(rng: random.Random) -> list[dict[str, Any]]:
    """Cart price rules: most with a coupon, half of them active."""
    codes = rng.sample(sorted(_OCCASIONS), sum(sort.many for sort in _SORTS))
    sorts = [sort for sort in _SORTS for _ in range(sort.many)]
    rules = [_rule(rng, sort, code) for sort, code in zip(sorts, codes, strict=True)]
    wholesale = "Wholesale discount", "Taken off every cart of our wholesale customers.", "Wholesale"
    everybody = "Stocktaking", "Off every cart while we count what is on the shelves.", ""
    rules += [_for_every_cart(rng, *words) for words in (wholesale, everybody)]
    rng.shuffle(rules)
    return [{"id": number, **rule} for number, rule in enumerate(rules, 1)]


def _rule(rng: random.Random, sort: _Sort, code: str) -> dict[str, Any]:
    kind = rng.choices(("percent", "fixed"), (65, 35))[0]
    amount = rng.choice((5, 10, 15, 20, 25) if kind == "percent" else (3, 5, 8, 10, 15))
    minimum = rng.choice(sort.minimums or ((0, 0, 30, 50) if kind == "percent" else (30, 50, 80)))
    group = rng.choice(sort.groups)
    share = f"{amount} %" if kind == "percent" else f"${amount}"
    told = f"{share} off the whole cart" + (f" of {group.lower()} customers" if group else "")
    start = TODAY + datetime.timedelta(days=rng.randint(*sort.starts))
    return {
        "name": _OCCASIONS[code],
        "description": told + (f", from ${minimum}." if minimum else "."),
        "coupon": f"{code}{amount}",
        "kind": kind,
        "amount": amount if kind == "percent" else 100 * amount,
        "minimum": 100 * minimum,
        "customer_group": group,
        "active": sort.active,
        "starts": start.isoformat(),
        "ends": (start + datetime.timedelta(days=rng.randint(*sort.lasts))).isoformat() if sort.lasts else None,
    }


def _for_every_cart(rng: random.Random, name: str, description: str, group: str) -> dict[str, Any]:
    """A rule that calls for no coupon, and has never been switched on."""
    values = {"name": name, "description": description, "coupon": "", "kind": "percent"}
    limits = {"amount": rng.choice((4, 6, 8)), "minimum": 20000, "customer_group": group}
    return {**values, **limits, "active": 0, "starts": None, "ends": None}


def use_coupons(
    rng: random.Random, orders: Sequence[Order], rules: Sequence[Mapping[str, Any]], settings: Mapping[str, str]
) -> None:
    """Make some orders cheaper. No two coupons are used equally often."""
    fitting = {rule["coupon"]: [order for order in orders if _fits(rule, order)] for rule in rules if rule["coupon"]}
    counts = [0, *sorted(rng.sample(range(1, _MOST_USED + 1), len(fitting) - 1))]
    ordered = sorted((rule for rule in rules if rule["coupon"]), key=lambda rule: len(fitting[rule["coupon"]]))
    taken: list[int] = []
    for rule, most in zip(ordered, counts, strict=True):
        left = [order for order in fitting[rule["coupon"]] if not order.coupon]
        count = next(count for count in range(min(most, len(left)), -1, -1) if count not in taken or not count)
        taken.append(count)
        for order in rng.sample(left, count):
            order.coupon = rule["coupon"]
            order.totals = totals(order.totals.subtotal, [rule], order.shipping, settings)


def _fits(rule: Mapping[str, Any], order: Order) -> bool:
    """Whether a customer could have used the rule's coupon for that order."""
    day = order.moment.date().isoformat()
    in_time = (rule["starts"] or "") <= day <= (rule["ends"] or "9999")
    ours = rule["customer_group"] in ("", order.customer.group)
    return in_time and ours and order.status != "canceled" and order.totals.subtotal >= rule["minimum"]


def write_rules(database: sqlite3.Connection, rules: Sequence[Mapping[str, Any]], orders: Sequence[Order]) -> None:
    """Put the rules into the database, with how often each was used."""
    used = Counter(order.coupon for order in orders if order.coupon)
    database.executemany(
        "INSERT INTO shop_rules VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((*rule.values(), used[rule["coupon"]]) for rule in rules),
    )

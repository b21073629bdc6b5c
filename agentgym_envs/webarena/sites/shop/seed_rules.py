"""Cart price rules, and the orders that used their coupons."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.clock import TODAY
from agentgym_envs.webarena.sites.shop.money import totals
from agentgym_envs.webarena.sites.shop.seed_orders import ShopOrder

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


class _RuleTemplate(NamedTuple):
    """A template for `copies` rules. `starts` is in days from today, `lasts` in days."""

    copies: int
    active: int
    starts: tuple[int, int]
    lasts: tuple[int, int] | None
    minimums: tuple[int, ...] = ()
    groups: tuple[str, ...] = ("",)


_RULE_TEMPLATES = (
    _RuleTemplate(5, 1, (-200, -20), (206, 320)),
    _RuleTemplate(1, 1, (-300, -200), None, minimums=(300, 400, 500)),
    _RuleTemplate(1, 1, (-340, -240), (346, 460), groups=("Wholesale", "Retailer")),
    _RuleTemplate(1, 1, (-110, -90), (50, 80)),
    _RuleTemplate(1, 1, (20, 60), (20, 60)),
    _RuleTemplate(1, 0, (-150, -40), (180, 260)),
    _RuleTemplate(6, 0, (-440, -130), (40, 100)),
)
"""Current; for large carts; for trade customers; expired but active; future; inactive; expired and inactive."""
_MOST_USED = 19


def make_rules(rng: random.Random) -> list[dict[str, Any]]:
    """Generate the cart price rules. Most have a coupon, and about half are active."""
    codes = rng.sample(sorted(_OCCASIONS), sum(template.copies for template in _RULE_TEMPLATES))
    templates = [template for template in _RULE_TEMPLATES for _ in range(template.copies)]
    rules = [_rule(rng, template, code) for template, code in zip(templates, codes, strict=True)]
    wholesale = "Wholesale discount", "Taken off every cart of our wholesale customers.", "Wholesale"
    everybody = "Stocktaking", "Off every cart while we count what is on the shelves.", ""
    rules += [_for_every_cart(rng, *words) for words in (wholesale, everybody)]
    rng.shuffle(rules)
    return [{"id": number, **rule} for number, rule in enumerate(rules, 1)]


def _rule(rng: random.Random, template: _RuleTemplate, code: str) -> dict[str, Any]:
    kind = rng.choices(("percent", "fixed"), (65, 35))[0]
    amount = rng.choice((5, 10, 15, 20, 25) if kind == "percent" else (3, 5, 8, 10, 15))
    minimum = rng.choice(template.minimums or ((0, 0, 30, 50) if kind == "percent" else (30, 50, 80)))
    group = rng.choice(template.groups)
    share = f"{amount} %" if kind == "percent" else f"${amount}"
    summary = f"{share} off the whole cart" + (f" of {group.lower()} customers" if group else "")
    start = TODAY + datetime.timedelta(days=rng.randint(*template.starts))
    return {
        "name": _OCCASIONS[code],
        "description": summary + (f", from ${minimum}." if minimum else "."),
        "coupon": f"{code}{amount}",
        "kind": kind,
        "amount": amount if kind == "percent" else 100 * amount,
        "minimum": 100 * minimum,
        "customer_group": group,
        "active": template.active,
        "starts": start.isoformat(),
        "ends": (start + datetime.timedelta(days=rng.randint(*template.lasts))).isoformat() if template.lasts else None,
    }


def _for_every_cart(rng: random.Random, name: str, description: str, group: str) -> dict[str, Any]:
    """Return a rule without a coupon that was never active."""
    values = {"name": name, "description": description, "coupon": "", "kind": "percent"}
    limits = {"amount": rng.choice((4, 6, 8)), "minimum": 20000, "customer_group": group}
    return {**values, **limits, "active": 0, "starts": None, "ends": None}


def use_coupons(
    rng: random.Random, orders: Sequence[ShopOrder], rules: Sequence[Mapping[str, Any]], settings: Mapping[str, str]
) -> None:
    """Apply coupons to some orders. Every coupon in use has a different number of uses."""
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


def _fits(rule: Mapping[str, Any], order: ShopOrder) -> bool:
    """Return True if the coupon of the rule was valid for the order."""
    day = order.moment.date().isoformat()
    in_time = (rule["starts"] or "") <= day <= (rule["ends"] or "9999")
    ours = rule["customer_group"] in ("", order.customer.group)
    return in_time and ours and order.status != "canceled" and order.totals.subtotal >= rule["minimum"]


def write_rules(database: sqlite3.Connection, rules: Sequence[Mapping[str, Any]], orders: Sequence[ShopOrder]) -> None:
    """Write the rules with the number of their uses."""
    used = Counter(order.coupon for order in orders if order.coupon)
    database.executemany(
        "INSERT INTO shop_rules VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((*rule.values(), used[rule["coupon"]]) for rule in rules),
    )

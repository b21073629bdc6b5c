"""The cost of an order: prices, discounts, shipping and tax, in whole cents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

SHIPPING_METHODS = ("Standard Shipping", "Express Shipping", "Store Pickup")
PAYMENT_METHODS = ("Bank Transfer", "Cash on Delivery", "Check / Money Order")


class Totals(NamedTuple):
    """The amounts of an order. `discount` is not negative."""

    subtotal: int
    discount: int
    shipping: int
    tax: int

    @property
    def total(self) -> int:
        """Amount to pay."""
        return self.subtotal - self.discount + self.shipping + self.tax


def totals(subtotal: int, rules: Iterable[Mapping[str, Any]], method: str, settings: Mapping[str, str]) -> Totals:
    """Return the totals for goods worth `subtotal`. `rules` are rows of shop_rules that apply; `method` may be ""."""
    discount = min(sum(discount_of(rule, subtotal) for rule in rules), subtotal)
    goods = subtotal - discount
    shipping = shipping_cost(method, goods, settings) if method else 0
    tax = (goods * int(settings["tax_percent"]) + 50) // 100
    return Totals(subtotal, discount, shipping, tax)


def discount_of(rule: Mapping[str, Any], subtotal: int) -> int:
    """Return the discount of a cart price rule on goods worth `subtotal`."""
    if subtotal < rule["minimum"]:
        return 0
    amount: int = rule["amount"]
    return (subtotal * amount + 50) // 100 if rule["kind"] == "percent" else amount


def shipping_cost(method: str, goods: int, settings: Mapping[str, str]) -> int:
    """Return the cost of a shipping method. Standard shipping is free from a configured value of goods."""
    if method == "Express Shipping":
        return int(settings["express_rate"])
    if method == "Standard Shipping" and goods < int(settings["free_shipping_from"]):
        return int(settings["standard_rate"])
    return 0

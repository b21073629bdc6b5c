"""The sizes of the shop's data in ordinary and in large worlds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agentgym_envs.webarena.sites.shop.names import MODELS, MORE_MODELS


class ProductBatch(NamedTuple):
    """A number of products, at least `fewest` per category, whose models have these names."""

    products: int
    fewest: int
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShopScale:
    """Numbers of rows.

    A large catalogue has the products of the ordinary one, and a second batch. `recent_orders` are those of the last
    weeks; `open_orders` are how many of them are open, by status, without those of the agent's account. `settings` are
    settings that only shops of this size have.
    """

    batches: tuple[ProductBatch, ...]
    customers: int
    orders: int
    recent_orders: int
    open_orders: Mapping[str, int]
    reviews: int
    sku_codes: range
    settings: Mapping[str, str] = field(default_factory=dict)


_FIRST = ProductBatch(420, 5, MODELS)
ORDINARY = ShopScale(
    batches=(_FIRST,),
    customers=150,
    orders=600,
    recent_orders=150,
    open_orders={"pending": 42, "processing": 33, "on hold": 14},
    reviews=1300,
    sku_codes=range(1000, 9999),
)
LARGE = ShopScale(
    batches=(_FIRST, ProductBatch(3580, 40, (*MODELS, *MORE_MODELS))),
    customers=600,
    orders=2000,
    recent_orders=400,
    open_orders={"pending": 120, "processing": 90, "on hold": 40},
    reviews=5000,
    sku_codes=range(10_000, 99_999),
    settings={"products_per_page": "36", "rows_per_page": "20"},
)


def shop_scale(large: bool) -> ShopScale:
    """Return the sizes of the shop in a world."""
    return LARGE if large else ORDINARY

"""Kinds of products ("night guard"), by which people name what they bought or look for."""

from __future__ import annotations

from functools import lru_cache

from agentgym_envs.webarena.sites.shop.goods import Shelf, departments, texts_for
from agentgym_envs.webarena.sites.world import World


def kind(product: str) -> str:
    """Return the kind of a product: its name without brand, model and size, in lower case."""
    return product.partition(", ")[0].split(" ", 2)[2].lower()


@lru_cache(maxsize=1)
def _shelves() -> dict[str, tuple[str, Shelf]]:
    """Return the department and the shelf of each kind."""
    return {
        thing.lower(): (department.name, shelf)
        for department in departments()
        for shelf in department.shelves
        for thing in shelf.things
    }


def known(product: str) -> bool:
    """Return whether a name has a kind that the catalogue knows."""
    return len(product.split(" ")) > 2 and kind(product) in _shelves()


def department(product: str) -> str:
    """Return the department to which a product of this kind belongs."""
    return _shelves()[kind(product)][0]


def complaints(product: str) -> list[str]:
    """Return the clauses with which reviews criticise a product of this kind."""
    return texts_for(_shelves()[kind(product)][1].bad, _thing(product))


def praise(product: str) -> list[str]:
    """Return the clauses with which reviews praise a product of this kind."""
    return texts_for(_shelves()[kind(product)][1].good, _thing(product))


def _thing(product: str) -> str:
    return next(thing for thing in _shelves()[kind(product)][1].things if thing.lower() == kind(product))


def products(world: World, name: str) -> list[int]:
    """Return the ids of all enabled products of a kind."""
    return list(_products(world).get(name, ()))


@lru_cache(maxsize=16)
def _products(world: World) -> dict[str, list[int]]:
    """Return the ids of the enabled products of each kind."""
    found: dict[str, list[int]] = {}
    for row in world.rows("SELECT id, name FROM shop_products WHERE enabled ORDER BY id"):
        if known(row["name"]):
            found.setdefault(kind(row["name"]), []).append(row["id"])
    return found


def every() -> list[str]:
    """Return all kinds."""
    return list(_shelves())

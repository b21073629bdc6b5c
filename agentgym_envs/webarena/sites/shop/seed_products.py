"""The catalogue of the shop: categories, products, attributes and options."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentgym_envs.webarena.sites.clock import some_time_ago
from agentgym_envs.webarena.sites.shop.goods import Department, Shelf, departments, first_for, pick_some, texts_for
from agentgym_envs.webarena.sites.shop.names import ADJECTIVES, BRANDS
from agentgym_envs.webarena.sites.shop.scale import ProductBatch, ShopScale

_BRANDS = 48


@dataclass(slots=True)
class Item:
    """A product. Prices are in cents. `quality` is its mean rating; `popularity` is a weight."""

    department: Department
    shelf: Shelf
    thing: str
    brand: str
    name: str
    price: int
    created: str
    id: int = 0
    sku: str = ""
    special: int | None = None
    stock: int = 0
    enabled: bool = True
    quality: float = 4.0
    popularity: float = 1.0
    attributes: dict[str, str] = field(default_factory=dict)
    options: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    @property
    def final(self) -> int:
        """Price, with the discount if there is one."""
        return self.price if self.special is None else self.special

    def chosen(self, rng: random.Random) -> tuple[str, int]:
        """Draw options: "Colour: Blue, Size: M", and their surcharge."""
        picks = {name: rng.choice(values) for name, values in self.options.items()}
        return ", ".join(f"{name}: {value}" for name, (value, _) in picks.items()), sum(e for _, e in picks.values())


def make_items(rng: random.Random, scale: ShopScale) -> list[Item]:
    """Generate the products, sorted by date of creation."""
    brands = rng.sample(BRANDS, _BRANDS)
    models = _Models(rng)
    items: list[Item] = []
    for batch in scale.batches:
        _add_batch(rng, brands, models, batch, items)
    items.sort(key=lambda item: (item.created, item.name))
    for number, (item, code) in enumerate(zip(items, rng.sample(scale.sku_codes, len(items)), strict=True), 1):
        letters = re.sub(r"[^A-Z]", "", item.shelf.name.title())[:2].ljust(2, "X")
        item.id, item.sku = number, f"{letters}-{code}"
        item.popularity = min(rng.paretovariate(1.1), 16) * (1.4 if item.quality > 3.5 else 0.8)
    return items


def _add_batch(rng: random.Random, brands: list[str], models: _Models, batch: ProductBatch, items: list[Item]) -> None:
    """Generate the products of a batch, and add them to those of all shelves."""
    taken: dict[str, set[int]] = {}
    for item in items:
        taken.setdefault(item.shelf.name, set()).add(item.final)
    models.names = batch.models
    shelves = [(index, shelf) for index, department in enumerate(departments()) for shelf in department.shelves]
    for (index, shelf), count in zip(shelves, _counts(rng, len(shelves), batch), strict=True):
        mine = brands[4 * index : 4 * index + 4] + rng.sample(brands, 1)
        made: list[Item] = []
        while len(made) < count:
            made += _family(rng, departments()[index], shelf, list(dict.fromkeys(mine)), models, count - len(made))
        for item in made:
            _finish(rng, item, taken.setdefault(shelf.name, set()))
        items += made


def _counts(rng: random.Random, shelves: int, batch: ProductBatch) -> list[int]:
    """Draw the number of products by shelf."""
    counts = [batch.fewest] * shelves
    weights = [rng.uniform(0.4, 2.0) for _ in counts]
    for index in rng.choices(range(shelves), weights, k=batch.products - batch.fewest * shelves):
        counts[index] += 1
    return counts


class _Models:
    """Draws the names of models. A brand uses a name once."""

    names: Sequence[str] = ()

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._taken: set[tuple[str, str]] = set()

    def draw(self, brand: str) -> str:
        model = self._rng.choice(self.names)
        while (brand, model) in self._taken:
            model = self._rng.choice(self.names)
        self._taken.add((brand, model))
        return model


def _family(
    rng: random.Random, department: Department, shelf: Shelf, brands: list[str], models: _Models, most: int
) -> list[Item]:
    """Generate one product, or several that differ in one attribute and in price."""
    thing = rng.choice(shelf.things)
    brand = rng.choices(brands, [1 / rank for rank in range(1, len(brands) + 1)])[0]
    model = models.draw(brand)
    created = some_time_ago(rng, least_days=3, most_days=90 if rng.random() < 0.1 else 1100)
    kind, keys = next(
        ((values.name.text, values.of(thing)) for values in first_for(shelf.attributes, thing) if values.key),
        ("", [""]),
    )
    size = min(most, len(keys), rng.choice((1, 1, 1, 1, 2, 3)))
    level = rng.betavariate(1.3, 2.0)
    chosen = sorted(rng.sample(range(len(keys)), size))
    family = []
    for index in chosen:
        name = f"{brand} {model} {thing}" + (f", {_size_label(kind, keys[index])}" if kind else "")
        price = _pretty(rng, _price(shelf, level, index, len(keys)))
        family.append(Item(department, shelf, thing, brand, name, price, created))
        _describe(rng, family[-1], keys[index])
    return family


def _size_label(kind: str, value: str) -> str:
    """Format a size for a product name: "1.5 l", "Pack of 3", "80 Pieces"."""
    if not value[-1].isdigit():
        return value
    if kind == "Pack":
        return f"Pack of {value}"
    return f"{value} {kind.removesuffix('s') if value == '1' else kind}"


def _describe(rng: random.Random, item: Item, key: str) -> None:
    """Set the attributes and options."""
    for values in first_for(item.shelf.attributes, item.thing):
        item.attributes[values.name.text] = key if values.key else rng.choice(values.of(item.thing))
    for values in first_for(item.shelf.options, item.thing):
        item.options[values.name.text] = _choices(rng, values.name.text, values.of(item.thing))


def _price(shelf: Shelf, level: float, index: int, places: int) -> float:
    """Return a price in dollars within the range of the shelf; larger sizes cost more."""
    low, high = shelf.price
    share = 0.65 * level + 0.35 * (index / (places - 1) if places > 1 else level)
    return float(low * (high / low) ** share)


def _pretty(rng: random.Random, dollars: float) -> int:
    """Round to a usual retail price, in cents."""
    return 100 * max(int(dollars), 1) + rng.choices((99, 95, 49, 0, 90), (6, 2, 3, 2, 1))[0]


def _choices(rng: random.Random, name: str, values: list[str]) -> list[tuple[str, int]]:
    """Draw some of the values in order. The last one sometimes costs more."""
    if name == "Size":
        first = rng.randrange(min(2, len(values) - 2))
        kept = values[first : first + rng.randint(3, len(values))]
    else:
        kept = [values[index] for index in sorted(rng.sample(range(len(values)), rng.randint(2, len(values))))]
    extra = rng.choice((0, 0, 0, 200, 300, 500))
    return [(value, extra if value == kept[-1] else 0) for value in kept]


def _finish(rng: random.Random, item: Item, taken: set[int]) -> None:
    """Set special price, stock, status and quality. Final prices within a shelf are unique."""
    special = _pretty(rng, item.price * rng.uniform(0.58, 0.88) / 100)
    if rng.random() < 0.18 and special < item.price:
        item.special = special
    while item.final in taken:
        item.price += 100
        item.special = None if item.special is None else item.special + 100
    taken.add(item.final)
    item.stock = 0 if rng.random() < 0.05 else int(rng.lognormvariate(3.4, 0.9)) + 1
    item.enabled = rng.random() > 0.025
    item.quality = min(max(rng.gauss(3.9, 0.75), 1.6), 4.9)


def write_items(database: sqlite3.Connection, rng: random.Random, items: Sequence[Item]) -> None:
    """Write the catalogue."""
    numbers = _write_categories(database)
    database.executemany(
        "INSERT INTO shop_products VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (_row(rng, item, numbers[item.shelf.name]) for item in items),
    )
    database.executemany(
        "INSERT INTO shop_attributes (product, name, value) VALUES (?, ?, ?)",
        ((item.id, name, value) for item in items for name, value in item.attributes.items()),
    )
    database.executemany(
        "INSERT INTO shop_options (product, name, value, extra, position) VALUES (?, ?, ?, ?, ?)",
        (
            (item.id, name, value, extra, position)
            for item in items
            for name, values in item.options.items()
            for position, (value, extra) in enumerate(values, 1)
        ),
    )


def _write_categories(database: sqlite3.Connection) -> dict[str, int]:
    """Write the category tree; return the ids of the shelves by name."""
    rows: list[tuple[object, ...]] = []
    numbers: dict[str, int] = {}
    for position, department in enumerate(departments(), 1):
        parent = len(rows) + 1
        rows.append((parent, None, department.name, slug(department.name), department.about, position))
        for index, shelf in enumerate(department.shelves, 1):
            numbers[shelf.name] = len(rows) + 1
            rows.append((len(rows) + 1, parent, shelf.name, slug(shelf.name), "", index))
    database.executemany(
        "INSERT INTO shop_categories (id, parent, name, slug, description, position) VALUES (?, ?, ?, ?, ?, ?)", rows
    )
    return numbers


def _row(rng: random.Random, item: Item, category: int) -> tuple[object, ...]:
    low, high = item.shelf.weight
    weight = round(low * (high / low) ** rng.random() / 10) * 10 or low
    cost = int(item.price * rng.uniform(0.4, 0.7))
    summary, description = _texts(rng, item)
    return (
        item.id,
        item.sku,
        item.name,
        slug(item.name),
        category,
        item.brand,
        item.price,
        item.special,
        min(cost, item.final - 1),
        item.stock,
        int(item.enabled),
        summary,
        description,
        weight,
        item.created,
    )


def _texts(rng: random.Random, item: Item) -> tuple[str, str]:
    """Return the short and the long description."""
    adjectives = ADJECTIVES[item.department.name]
    use = rng.choice(texts_for(item.shelf.uses, item.thing))
    facts = pick_some(rng, texts_for(item.shelf.facts, item.thing), 3)
    one, other = rng.sample(adjectives, 2)
    material = item.attributes.get("Material", "")
    summary = rng.choice((f"For {use}.", f"{one.capitalize()} and {other}, for {use}.", facts[0]))
    opening = rng.choice(
        (
            f"Made for {use}: the {item.name.split(',')[0]}, the {one} choice from {item.brand}.",
            f"With the {item.name.split(',')[0]}, {item.brand} shows how {one} and {other} go together.",
            f"{use[0].upper()}{use[1:]}? That is what {item.brand} had in mind, and came up with something {one}.",
            f"Straight from {item.brand}: the {item.name.split(',')[0]}, {one} and {other}.",
        )
    )
    made = [f"Made of {material.lower()}."] if material else []
    ending = rng.choice(
        (
            f"A favourite of our customers since {item.created[:4]}.",
            f"Chosen by our buyers because it is {other}.",
            "It leaves our warehouse within one working day.",
        )
    )
    if item.department.name not in ("Grocery", "Health & Beauty") and rng.random() < 0.4:
        ending = f"{item.brand} gives a guarantee of {rng.choice(('two', 'three', 'five'))} years."
    return summary, f"{opening} {' '.join(facts[:2])}\n\n{' '.join([*made, *facts[2:], ending])}"


def slug(name: str) -> str:
    """Convert a name to a slug: "board-games"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")

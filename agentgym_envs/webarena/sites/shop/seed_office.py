"""Settings and pages of the shop, and traces of visitors: searches, wishes, carts and enquiries."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Mapping, Sequence

from agentgym_envs.webarena.sites.clock import some_time_ago, stamp
from agentgym_envs.webarena.sites.shop.goods import departments
from agentgym_envs.webarena.sites.shop.pages import PAGES
from agentgym_envs.webarena.sites.shop.searching import count_found
from agentgym_envs.webarena.sites.shop.seed_orders import ShopOrder
from agentgym_envs.webarena.sites.shop.seed_people import Customer
from agentgym_envs.webarena.sites.shop.seed_products import Item
from agentgym_envs.webarena.sites.words import lines, words
from agentgym_envs.webarena.sites.world import SeedInputs

_FOR = lines("""
    For the new flat
    A present for my sister
    When it is on sale
    Ask for the size first
    Only if it comes in another colour
    For the summer
    Recommended by a neighbour
    A second one would be good
    For Grandfather's birthday
    Compare with the one at work
""")
_SUBJECTS = {
    "Where is my order?": "I ordered some days ago (order {number}) and have heard nothing since. Has it been sent?",
    "Wrong item": "Order {number} came today, but {item} is not what I ordered. How do I send it back?",
    "A question about size": "Before I order it again after {number}: does {item} run large or small?",
    "Spare parts": "A part of {item} broke (order {number}). Do you sell it on its own?",
    "Invoice": "Could you send me the invoice of order {number} once more? I need it for my taxes.",
    "Praise": "Order {number} was packed with such care that I have to thank you. {item} is lovely.",
    "Gift wrapping": "Can {item} be wrapped as a present? I forgot to say so in order {number}.",
    "Broken on arrival": "{item} arrived broken (order {number}). I can send you photographs.",
}


def make_settings(seeds: SeedInputs) -> dict[str, str]:
    """Generate the settings of the shop. Amounts are in cents."""
    rng, town = seeds.rng, seeds.country.towns[0]
    return {
        "store_name": "One Roof Market",
        "email": "service@shop.test",
        "phone": f"0{rng.randint(10, 99)} 555 {rng.randint(1000, 9999)}",
        "hours": f"Monday to Friday, {rng.choice((8, 9))} AM to {rng.choice((5, 6, 7))} PM",
        "street": town.address(rng),
        "town": f"{town.zip} {town.name}",
        "free_shipping_from": str(100 * rng.choice((60, 75, 80, 90, 100, 120))),
        "standard_rate": str(rng.choice((490, 550, 595, 650, 690))),
        "express_rate": str(rng.choice((1250, 1390, 1490, 1690, 1890))),
        "tax_percent": str(rng.randint(5, 9)),
        "return_days": str(rng.choice((14, 21, 30, 45, 60))),
        "delivery_days": rng.choice(("2 to 4", "3 to 5", "4 to 6")),
    }


def write_office(database: sqlite3.Connection, seeds: SeedInputs, settings: Mapping[str, str]) -> None:
    """Write the settings and pages."""
    database.executemany("INSERT INTO shop_settings (name, value) VALUES (?, ?)", settings.items())
    values = {**settings, "country": seeds.country.name}
    values |= {name: f"${int(settings[name]) / 100:,.2f}" for name in ("free_shipping_from", "standard_rate")}
    values["express_rate"] = f"${int(settings['express_rate']) / 100:,.2f}"
    database.executemany(
        "INSERT INTO shop_pages (title, url_key, content, enabled, updated) VALUES (?, ?, ?, ?, ?)",
        (
            (title, key, content.format(**values), enabled, some_time_ago(seeds.rng, least_days=5, most_days=500))
            for title, key, content, enabled in PAGES
        ),
    )


def write_traces(
    database: sqlite3.Connection,
    rng: random.Random,
    customers: Sequence[Customer],
    items: Sequence[Item],
    orders: Sequence[ShopOrder],
) -> None:
    """Write searches, wish lists, carts and enquiries."""
    _write_searches(database, rng, items)
    _write_wishes(database, rng, customers, items)
    for number, subject in enumerate(rng.sample(sorted(_SUBJECTS), len(_SUBJECTS)), 1):
        order = rng.choice([order for order in orders if order.customer.id != 1])
        person = order.customer.person
        text = _SUBJECTS[subject].format(number=order.number, item=rng.choice(order.lines).item.name)
        moment = stamp(order.moment + datetime.timedelta(days=min(order.days * 0.9, rng.uniform(2, 9))))
        database.execute(
            "INSERT INTO shop_enquiries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, order.customer.id, person.name, person.email, person.phone, subject, order.number, text, moment),
        )


def _write_searches(database: sqlite3.Connection, rng: random.Random, items: Sequence[Item]) -> None:
    """Write search terms: products, brands, and some without results."""
    things = [thing.lower() for department in departments() for shelf in department.shelves for thing in shelf.things]
    brands = sorted({item.brand for item in items})
    terms = {*rng.sample(things, 36), *(brand.lower() for brand in rng.sample(brands, 12))}
    terms |= {f"{item.brand} {item.thing}".lower() for item in rng.sample(items, 16)}
    terms |= set(rng.sample(words("bicycle sofa laptop tent-pegs violin aquarium bunk-bed freezer sunglasses"), 4))
    uses = sorted({int(rng.paretovariate(0.8) * 3) + index for index in range(len(terms) * 2)}, reverse=True)
    rows = [
        (term.replace("-", " "), count_found(database, term.replace("-", " ")), count, some_time_ago(rng, most_days=60))
        for term, count in zip(rng.sample(sorted(terms), len(terms)), uses, strict=False)
    ]
    database.executemany("INSERT INTO shop_searches (term, results, uses, last) VALUES (?, ?, ?, ?)", rows)


def _write_wishes(
    database: sqlite3.Connection, rng: random.Random, customers: Sequence[Customer], items: Sequence[Item]
) -> None:
    """Write the wish lists, and the cart and comparison list of the agent's account."""
    sold = [item for item in items if item.enabled and item.stock > 3]
    wishes = []
    for customer in customers:
        if customer.id == 1 or rng.random() < 0.2:
            for item in rng.sample(sold, rng.randint(8, 10) if customer.id == 1 else rng.randint(1, 4)):
                comment = rng.choice(_FOR) if rng.random() < 0.3 else ""
                wishes.append((customer.id, item.id, comment, some_time_ago(rng, least_days=1, most_days=200)))
    database.executemany("INSERT INTO shop_wishes (customer, product, comment, added) VALUES (?, ?, ?, ?)", wishes)
    own = _write_cart(database, rng, sold)
    shelf = rng.choice([item.shelf for item in sold if item.id not in own])
    compared = [item for item in sold if item.shelf is shelf][:2]
    database.executemany(
        "INSERT INTO shop_compares (customer, product) VALUES (1, ?)", ((item.id,) for item in compared)
    )


def _write_cart(database: sqlite3.Connection, rng: random.Random, sold: Sequence[Item]) -> list[int]:
    """Write the cart of the agent's account, worth $90 to $300. Return the products."""
    worth, rows = 0, list[tuple[int, str, int]]()
    while not 9000 <= worth < 30000:
        worth, rows = 0, []
        for item in rng.sample(sold, rng.randint(4, 6)):
            options, extra = item.chosen(rng)
            quantity = rng.choice((1, 1, 1, 2, 3))
            worth += (item.final + extra) * quantity
            rows.append((item.id, options, quantity))
    database.execute("INSERT INTO shop_carts (id, customer) VALUES (1, 1)")
    database.executemany("INSERT INTO shop_cart_lines (cart, product, options, quantity) VALUES (1, ?, ?, ?)", rows)
    return [row[0] for row in rows]

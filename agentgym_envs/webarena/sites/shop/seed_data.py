"""The shop's rows at the start of an episode."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace

from agentgym_envs.webarena.sites.people import make_people
from agentgym_envs.webarena.sites.shop.scale import shop_scale
from agentgym_envs.webarena.sites.shop.seed_office import make_settings, write_office, write_traces
from agentgym_envs.webarena.sites.shop.seed_orders import Market, make_orders, write_orders
from agentgym_envs.webarena.sites.shop.seed_paperwork import write_paperwork
from agentgym_envs.webarena.sites.shop.seed_people import make_customers, write_customers
from agentgym_envs.webarena.sites.shop.seed_products import make_items, write_items
from agentgym_envs.webarena.sites.shop.seed_reviews import write_reviews
from agentgym_envs.webarena.sites.shop.seed_rules import make_rules, use_coupons, write_rules
from agentgym_envs.webarena.sites.world import SeedInputs


def fill(database: sqlite3.Connection, seeds: SeedInputs) -> None:
    """Write the shop of a world into the tables of `schema.sql`."""
    scale, seeds = shop_scale(seeds.large), _with_customers(seeds)
    rng = seeds.rng
    settings, rules = {**make_settings(seeds), **scale.settings}, make_rules(rng)
    items, customers = make_items(rng, scale), make_customers(seeds, scale.customers)
    orders = make_orders(Market(rng, customers, items), settings, scale)
    use_coupons(rng, orders, rules, settings)
    write_items(database, rng, items)
    write_customers(database, seeds, customers)
    write_orders(database, rng, orders)
    write_paperwork(database, rng, orders)
    names = sorted({person.first for person in seeds.people})
    write_reviews(database, rng, orders, items, names, scale.reviews)
    write_rules(database, rules, orders)
    write_office(database, seeds, settings)
    write_traces(database, rng, customers, items, orders)


def _with_customers(seeds: SeedInputs) -> SeedInputs:
    """Add people who only buy in the shop, if it has more customers than the other sites have users."""
    count = shop_scale(seeds.large).customers - len(seeds.people)
    if count <= 0:
        return seeds
    rng = random.Random(f"customers/{seeds.country.name}/{seeds.people[0].email}")
    return replace(seeds, people=(*seeds.people, *make_people(rng, seeds.country, count, seeds.people)))

"""Customers with their addresses, and newsletter subscribers."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from agentgym_envs.webarena.sites.clock import later, some_time_ago
from agentgym_envs.webarena.sites.people import Person
from agentgym_envs.webarena.sites.world import SeedInputs


@dataclass(slots=True)
class CustomerAddress:
    """An address; `row` has the columns of the table from the name to the phone number."""

    id: int
    row: tuple[str, str, str, str, str, str]


@dataclass(slots=True)
class Customer:
    """A customer. The first of `addresses` is the default; `weight` is the relative number of orders."""

    id: int
    person: Person
    group: str
    joined: str
    addresses: list[CustomerAddress]
    weight: float


def make_customers(seeds: SeedInputs, count: int) -> list[Customer]:
    """Generate `count` customers. The agent acts as the first one."""
    rng = seeds.rng
    persons = rng.sample(seeds.people[1:], count - 1)
    joined = sorted(some_time_ago(rng, least_days=2, most_days=900) for _ in persons)
    ranks = rng.sample(range(1, count), len(persons))
    first = some_time_ago(rng, least_days=432, most_days=440)
    customers = [Customer(1, seeds.people[0], "General", first, [], 0)]
    for number, (person, moment, rank) in enumerate(zip(persons, joined, ranks, strict=True), 2):
        group = rng.choices(("General", "Wholesale", "Retailer"), (78, 12, 10))[0]
        customers.append(Customer(number, person, group, moment, [], 1 / (rank + 3) ** 0.75))
    addresses = 0
    for customer in customers:
        for index in range(3 if customer.id == 1 else 1 + (rng.random() < 0.2)):
            addresses += 1
            customer.addresses.append(CustomerAddress(addresses, _address(seeds, customer.person, index)))
    return customers


def _address(seeds: SeedInputs, person: Person, index: int) -> tuple[str, str, str, str, str, str]:
    """Return the home address (index 0), or a random address in the same or another town."""
    if index == 0:
        town = person.town
        return person.name, person.street, town.name, town.region, town.zip, person.phone
    town = seeds.rng.choice((person.town, *seeds.country.towns[:8]))
    return person.name, town.address(seeds.rng), town.name, town.region, town.zip, person.phone


def write_customers(database: sqlite3.Connection, seeds: SeedInputs, customers: Sequence[Customer]) -> None:
    """Write the customers, their addresses and the newsletter subscribers."""
    database.executemany(
        "INSERT INTO shop_addresses VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((address.id, customer.id, *address.row) for customer in customers for address in customer.addresses),
    )
    database.executemany(
        "INSERT INTO shop_customers VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (c.id, c.person.email, c.person.first, c.person.last, c.group, c.joined, c.addresses[0].id)
            for c in customers
        ),
    )
    database.executemany(
        "INSERT INTO shop_subscribers (email, customer, status, moment) VALUES (?, ?, ?, ?)",
        _subscribers(seeds, customers),
    )


def _subscribers(seeds: SeedInputs, customers: Sequence[Customer]) -> list[tuple[str, int | None, str, str]]:
    """Return some of the customers, without the agent's account, and the people who are not customers."""
    rng = seeds.rng
    known = {customer.person.number for customer in customers}
    rows: list[tuple[str, int | None, str, str]] = []
    for customer in customers[1:]:
        if rng.random() < 0.4:
            status = rng.choices(("subscribed", "unsubscribed"), (85, 15))[0]
            rows.append((customer.person.email, customer.id, status, later(customer.joined, rng, most_days=300)))
    for person in seeds.people:
        if person.number not in known:
            rows.append((person.email, None, "subscribed", some_time_ago(rng, most_days=600)))
    return sorted(rows, key=lambda row: row[3])

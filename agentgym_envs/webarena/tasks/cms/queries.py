"""Database queries and the choice of instances for tasks in the administration."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar

from agentgym_envs.webarena.sites.clock import NOW
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.instances import Instances, choose
from agentgym_envs.webarena.tasks.template import Params, Template

ADMIN = ORIGINS["admin"]
ENOUGH = 60
"""An upper limit of instances: no world has more than a third of it in tasks of one template."""
MONTHS = {
    "September 2025": "2025-09",
    "October 2025": "2025-10",
    "November 2025": "2025-11",
    "December 2025": "2025-12",
    "January 2026": "2026-01",
    "February 2026": "2026-02",
}
"""The last six complete months, with their stored form."""
_T = TypeVar("_T")


AdminTemplate = partial(Template, "cms", ("admin",))
"""A task that begins on the administration's dashboard."""


def one_per_answer(found: Iterable[tuple[Hashable, _T]]) -> list[_T]:
    """Return one instance for each answer, so that no instance's solution solves another one."""
    chosen: dict[Hashable, _T] = {}
    for answer, params in found:
        chosen.setdefault(answer, params)
    return list(chosen.values())


def one_row_per_answer(query: str, *, sample: int = ENOUGH) -> Instances:
    """Return the rows of a query as instances, one for each value of the first column, which is left out."""

    def found(world: World) -> list[Params]:
        rows = (dict(row) for row in world.rows(query))
        return one_per_answer((row.pop(next(iter(row))), row) for row in rows)

    return choose(found, sample=sample)


def carriers(world: World) -> list[str]:
    """Return the names of all carriers."""
    return [row[0] for row in world.rows("SELECT DISTINCT carrier FROM shop_tracks ORDER BY 1")]


def order_url(world: World, number: str) -> str:
    """Return the URL of an order."""
    return f"{ADMIN}/orders/{world.value('SELECT id FROM shop_orders WHERE number = ?', number)}"


def newest_order(world: World, customer: str, status: str) -> int:
    """Return the id of the most recent order of a customer with a status."""
    query = """SELECT o.id FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
        WHERE c.first || ' ' || c.last = ? AND o.status = ? ORDER BY o.moment DESC LIMIT 1"""
    return int(world.value(query, customer, status))


def newest_order_url(world: World, customer: str, status: str) -> str:
    """Return the URL of the most recent order of a customer with a status."""
    return f"{ADMIN}/orders/{newest_order(world, customer, status)}"


def product_url(world: World, product: str) -> str:
    """Return the URL of the page to edit a product."""
    return f"{ADMIN}/products/{product_value(world, 'id', product)}"


def customer_url(world: World, customer: str) -> str:
    """Return the URL of a customer."""
    number = world.value("SELECT id FROM shop_customers WHERE first || ' ' || last = ?", customer)
    return f"{ADMIN}/customers/{number}"


def rule_url(world: World, coupon: str) -> str:
    """Return the URL of the cart price rule of a coupon."""
    return f"{ADMIN}/rules/{world.value('SELECT id FROM shop_rules WHERE coupon = ?', coupon)}"


def product_value(world: World, column: str, product: str) -> Any:
    """Return a value of a product."""
    return world.value(f"SELECT {column} FROM shop_products WHERE name = ?", product)


def sample_some(found: Iterable[_T], rng: Random, most: int = ENOUGH) -> list[_T]:
    """Return at most `most` of the candidates, in random order."""
    chosen = list(found)
    return rng.sample(chosen, min(most, len(chosen)))


def month_range(month: str) -> dict[str, str]:
    """Return the first and last day of one of `MONTHS`, for the fields From and To."""
    key = MONTHS[month]
    return {"From": f"{key}-01", "To": f"{key}-{calendar.monthrange(*map(int, key.split('-')))[1]}"}


def random_periods(rng: Random, count: int, *, least: int, most: int, days: int = 420) -> Iterator[tuple[str, str]]:
    """Yield first and last days of periods of `least` to `most` days within the last `days` days."""
    for _ in range(count):
        length = rng.randint(least, most)
        first = NOW - datetime.timedelta(days=rng.randint(length + 5, days))
        yield f"{first:%Y-%m-%d}", f"{first + datetime.timedelta(days=length):%Y-%m-%d}"


def cents(amount: object) -> int:
    """Return an amount such as "$1,249.50" in cents."""
    whole, _, rest = str(amount).replace("$", "").replace(",", "").partition(".")
    return 100 * int(whole) + int(rest.ljust(2, "0") or 0)


def dollars(amount: int) -> str:
    """Return cents in the form of a price field: "12.50"."""
    return f"{amount / 100:.2f}"


def has_single_leader(rows: Sequence[Mapping[str, object]], column: str) -> bool:
    """Return whether the first of several rows differs from the second in this column."""
    return len(rows) > 1 and rows[0][column] != rows[1][column]

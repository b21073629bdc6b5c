"""Worlds of the shop are reproducible, consistent and varied, and the agent's account has a history."""

from __future__ import annotations

import re

import pytest

from agentgym_envs.webarena.sites.shop.goods import departments, first_for, texts_for
from agentgym_envs.webarena.sites.shop.money import discount_of, totals
from agentgym_envs.webarena.sites.shop.pictures import picture
from agentgym_envs.webarena.sites.world import world
from tests.webarena.embedded import printed_by_two_processes

pytestmark = pytest.mark.slow

SEEDS = [1, pytest.param(21, marks=pytest.mark.slow)]


@pytest.mark.slow
def test_worlds_are_reproducible() -> None:
    code = (
        "from agentgym_envs.webarena.sites import world; world.SEEDED_SITES = ('shop',); print(world.world(7).digest)"
    )
    printed_by_two_processes(code)


@pytest.mark.parametrize("seed", SEEDS)
def test_orders_have_correct_totals_and_dates(seed: int) -> None:
    initial = world(seed)
    assert not initial.rows(
        "SELECT 1 FROM shop_orders WHERE total <> subtotal - discount + shipping + tax OR total <= 0"
    )
    assert not initial.rows(
        "SELECT 1 FROM shop_orders o WHERE subtotal <> "
        "(SELECT SUM(price * quantity) FROM shop_order_lines l WHERE l.order_id = o.id)"
    )
    assert not initial.rows(
        "SELECT 1 FROM shop_orders o JOIN shop_customers c ON c.id = o.customer WHERE c.joined > o.moment"
    )
    assert not initial.rows(
        "SELECT 1 FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id "
        "JOIN shop_products p ON p.id = l.product WHERE p.created > o.moment"
    )
    for table, earlier in (("invoices", "orders"), ("shipments", "invoices"), ("refunds", "shipments")):
        key = "e.id = t.order_id" if earlier == "orders" else "e.order_id = t.order_id"
        assert not initial.rows(
            f"SELECT 1 FROM shop_{table} t JOIN shop_{earlier} e ON {key} WHERE e.moment > t.moment"
        )
        assert initial.value(f"SELECT MAX(moment) FROM shop_{table}") < "2026-03-16 10:30:00"
    both = "SELECT order_id FROM shop_{} WHERE order_id IN (SELECT order_id FROM shop_{})"
    done = "SELECT 1 FROM shop_orders WHERE (status IN ('complete', 'closed')) <> (id IN ({}))"
    assert not initial.rows(done.format(both.format("invoices", "shipments")))
    begun = "SELECT order_id FROM shop_invoices UNION SELECT order_id FROM shop_shipments"
    assert not initial.rows(
        f"SELECT 1 FROM shop_orders WHERE status NOT IN ('pending', 'on hold', 'canceled') <> (id IN ({begun}))"
    )
    numbers = [row[0] for row in initial.rows("SELECT number FROM shop_orders ORDER BY moment, id")]
    assert numbers == sorted(numbers) and len(numbers) == 600


@pytest.mark.parametrize("seed", SEEDS)
def test_many_recent_orders_are_open(seed: int) -> None:
    initial = world(seed)
    query = "SELECT status, COUNT(*) FROM shop_orders WHERE moment > '2026-01-22' GROUP BY status"
    recent = {row[0]: row[1] for row in initial.rows(query)}
    assert (recent["pending"], recent["processing"], recent["on hold"]) == (45, 35, 14)
    processing = "SELECT COUNT(*) FROM shop_orders WHERE status = 'processing' AND id IN (SELECT order_id FROM shop_{})"
    assert initial.value(processing.format("invoices")) >= 15 and initial.value(processing.format("shipments")) >= 3
    buyers = "SELECT COUNT(DISTINCT customer) FROM shop_orders WHERE status IN ('pending', 'processing', 'on hold')"
    assert initial.value(buyers) > 40


@pytest.mark.parametrize("seed", SEEDS)
def test_coupons_have_unique_numbers_of_uses(seed: int) -> None:
    initial = world(seed)
    rules = [dict(row) for row in initial.rows("SELECT * FROM shop_rules")]
    uses = [rule["used"] for rule in rules if rule["coupon"]]
    assert len(rules) == 18 and len(set(uses)) == len(uses) == 16 and sum(rule["active"] for rule in rules) == 9
    for rule in rules:
        orders = initial.rows("SELECT * FROM shop_orders WHERE coupon = ? AND coupon <> ''", rule["coupon"])
        assert len(orders) == rule["used"]
        for order in orders:
            assert order["discount"] == min(discount_of(rule, order["subtotal"]), order["subtotal"]) > 0
            assert rule["starts"] <= order["moment"][:10] <= (rule["ends"] or "9999")
    assert not initial.rows("SELECT 1 FROM shop_orders WHERE (coupon = '') <> (discount = 0)")


@pytest.mark.parametrize("seed", SEEDS)
def test_reviews_follow_the_product_and_its_delivery(seed: int) -> None:
    initial = world(seed)
    assert initial.value("SELECT COUNT(*) FROM shop_reviews") == 1300
    assert not initial.rows(
        "SELECT 1 FROM shop_reviews r JOIN shop_products p ON p.id = r.product WHERE r.moment < p.created"
    )
    assert not initial.rows(
        "SELECT 1 FROM shop_reviews r WHERE customer IS NOT NULL AND NOT EXISTS (SELECT 1 FROM shop_orders o "
        "JOIN shop_order_lines l ON l.order_id = o.id WHERE l.product = r.product AND o.customer = r.customer "
        "AND o.moment < r.moment)"
    )
    texts = initial.value("SELECT COUNT(DISTINCT text) FROM shop_reviews")
    assert texts > 1150, "people do not all say the same"
    assert not initial.rows("SELECT 1 FROM shop_reviews WHERE text LIKE '%{%' OR text LIKE '%@%' OR title LIKE '%@%'")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_agents_account_has_a_history(seed: int) -> None:
    initial = world(seed)
    query = "SELECT status, COUNT(*) FROM shop_orders WHERE customer = 1 GROUP BY status"
    statuses = {row[0]: row[1] for row in initial.rows(query)}
    assert sum(statuses.values()) == 25 and statuses["pending"] == 3 and statuses["processing"] == 2
    assert statuses["canceled"] == 4 and statuses["closed"] == 1
    assert initial.value("SELECT COUNT(*) FROM shop_addresses WHERE customer = 1") == 3
    assert 8 <= initial.value("SELECT COUNT(*) FROM shop_wishes WHERE customer = 1") <= 10
    assert 4 <= initial.value("SELECT COUNT(*) FROM shop_cart_lines") <= 6
    assert initial.value("SELECT COUNT(*) FROM shop_reviews WHERE customer = 1") >= 1
    assert initial.value("SELECT COUNT(DISTINCT date(moment)) FROM shop_orders WHERE customer = 1") == 25
    assert initial.value("SELECT email FROM shop_customers WHERE id = 1").endswith("@mail.test")


@pytest.mark.slow
def test_worlds_differ() -> None:
    names, others = ({row[0] for row in world(seed).rows("SELECT name FROM shop_products")} for seed in (1, 21))
    assert len(names & others) < 10


def test_products_have_unique_names_and_prices() -> None:
    initial = world(1)
    assert initial.value("SELECT COUNT(DISTINCT name) FROM shop_products") == 420
    assert not initial.rows(
        "SELECT 1 FROM shop_products GROUP BY category, COALESCE(special_price, price) HAVING COUNT(*) > 1"
    )
    assert not initial.rows("SELECT 1 FROM shop_products WHERE special_price >= price OR cost >= price OR cost <= 0")


def test_every_product_has_enough_texts() -> None:
    for department in departments():
        assert len(department.shelves) == 4
        for shelf in department.shelves:
            assert picture(1, re.sub("[^a-z]+", "-", shelf.name.lower())) != picture(1, "another"), shelf.name
            for thing in shelf.things:
                lists = shelf.good, shelf.bad, shelf.facts
                assert all(len(texts_for(entries, thing)) >= 2 for entries in lists) and texts_for(shelf.uses, thing), (
                    thing
                )
                assert all(values.of(thing) for values in first_for(shelf.attributes + shelf.options, thing)), thing


def test_order_totals_include_discount_tax_and_shipping() -> None:
    settings = {"tax_percent": "7", "standard_rate": "500", "express_rate": "1500", "free_shipping_from": "5000"}
    percent = {"kind": "percent", "amount": 15, "minimum": 3000}
    fixed = {"kind": "fixed", "amount": 9000, "minimum": 0}
    assert discount_of(percent, 2999) == 0 and discount_of(percent, 3010) == 452
    assert totals(5500, [percent], "Standard Shipping", settings) == (5500, 825, 500, 327)
    assert totals(6000, [percent], "Standard Shipping", settings).shipping == 0
    assert totals(6000, [fixed], "Express Shipping", settings).total == 1500
    assert totals(6000, [], "", settings).total == 6420

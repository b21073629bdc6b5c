"""Large worlds: the shop has ten times as many products, and the other sites are almost as in the ordinary world."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from agentgym_envs.webarena.evaluators.state import differences
from agentgym_envs.webarena.sites.encyclopedia.lore import lore
from agentgym_envs.webarena.sites.shop.listing import SORTS
from agentgym_envs.webarena.sites.shop.scale import LARGE
from agentgym_envs.webarena.sites.world import world
from tests.webarena.embedded import Visitor, printed_by_two_processes, visit

pytestmark = pytest.mark.slow

PRODUCTS = sum(batch.products for batch in LARGE.batches)
FEWEST = sum(batch.fewest for batch in LARGE.batches)
_BIGGEST = "SELECT c.slug, COUNT(*) FROM shop_products p JOIN shop_categories c ON c.id = p.category WHERE p.enabled "
_BIGGEST += "GROUP BY c.id ORDER BY 2 DESC LIMIT 1"


@pytest.fixture
def shop() -> Iterator[Visitor]:
    yield from visit(Visitor("shop", large=True))


@pytest.fixture
def admin() -> Iterator[Visitor]:
    yield from visit(Visitor("admin", large=True))


def test_large_worlds_are_reproducible() -> None:
    code = "from agentgym_envs.webarena.sites import world; print(world.world(1, True).digest)"
    assert printed_by_two_processes(code) == world(1, large=True).digest != world(1).digest


@pytest.mark.parametrize("seed", [1, 21])
def test_other_sites_are_those_of_the_ordinary_world(seed: int) -> None:
    changes = differences(world(seed).database, world(seed, large=True).database)
    changed = {change.table for change in changes}
    assert {table.partition("_")[0] for table in changed} == {"shop", "forum"}  # people write about products
    assert not changed & {"forum_users", "forum_boards", "forum_subscriptions", "forum_moderators"}


@pytest.mark.parametrize("seed", [1, 21])
def test_the_shop_keeps_its_settings_brands_and_account(seed: int) -> None:
    ordinary, large = world(seed), world(seed, large=True)
    for query in (
        "SELECT DISTINCT brand FROM shop_products ORDER BY 1",
        "SELECT name, slug FROM shop_categories ORDER BY id",
        "SELECT name, coupon, amount FROM shop_rules ORDER BY id",
        "SELECT first, last, email FROM shop_customers WHERE id = 1",
    ):
        assert [tuple(row) for row in ordinary.rows(query)] == [tuple(row) for row in large.rows(query)]
    settings = {row["name"]: row["value"] for row in ordinary.rows("SELECT name, value FROM shop_settings")}
    assert {**settings, **LARGE.settings} == dict(map(tuple, large.rows("SELECT name, value FROM shop_settings")))


@pytest.mark.parametrize("seed", [1, 21])
def test_a_large_catalogue_contains_the_ordinary_one(seed: int) -> None:
    query = "SELECT name, brand, price, special_price FROM shop_products"
    ordinary, large = ({tuple(row) for row in world(seed, size).rows(query)} for size in (False, True))
    assert ordinary < large


@pytest.mark.parametrize("seed", [1, 21])
def test_the_shop_sells_the_goods_of_the_makers_in_the_encyclopedia(seed: int) -> None:
    large = world(seed, large=True)
    for maker in lore(large).makers:
        query = (
            "SELECT DISTINCT c.name FROM shop_products p JOIN shop_categories c ON c.id = p.category WHERE brand = ?"
        )
        assert {row["name"] for row in large.rows(query, maker.brand)} >= set(maker.goods), maker


@pytest.mark.parametrize("seed", [1, 21])
def test_a_large_catalogue_is_large_and_unambiguous(seed: int) -> None:
    large = world(seed, large=True)
    assert large.value("SELECT COUNT(DISTINCT name) FROM shop_products") == PRODUCTS
    assert large.value("SELECT COUNT(*) FROM shop_orders") == LARGE.orders
    assert large.value("SELECT COUNT(*) FROM shop_reviews") == LARGE.reviews
    assert large.value("SELECT COUNT(DISTINCT email) FROM shop_customers") == LARGE.customers
    assert large.value("SELECT COUNT(DISTINCT first || last) FROM shop_customers") == LARGE.customers
    sizes = [row["n"] for row in large.rows("SELECT COUNT(*) AS n FROM shop_products GROUP BY category")]
    assert len(sizes) == 48 and min(sizes) >= FEWEST
    assert not large.rows(
        "SELECT 1 FROM shop_products GROUP BY category, COALESCE(special_price, price) HAVING COUNT(*) > 1"
    )
    assert not large.rows("SELECT 1 FROM shop_products WHERE special_price >= price OR cost >= price OR cost <= 0")
    assert large.value("SELECT COUNT(*) FROM shop_orders WHERE customer = 1") == 25


def test_a_category_shows_36_products_or_a_chosen_number(shop: Visitor) -> None:
    slug, count = shop.world.rows(_BIGGEST)[0]
    page = shop.get(f"/category/{slug}")
    assert page.count('class="card"') == 36 and f"Items 1-36 of {count}" in page
    assert '<option value="36" selected>' in page and page.count('rel="next"') == 2
    few = shop.get(f"/category/{slug}?sort=name&limit=12&page=2")
    assert few.count('class="card"') == 12 and f"Items 13-24 of {count}" in few
    assert '<input type="hidden" name="sort" value="name">' in few and "limit=12&page=3" in few
    assert shop.get(f"/category/{slug}?limit=1000").count('class="card"') == 36


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("sort", SORTS)
def test_every_order_of_a_list_is_that_of_the_database(large: bool, sort: str) -> None:
    made = Visitor("shop", large=large)
    slug, _ = made.world.rows(_BIGGEST)[0]
    query = f"""SELECT p.slug, COALESCE(p.special_price, p.price) AS final, COUNT(r.id) AS reviews,
        COALESCE(ROUND(AVG(r.rating), 1), 0) AS rating FROM shop_products p
        JOIN shop_categories c ON c.id = p.category AND c.slug = ?
        LEFT JOIN shop_reviews r ON r.product = p.id AND r.status = 'approved'
        WHERE p.enabled GROUP BY p.id ORDER BY {SORTS[sort][1]}, p.id LIMIT 12"""
    shown = re.findall(r'<h2><a href="/product/([^"]+)"', made.get(f"/category/{slug}?sort={sort}&limit=12"))
    assert shown == [row["slug"] for row in made.world.rows(query, slug)]


def test_filters_count_the_products_that_they_leave(shop: Visitor) -> None:
    slug, _ = shop.world.rows(_BIGGEST)[0]
    page = shop.get(f"/category/{slug}")
    choices = re.findall(r'<li><a href="(\?[^"]+)">[^<]+</a> <span class="count">(\d+) items?</span>', page)
    assert len(choices) > 20
    for query, count in choices[::4]:
        shown = re.findall(r"<p>(?:Items 1-36 of )?(\d+)(?: Items?)?</p>", shop.get(f"/category/{slug}{query}"))
        assert shown == [count], query


def test_grids_offer_20_to_200_rows(admin: Visitor) -> None:
    page = admin.get("/products")
    assert page.count('name="id"') == 20 and "4,000 records found" in page and page.count('rel="next"') == 2
    assert admin.get("/products?limit=200").count('name="id"') == 200
    filtered = admin.get("/orders?limit=50&status=complete")
    assert '<input type="hidden" name="limit" value="50">' in filtered and "limit=50&status=complete&page=2" in filtered


def test_an_ordinary_shop_does_not_offer_page_sizes() -> None:
    assert "Per page" not in Visitor("shop").get("/category/lamps") + Visitor("admin").get("/products?limit=200")

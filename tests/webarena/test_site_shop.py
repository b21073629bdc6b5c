"""The shop: pages show the content of the tables, and forms change only what they should."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest

from agentgym_envs.webarena.evaluators.state import Change, differences
from agentgym_envs.webarena.sites.world import World
from tests.webarena.embedded import client, signed_out, visit

HOSTILE = "<script>alert(1)</script>\"'{{ 7*7 }}%_\\;--"
PAGES = (
    "/",
    "/category/kitchen",
    "/category/lamps",
    "/category/boots?Colour=Brown&price=100-200&sort=price-asc&brand=x&page=2",
    "/search",
    "/search?q=lamp",
    "/search?q=%25_%5C%27%22",
    "/advanced-search",
    "/advanced-search/results?name=lamp&price_to=50",
    "/sale?page=3",
    "/new",
    "/page/returns",
    "/cart",
    "/checkout",
    "/account",
    "/account/orders",
    "/account/orders?status=canceled",
    "/account/edit",
    "/account/newsletter",
    "/account/reviews",
    "/account/addresses",
    "/account/addresses/new",
    "/account/addresses/1",
    "/wishlist",
    "/compare",
    "/contact",
    "/sign-in",
)


class Shop:
    """A client of the shop in a separate episode."""

    def __init__(self) -> None:
        self.http, self.episode = client("shop")
        self.world: World = self.episode.world

    def get(self, path: str, **options: Any) -> str:
        response = self.http.get(path, **options)
        assert response.status_code == 200, (path, response.status_code, self.episode.failures)
        return html.unescape(response.text)

    def post(self, path: str, status: Any = 303, headers: Any = None, **fields: Any) -> Any:
        response = self.http.post(path, data=fields, headers=headers)
        assert response.status_code == status, (path, response.status_code, self.episode.failures)
        return response

    def messages(self, path: str = "/contact") -> str:
        """Return the messages on the next page."""
        return " ".join(re.findall(r'class="message \w+">([^<]*)<', self.get(path)))

    def changes(self) -> list[Change]:
        free = ("web_messages", "web_logins")
        return differences(self.world.database, self.episode.database, free)

    def value(self, query: str, *arguments: Any) -> Any:
        row = self.episode.database.execute(query, arguments).fetchone()
        return row[0] if row else None

    def emptied(self) -> list[tuple[str, str]]:
        """Return the changes when the initial cart is emptied."""
        return [("shop_cart_lines", "removed") for _ in self.world.rows("SELECT 1 FROM shop_cart_lines")]

    def coupons(self, holds: str) -> list[str]:
        """Return the currently valid coupons for all customers that satisfy a condition."""
        dates = "starts <= '2026-03-16' AND COALESCE(ends, '9') >= '2026-03-16' AND coupon <> ''"
        query = f"SELECT coupon FROM shop_rules WHERE {dates} AND customer_group = '' AND {holds} ORDER BY id"
        return [row[0] for row in self.world.rows(query)]

    def plain(self, more: str = "", nth: int = 0) -> Any:
        """Return a product in stock without options."""
        query = (
            "SELECT * FROM shop_products p WHERE enabled = 1 AND stock > 5 "
            f"AND id NOT IN (SELECT product FROM shop_options) {more} ORDER BY id LIMIT 1 OFFSET ?"
        )
        return self.episode.database.execute(query, (nth,)).fetchone()


@pytest.fixture
def shop() -> Iterator[Shop]:
    yield from visit(Shop())


def only(changes: list[Change], *expected: tuple[str, str]) -> None:
    """Assert that these are all changes: tables with "added", "removed" or the names of changed columns."""

    def kind(change: Change) -> str:
        if change.before is None:
            return "added"
        return "removed" if change.after is None else ",".join(sorted(change.columns))

    assert sorted((change.table, kind(change)) for change in changes) == sorted(expected), changes


# pages


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("path", PAGES)
def test_pages_respond(shop: Shop, path: str) -> None:
    text = shop.get(path)
    assert text.count("<h1") == 1 and "<title>" in text
    if shop.http.get(path, headers=signed_out(shop.episode)).status_code == 303:
        assert path.startswith(("/cart", "/checkout", "/account", "/wishlist", "/compare"))


def test_missing_pages_are_404(shop: Shop) -> None:
    other = shop.value("SELECT number FROM shop_orders WHERE customer <> 1")
    hidden = shop.value("SELECT slug FROM shop_products WHERE enabled = 0")
    for path in (
        "/product/none",
        f"/product/{hidden}",
        "/category/none",
        "/page/careers",
        f"/account/orders/{other}",
        "/account/addresses/99",
        f"/checkout/done/{other}",
        "/account/addresses/99999999999999999999",
    ):
        assert shop.http.get(path).status_code == 404, path


def test_enabled_text_pages_are_listed_by_title(shop: Shop) -> None:
    shop.episode.database.execute("UPDATE shop_pages SET title = ? WHERE url_key = 'privacy'", (HOSTILE,))
    shop.episode.database.execute("UPDATE shop_pages SET enabled = 0 WHERE url_key IN ('shipping', 'warranty')")
    text = shop.get("/page/payment")
    links = dict(re.findall(r'href="/page/([^"]*)"[^>]*>(.*?)</a>', text))
    assert links["about-us"] == "About us" and links["privacy"] == HOSTILE and links["our-store"] == "Our store"
    assert not {"shipping", "warranty", "careers", "no-route"} & set(links)
    for key in links:
        shop.get(f"/page/{key}")


def names_on(text: str) -> list[str]:
    return re.findall(r'<h2><a href="/product/[^"]*">([^<]*)<', text)


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("position", "p.id"),
        ("name", "p.name COLLATE NOCASE"),
        ("price-asc", "COALESCE(special_price, price)"),
        ("price-desc", "COALESCE(special_price, price) DESC"),
        ("newest", "p.created DESC"),
    ],
)
def test_lists_are_sorted_and_paginated(shop: Shop, sort: str, order: str) -> None:
    rows = shop.world.rows(
        "SELECT p.name FROM shop_products p JOIN shop_categories c ON c.id = p.category WHERE p.enabled = 1 AND "
        f"c.parent = (SELECT id FROM shop_categories WHERE slug = 'furniture') ORDER BY {order}, p.id"
    )
    seen = []
    for page in range(1, 2 + len(rows) // 12):
        seen += names_on(shop.get(f"/category/furniture?sort={sort}&page={page}"))
    assert seen == [row[0] for row in rows]


def test_lists_are_filtered(shop: Shop) -> None:
    boots = "p.category = (SELECT id FROM shop_categories WHERE slug = 'boots') AND enabled = 1"
    black = (
        f"SELECT COUNT(*) FROM shop_products p JOIN shop_options o ON o.product = p.id AND o.value = ? WHERE {boots}"
    )
    assert len(names_on(shop.get("/category/boots?Colour=Black"))) == shop.value(black, "Black")
    brand = shop.value(f"SELECT brand FROM shop_products p WHERE {boots}")
    text = shop.get(f"/category/boots?brand={brand}")
    assert len(names_on(text)) == shop.value(f"SELECT COUNT(*) FROM shop_products p WHERE {boots} AND brand = ?", brand)
    assert f"Brand: {brand}" in text
    cheap = "COALESCE(special_price, price) < 2500 AND COALESCE(special_price, price) >= 1000"
    count = shop.value(f"SELECT COUNT(*) FROM shop_products p WHERE special_price > 0 AND {cheap} AND enabled = 1")
    assert f"of {count}" in shop.get("/sale?price=10-25")


def test_search_requires_every_word(shop: Shop) -> None:
    name = shop.plain()["name"]
    assert name in names_on(shop.get("/search?q=" + " ".join(reversed(name.replace(",", "").split()))))
    assert name in names_on(shop.get("/search?q=" + shop.plain()["sku"]))
    assert "Your search returned no results" in shop.get("/search?q=zzz")
    assert "Your search returned no results" in shop.get("/search?q=%25")
    names = names_on(shop.get("/advanced-search/results?name=chair&price_from=100&price_to=200.50"))
    wanted = "instr(lower(name), 'chair') AND COALESCE(special_price, price) BETWEEN 10000 AND 20050"
    assert len(names) == shop.value(f"SELECT COUNT(*) FROM shop_products WHERE {wanted} AND enabled = 1")
    assert shop.http.get("/advanced-search/results?price_from=cheap").status_code == 422
    assert shop.http.get("/advanced-search/results").status_code == 422


def test_reviews_are_filtered_by_rating_and_paginated(shop: Shop) -> None:
    number, count = shop.world.rows(
        "SELECT product, COUNT(*) FROM shop_reviews r JOIN shop_products p ON p.id = r.product "
        "WHERE status = 'approved' AND enabled = 1 GROUP BY product ORDER BY 2 DESC"
    )[0]
    slug = shop.value("SELECT slug FROM shop_products WHERE id = ?", number)
    stars = "SELECT COUNT(*) FROM shop_reviews WHERE product = ? AND status = 'approved' AND rating = ?"
    assert shop.get(f"/product/{slug}/reviews?stars=5").count("<article") == min(shop.value(stars, number, 5), 10)
    rest = shop.get(f"/product/{slug}/reviews?page=2&order=lowest")
    assert rest.count("<article") == min(count - 10, 10)
    assert f"{count} Reviews" in shop.get(f"/product/{slug}")


# forms


@pytest.mark.slow
def test_products_are_added_to_the_cart_and_removed(shop: Shop) -> None:
    product = shop.plain()
    shop.post("/cart/add", product=product["id"], quantity="3")
    only(shop.changes(), ("shop_cart_lines", "added"))
    assert product["name"] in shop.messages("/cart")
    shop.post("/cart/add", product=product["id"])
    line = shop.value("SELECT id FROM shop_cart_lines WHERE product = ? AND quantity = 4", product["id"])
    shop.post("/cart/update", **{f"quantity {line}": "2"})
    assert shop.value("SELECT quantity FROM shop_cart_lines WHERE id = ?", line) == 2
    for wrong in ("-1", "1.5", "many", "101", str(product["stock"] + 1)):
        shop.post("/cart/update", **{f"quantity {line}": wrong})
    assert shop.value("SELECT quantity FROM shop_cart_lines WHERE id = ?", line) == 2
    shop.post("/cart/remove", line=line)
    assert shop.changes() == []
    shop.post("/cart/clear")
    only(shop.changes(), *shop.emptied())


def test_options_must_be_chosen(shop: Shop) -> None:
    row = shop.world.rows(
        "SELECT p.id, p.slug FROM shop_products p JOIN shop_options o ON o.product = p.id WHERE p.stock > 5 "
        "AND p.enabled = 1 AND p.id NOT IN (SELECT product FROM shop_cart_lines) GROUP BY p.id HAVING MAX(extra) > 0"
    )[0]
    options = shop.world.rows("SELECT * FROM shop_options WHERE product = ? ORDER BY name, extra DESC", row["id"])
    chosen = {f"option {option['name']}": option["value"] for option in reversed(options)}
    assert "Choose an Option..." in shop.get(f"/product/{row['slug']}")
    shop.post("/cart/add", product=row["id"])
    shop.post("/cart/add", product=row["id"], **dict.fromkeys(chosen, "none"))
    assert shop.changes() == [] and "Please choose an option" in shop.messages()
    shop.post("/cart/add", product=row["id"], **chosen)
    (change,) = shop.changes()
    for option, value in chosen.items():
        assert f"{option.removeprefix('option ')}: {value}" in (change.after or {})["options"]
    extra = sum(max(o["extra"] for o in options if o["name"] == name) for name in {o["name"] for o in options})
    price = shop.value("SELECT COALESCE(special_price, price) FROM shop_products WHERE id = ?", row["id"])
    assert f"${(price + extra) / 100:,.2f}" in shop.get("/cart")


def test_products_out_of_stock_cannot_be_ordered(shop: Shop) -> None:
    out = shop.world.rows("SELECT * FROM shop_products WHERE stock = 0 AND enabled = 1")[0]
    few = shop.plain("AND stock < 50")
    for product, quantity in ((out["id"], 1), (few["id"], few["stock"] + 1), (few["id"], 0), (few["id"], "x")):
        shop.post("/cart/add", product=product, quantity=quantity)
    assert shop.http.post("/cart/add", data={"product": 99999}).status_code == 404
    assert shop.changes() == []
    assert "Out of stock" in shop.get(f"/product/{out['slug']}")


def test_the_lines_of_a_product_share_its_stock(shop: Shop) -> None:
    query = (
        "SELECT product, name FROM shop_options WHERE product IN (SELECT id FROM shop_products WHERE enabled = 1 "
        "AND stock > 5) GROUP BY product HAVING COUNT(DISTINCT name) = 1 AND COUNT(*) > 1"
    )
    product, name = shop.world.rows(query)[0]
    shop.post("/cart/clear")
    for option in shop.world.rows("SELECT value FROM shop_options WHERE product = ? LIMIT 2", product):
        shop.post("/cart/add", product=product, quantity="2", **{f"option {name}": option["value"]})
    chosen = {"address": 1, "shipping": "Store Pickup", "payment": "Bank Transfer"}
    shop.episode.database.execute("UPDATE shop_products SET stock = 3")
    shop.post("/checkout/place", **chosen)
    assert "Only 3 of this product can be ordered" in shop.messages("/cart")
    shop.episode.database.execute("UPDATE shop_products SET stock = 4")
    shop.post("/checkout/place", **chosen)
    assert shop.value("SELECT COUNT(*) FROM shop_cart_lines WHERE product = ?", product) == 0


def test_coupons_apply_under_their_conditions(shop: Shop) -> None:
    good, *others = shop.coupons("active AND minimum <= 8000")
    assert len(others) == 4, "the owner's cart reaches these"
    over = shop.value("SELECT coupon FROM shop_rules WHERE active AND ends < '2026-03-16'")
    early = shop.value("SELECT coupon FROM shop_rules WHERE active AND starts > '2026-03-16'")
    dealers = shop.value("SELECT coupon FROM shop_rules WHERE active AND customer_group <> ''")
    for code in ("NONE", "%", over, early, dealers, *shop.coupons("NOT active")):
        shop.post("/cart/coupon", coupon=code)
        assert "is not valid" in shop.messages("/cart")
    shop.post("/cart/coupon", coupon=shop.coupons("active AND minimum > 8000")[0])
    assert "does not apply to this cart" in shop.messages("/cart") and not shop.changes()
    shop.post("/cart/coupon", coupon=good.lower())
    assert shop.value("SELECT coupon FROM shop_carts WHERE customer = 1") == good
    assert "Discount</th>" in shop.get("/cart")
    shop.post("/cart/coupon", coupon="")
    assert "Discount</th>" not in shop.get("/cart")


def test_an_order_writes_all_its_tables(shop: Shop) -> None:
    shop.post("/cart/clear")
    product = shop.plain("AND price > 8000")
    coupon = shop.coupons("active AND minimum <= 8000")[0]
    shop.post("/cart/add", product=product["id"], quantity="2")
    shop.post("/cart/coupon", coupon=coupon)
    assert "Shipping Address" in shop.get("/checkout")
    address = shop.value("SELECT MAX(id) FROM shop_addresses WHERE customer = 1")
    chosen = {"address": address, "shipping": "Express Shipping"}
    assert shop.http.get("/checkout/payment", params={**chosen, "address": 99}).status_code == 303
    text = shop.get("/checkout/payment", params=chosen)
    response = shop.post("/checkout/place", **chosen, payment="Bank Transfer")
    number = response.headers["location"].rpartition("/")[2]
    order = shop.episode.database.execute("SELECT * FROM shop_orders WHERE number = ?", (number,)).fetchone()
    assert order["discount"] > 0 and order["coupon"] == coupon and order["status"] == "pending"
    assert order["total"] == order["subtotal"] - order["discount"] + order["shipping"] + order["tax"]
    assert f"${order['total'] / 100:,.2f}" in text
    only(
        shop.changes(),
        ("shop_orders", "added"),
        ("shop_order_lines", "added"),
        ("shop_order_addresses", "added"),
        ("shop_order_addresses", "added"),
        ("shop_products", "stock"),
        ("shop_rules", "used"),
        *shop.emptied(),
    )
    assert shop.value("SELECT stock FROM shop_products WHERE id = ?", product["id"]) == product["stock"] - 2
    street = "SELECT street FROM shop_order_addresses WHERE order_id = ? AND kind = 'shipping'"
    assert shop.value(street, order["id"]) == shop.value("SELECT street FROM shop_addresses WHERE id = ?", address)
    assert number in shop.get(f"/checkout/done/{number}") and number in shop.get("/account/orders")
    assert shop.http.get("/checkout").headers["location"] == "/cart"
    shop.post(f"/account/orders/{number}/cancel")
    assert shop.value("SELECT stock FROM shop_products WHERE id = ?", product["id"]) == product["stock"]


def test_an_incomplete_order_is_refused(shop: Shop) -> None:
    good = {"address": 1, "shipping": "Store Pickup", "payment": "Bank Transfer"}
    foreign = shop.value("SELECT MAX(id) FROM shop_addresses")
    for wrong in ({"address": foreign}, {"shipping": "Rocket"}, {"payment": "Beads"}):
        shop.post("/checkout/place", **{**good, **wrong})
    assert shop.changes() == []
    shop.episode.database.execute("UPDATE shop_products SET stock = 0")
    before = shop.value("SELECT COUNT(*) FROM shop_orders")
    shop.post("/checkout/place", **good)
    assert shop.value("SELECT COUNT(*) FROM shop_orders") == before
    assert "out of stock" in shop.messages("/cart")


@pytest.mark.slow
def test_pending_orders_can_be_canceled_and_any_reordered(shop: Shop) -> None:
    pending = shop.value("SELECT number FROM shop_orders WHERE customer = 1 AND status = 'pending'")
    done = shop.value("SELECT number FROM shop_orders WHERE customer = 1 AND status = 'complete' ORDER BY id DESC")
    foreign = shop.value("SELECT number FROM shop_orders WHERE customer <> 1 AND status = 'pending'")
    shop.post(f"/account/orders/{done}/cancel", 403)
    shop.post(f"/account/orders/{foreign}/cancel", 404)
    shop.post(f"/account/orders/{foreign}/reorder", 404)
    assert shop.changes() == []
    assert "Cancel Order" in shop.get(f"/account/orders/{pending}")
    assert "Cancel Order" not in shop.get(f"/account/orders/{done}")
    shop.post(f"/account/orders/{pending}/cancel")
    tables = {change.table for change in shop.changes()}
    assert tables == {"shop_orders", "shop_products"}
    shop.post(f"/account/orders/{done}/reorder")
    assert shop.get("/cart").count('name="quantity ') >= 2


def test_a_new_review_is_pending(shop: Shop) -> None:
    product = shop.plain()
    path = f"/product/{product['slug']}/write-review"
    fields = {"nickname": "Ann", "rating": "4", "title": HOSTILE, "text": HOSTILE}
    for missing in fields:
        shop.post(path, 422, **{**fields, missing: ""})
    shop.post(path, **fields)
    (change,) = shop.changes()
    wanted = {"product": product["id"], "customer": 1, "rating": 4, "title": HOSTILE, "status": "pending"}
    assert change.table == "shop_reviews" and wanted.items() <= (change.after or {}).items()
    assert "{{ 7*7 }}" not in shop.get(f"/product/{product['slug']}")
    shop.episode.database.execute("UPDATE shop_reviews SET status = 'approved', moment = '2026-03-16 11:00:00'")
    raw = shop.http.get(f"/product/{product['slug']}").text
    assert "<script>alert" not in raw and "&lt;script&gt;alert(1)" in raw and "{{ 7*7 }}" in raw


@pytest.mark.slow
def test_addresses_are_added_and_edited(shop: Shop) -> None:
    fields = {name: f"{name} {HOSTILE}" for name in ("name", "street", "town", "region", "zip", "phone")}
    shop.post("/account/addresses/new", 422, **{**fields, "zip": " "})
    shop.post("/account/addresses/new", **fields)
    only(shop.changes(), ("shop_addresses", "added"))
    new = shop.value("SELECT MAX(id) FROM shop_addresses")
    shop.post(f"/account/addresses/{new}", **{**fields, "street": "1 Mill Street"}, default="1")
    assert shop.value("SELECT address FROM shop_customers WHERE id = 1") == new
    shop.post(f"/account/addresses/{new}/delete", 403)
    shop.post("/account/addresses/1/default")
    shop.post(f"/account/addresses/{new}/delete")
    assert shop.changes() == []
    foreign = shop.value("SELECT MAX(id) FROM shop_addresses")
    for path in ("", "/default", "/delete"):
        shop.post(f"/account/addresses/{foreign}{path}", 404, **fields)


@pytest.mark.slow
def test_account_information_and_newsletter_are_saved(shop: Shop) -> None:
    taken = shop.value("SELECT email FROM shop_customers WHERE id = 2")
    for email in ("nobody", taken.upper(), ""):
        shop.post("/account/edit", 422, first="Ann", last="Lee", email=email)
    shop.post("/account/edit", 422, first="", last="Lee", email="ann@mail.test")
    assert shop.changes() == []
    shop.post("/account/newsletter", subscribed="1")
    only(shop.changes(), ("shop_subscribers", "added"))
    shop.post("/account/newsletter")
    assert "not subscribed" in shop.get("/account")
    shop.post("/newsletter", email="new@mail.test")
    shop.post("/newsletter", email="new@mail.test")
    shop.post("/newsletter", email="not an address")
    assert shop.value("SELECT COUNT(*) FROM shop_subscribers WHERE email = 'new@mail.test'") == 1
    shop.post("/account/edit", first="Ann", last="Lee", email="ann@mail.test")
    assert "Welcome, Ann Lee!" in shop.get("/")


@pytest.mark.slow
def test_products_are_added_to_wish_list_and_comparison(shop: Shop) -> None:
    products = [shop.plain("AND id NOT IN (SELECT product FROM shop_wishes)", nth) for nth in range(4)]
    shop.post("/wishlist/add", product=products[0]["id"])
    shop.post("/wishlist/add", product=products[0]["id"])
    only(shop.changes(), ("shop_wishes", "added"))
    wish = shop.value("SELECT MAX(id) FROM shop_wishes")
    shop.post(f"/wishlist/{wish}/comment", comment=HOSTILE)
    assert HOSTILE in shop.get("/wishlist")
    shop.post(f"/wishlist/{wish}/cart")
    only(shop.changes(), ("shop_cart_lines", "added"))
    foreign = shop.value("SELECT id FROM shop_wishes WHERE customer <> 1")
    shop.post(f"/wishlist/{foreign}/remove")
    shop.post(f"/wishlist/{foreign}/comment", comment="mine")
    shop.post(f"/wishlist/{foreign}/cart", 404)
    only(shop.changes(), ("shop_cart_lines", "added"))
    for product in products:
        shop.post("/compare/add", product=product["id"])
    assert shop.value("SELECT COUNT(*) FROM shop_compares WHERE customer = 1") == 4
    assert products[0]["name"] in shop.get("/compare")
    shop.post("/compare/remove", product=products[0]["id"])
    shop.post("/compare/remove")
    assert "You have no items to compare" in shop.get("/compare")


def test_the_contact_form_saves_an_enquiry(shop: Shop) -> None:
    fields = {"name": "Ann", "email": "ann@mail.test", "subject": "Complaint", "text": HOSTILE, "order_number": "7"}
    for missing in ("name", "email", "subject", "text"):
        shop.post("/contact", 422, **{**fields, missing: ""})
    shop.post("/contact", **fields)
    only(shop.changes(), ("shop_enquiries", "added"))


def test_account_pages_require_login(shop: Shop) -> None:
    for path in ("/cart/add", "/wishlist/add", "/compare/add", "/cart/coupon", "/account/edit", "/checkout/place"):
        response = shop.post(path, headers=signed_out(shop.episode), product=1)
        assert response.headers["location"].startswith("/sign-in")
    assert shop.changes() == []
    user = shop.value("SELECT email FROM shop_customers WHERE id = 2").partition("@")[0]
    shop.post("/sign-in", user=user.upper(), password="opensesame")
    assert shop.value("SELECT account FROM web_logins") == 2


@pytest.mark.slow
def test_no_form_fails_on_hostile_input(shop: Shop) -> None:
    forms = [
        (
            route.path.replace("{slug}", shop.plain()["slug"]).replace("{number:int}", "1").replace("{number}", "1"),
            route,
        )
        for route in _routes()
    ]
    names = (
        "product quantity line coupon address shipping payment nickname rating title text name street town zip phone"
    )
    for value in (HOSTILE, "", "-1", "99999999999999999999999", "1e9", "\x00", "x" * 20_000):
        for path, _ in forms:
            status = shop.http.post(
                path, data=dict.fromkeys([*names.split(), "email", "first", "last"], value)
            ).status_code
            assert status < 500, (path, value)


def _routes() -> list[Any]:
    from agentgym_envs.webarena.sites.shop.site import SITE

    return [route for route in SITE.routes if route.method == "POST"]

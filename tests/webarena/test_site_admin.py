"""The administration: pages that tell what the tables hold, and forms that change just what they say."""

from __future__ import annotations

import datetime
import html
import re
from collections.abc import Iterator
from typing import Any

import pytest

from agentgym_envs.webarena.evaluators.state import Change, differences
from agentgym_envs.webarena.sites.admin.days import day_after, first_of_month, parse_day, told
from agentgym_envs.webarena.sites.admin.forms import dollars, slug_of
from agentgym_envs.webarena.sites.admin.menu import MENU, place_of
from agentgym_envs.webarena.sites.clock import day, minute
from agentgym_envs.webarena.sites.episodes import episodes
from agentgym_envs.webarena.sites.kit.rendering import money
from agentgym_envs.webarena.sites.world import World
from tests.webarena.embedded import client

SIGNED_OUT = {"cookie": "session=out"}
HOSTILE = "<script>alert(1)</script>\"'{{ 7*7 }}%_\\;--"
FREE = ("web_messages", "web_logins")
MENU_PATHS = [entry.path for section in MENU for entry in section.entries]
OPEN = "status = 'pending' AND NOT EXISTS (SELECT 1 FROM shop_invoices WHERE order_id = shop_orders.id)"
ADDRESS = {
    "name": "Ada Holm",
    "street": "1 Mill Road",
    "town": "Redbrook",
    "region": "Glenmarch",
    "zip": "79001",
    "phone": "045 555 1000",
}


class Office:
    """The administration in an episode of its own."""

    def __init__(self) -> None:
        self.http, self.episode = client("admin")
        self.world: World = self.episode.world

    def get(self, path: str, status: int = 200, **options: Any) -> str:
        answer = self.http.get(path, **options)
        assert answer.status_code == status, (path, answer.status_code, self.episode.failures)
        return html.unescape(answer.text)

    def post(self, path: str, status: int = 303, headers: Any = None, **fields: Any) -> Any:
        answer = self.http.post(path, data=fields, headers=headers)
        assert answer.status_code == status, (path, answer.status_code, self.episode.failures)
        return answer

    def changes(self) -> list[Change]:
        return differences(self.world.database, self.episode.database, FREE)

    def changed(self) -> list[tuple[Any, ...]]:
        """(table, id, columns and what they hold now) of each row that differs."""
        return [(c.table, c.key, {name: (c.after or {})[name] for name in c.columns}) for c in self.changes()]

    def one(self, query: str, *arguments: Any) -> Any:
        """A row of the world as it was."""
        return self.world.rows(query, *arguments)[0]


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office()
    yield made
    assert made.episode.failures == []
    episodes().close(made.episode)


def cells(page: str) -> list[list[str]]:
    """What the rows of the grid say."""
    body = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert body is not None, page
    rows = re.findall(r"<tr>(.*?)</tr>", body[1], re.DOTALL)
    return [[_plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)] for row in rows]


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text)).strip()


def found(page: str) -> int:
    match = re.search(r"([\d,]+) records? found", page)
    assert match is not None, page
    return int(match[1].replace(",", ""))


@pytest.mark.parametrize("path", ["/", *MENU_PATHS])
def test_pages_of_the_menu_answer_and_need_an_account(office: Office, path: str) -> None:
    page = office.get(path)
    assert page.count("<h1>") == 1 and "Traceback" not in page
    answer = office.http.get(path, headers=SIGNED_OUT)
    assert answer.status_code == 303 and answer.headers["location"].startswith("/sign-in?after=")
    assert office.changes() == []


def test_signing_in(office: Office) -> None:
    assert office.http.get("/sign-in", headers=SIGNED_OUT).status_code == 200
    office.post("/sign-in", 401, user="anika", password="opensesame")
    office.post("/sign-in", user="Admin", password="opensesame")
    assert "Dashboard" in office.get("/")
    office.post("/orders/1/comments", 303, headers=SIGNED_OUT, status="complete", comment="No")
    office.http.cookies.clear()
    assert office.changes() == []


@pytest.mark.parametrize(
    "path",
    "/orders/0 /orders/99999999999999999999 /orders/1/other-address /invoices/0 /shipments/0 /credit-memos/0 /products/0 "
    "/categories/0 /customers/0 /customers/1/addresses/0 /customers/2/addresses/1 /reviews/0 /rules/0 /pages/0 "
    "/enquiries/0 /nowhere".split(),
)
def test_what_does_not_exist_is_a_404(office: Office, path: str) -> None:
    assert "Page not found" in office.get(path, 404)


# Grids


def test_the_orders_grid_is_what_the_table_holds(office: Office) -> None:
    query = """SELECT o.number, o.moment, c.first || ' ' || c.last, o.total, o.status FROM shop_orders o
        JOIN shop_customers c ON c.id = o.customer ORDER BY o.moment DESC, o.id DESC"""
    rows = [(r[0], minute(r[1]), r[2], money(r[3]), r[4].capitalize()) for r in office.world.rows(query)]
    page = office.get("/orders")
    assert found(page) == len(rows) == 600
    told = [tuple(row[place] for place in (0, 1, 2, 4, 5)) for row in cells(page) + cells(office.get("/orders?page=2"))]
    assert told == rows[:30]
    last = [row[0] for row in cells(office.get("/orders?page=40"))]
    assert last == [row[0] for row in rows[-15:]]
    assert cells(office.get("/orders?page=999")) == cells(office.get("/orders?page=40"))


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("status=on+hold", "status = 'on hold'"),
        ("total_from=$100&total_to=250.50", "total BETWEEN 10000 AND 25050"),
        ("moment_from=2026-01-05&moment_to=1/20/2026", "date(moment) BETWEEN '2026-01-05' AND '2026-01-20'"),
        ("moment_to=Mar+1,+2025", "moment < '2025-03-02'"),
        ("number=12", "number LIKE '%12%'"),
        ("number=%25&status=nonsense", "0"),
        ("status=complete&total_from=300", "status = 'complete' AND total >= 30000"),
    ],
)
def test_filters_of_orders_find_what_sql_finds(office: Office, query: str, where: str) -> None:
    assert found(office.get(f"/orders?{query}")) == office.world.value(
        f"SELECT COUNT(*) FROM shop_orders WHERE {where}"
    )


def test_filters_are_told_kept_and_taken_away(office: Office) -> None:
    page = office.get("/orders?status=complete&customer=an&sort=total&dir=desc&moment_from=soon&page=2")
    assert "“soon” is not a day" in page
    assert re.findall(r'class="chip">(.*?) <a', page) == ["Customer: an", "Status: Complete"]
    assert '<a href="?status=complete&sort=total&dir=desc&moment_from=soon"' in page
    assert 'name="sort" value="total"' in page and 'name="dir" value="desc"' in page
    totals = [float(row[4][1:].replace(",", "")) for row in cells(page)]
    assert totals == sorted(totals, reverse=True)
    assert all("an" in row[2].lower() and row[5] == "Complete" for row in cells(page))


@pytest.mark.parametrize(
    ("path", "keys", "query"),
    [
        ("/products", "id", "SELECT id FROM shop_products"),
        ("/products", "price", "SELECT id FROM shop_products"),
        ("/customers", "joined", "SELECT id FROM shop_customers"),
        ("/reviews", "rating", "SELECT id FROM shop_reviews"),
        ("/search-terms", "uses", "SELECT id FROM shop_searches"),
        ("/subscribers", "email", "SELECT id FROM shop_subscribers"),
    ],
)
def test_grids_sort_both_ways(office: Office, path: str, keys: str, query: str) -> None:
    place = 1 if path in ("/products", "/reviews", "/subscribers") else 0
    for direction in ("asc", "desc"):
        rows = office.world.rows(f"{query} ORDER BY {keys} {direction}, id {direction} LIMIT 10")
        shown = cells(office.get(f"{path}?sort={keys}&dir={direction}"))
        assert [row[place] for row in shown[:10]] == [str(row[0]) for row in rows]


def test_filters_of_other_grids_find_what_sql_finds(office: Office) -> None:
    kettles = office.one("SELECT id, name FROM shop_categories WHERE parent IS NOT NULL ORDER BY id")
    for path, table, where in (
        (f"/products?category={kettles['id']}", "shop_products", f"category = {kettles['id']}"),
        ("/products?stock_to=5&status=Enabled", "shop_products", "stock <= 5 AND enabled"),
        ("/products?price_from=10&price_to=19.99", "shop_products", "price BETWEEN 1000 AND 1999"),
        ("/reviews?rating=2&status=pending", "shop_reviews", "rating = 2 AND status = 'pending'"),
        ("/reviews?text=gift", "shop_reviews", "title || ' ' || text LIKE '%gift%'"),
        ("/reviews/pending", "shop_reviews", "status = 'pending'"),
        ("/customers?customer_group=Wholesale", "shop_customers", "customer_group = 'Wholesale'"),
        ("/subscribers?type=Guest&status=subscribed", "shop_subscribers", "customer IS NULL AND status = 'subscribed'"),
        ("/rules?status=Active", "shop_rules", "active"),
        ("/reports/low-stock", "shop_products", "stock < 10 AND enabled"),
    ):
        assert found(office.get(path)) == office.world.value(f"SELECT COUNT(*) FROM {table} WHERE {where}"), path


def test_the_search_in_the_header_finds_orders_customers_and_products(office: Office) -> None:
    order = office.one("SELECT id, number FROM shop_orders ORDER BY id DESC")
    customer = office.one("SELECT id, first, last FROM shop_customers WHERE id = 7")
    product = office.one("SELECT id, name, sku FROM shop_products WHERE id = 9")
    assert f'<a href="/orders/{order["id"]}">#{order["number"]}</a>' in office.get(f"/search?q={order['number']}")
    assert f'href="/orders/{order["id"]}"' in office.get(f"/search?q=%23{int(order['number'])}")
    assert 'href="/customers/7"' in office.get(f"/search?q={customer['first']}+{customer['last'].upper()}")
    assert 'href="/products/9"' in office.get(f"/search?q={product['sku'].lower()}")
    assert "couldn't find any" in office.get("/search?q=no+such+thing") and "Type the number" in office.get("/search")


# Orders


def test_an_order_page_tells_the_order(office: Office) -> None:
    order = office.one("SELECT * FROM shop_orders WHERE status = 'complete' AND discount > 0 AND shipping > 0")
    page = office.get(f"/orders/{order['id']}")
    pairs = {_plain(a): _plain(b) for a, b in re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', page)}
    assert pairs["Grand Total"] == money(order["total"]) and pairs["Order Status"] == "Complete"
    assert pairs[f"Discount ({order['coupon']})"] == money(-order["discount"])
    for line in office.world.rows("SELECT * FROM shop_order_lines WHERE order_id = ?", order["id"]):
        row = next(row for row in cells(page.split("Items Ordered")[1]) if row[1] == line["sku"])
        assert row[0].startswith(line["name"]) and row[4] == money(line["price"] * line["quantity"])
    for track in office.world.rows(
        "SELECT t.* FROM shop_tracks t JOIN shop_shipments s ON s.id = t.shipment WHERE s.order_id = ?", order["id"]
    ):
        assert f"{track['carrier']} {track['number']}" in page


def test_a_pending_order_is_canceled_once_and_its_goods_are_back(office: Office) -> None:
    order = office.one(f"SELECT * FROM shop_orders WHERE {OPEN}")["id"]
    goods = office.world.rows(
        "SELECT l.product, p.stock + SUM(l.quantity) AS stock FROM shop_order_lines l JOIN shop_products p "
        "ON p.id = l.product WHERE l.order_id = ? GROUP BY l.product ORDER BY l.product",
        order,
    )
    office.post(f"/orders/{order}/cancel")
    assert "You canceled the order." in office.get(f"/orders/{order}")
    office.post(f"/orders/{order}/cancel")
    assert "You have not canceled the order" in office.get(f"/orders/{order}")
    stocks = [("shop_products", row["product"], {"stock": row["stock"]}) for row in goods]
    assert office.changed() == [("shop_orders", order, {"status": "canceled"}), *stocks]


def test_an_order_is_invoiced_shipped_and_refunded(office: Office) -> None:
    order = office.one(f"SELECT * FROM shop_orders WHERE {OPEN} AND shipping > 0")
    id, path = order["id"], f"/orders/{order['id']}"
    office.post(f"{path}/invoice", comment="", notify="1")
    assert office.episode.database.execute("SELECT status FROM shop_orders WHERE id = ?", (id,)).fetchone()[0] == (
        "processing"
    )
    office.post(f"{path}/ship", carrier="Meridian Parcel", track="AB 12", comment="On its way", visible="1")
    office.post(f"{path}/refund", shipping="0", fee="1.50", restock="")
    after = {c.table: dict(c.after or {}) for c in office.changes()}
    total = order["total"] - order["shipping"] - 150
    assert after["shop_orders"]["status"] == "closed"
    assert (after["shop_invoices"]["total"], after["shop_invoices"]["order_id"]) == (order["total"], id)
    assert (after["shop_tracks"]["carrier"], after["shop_tracks"]["number"]) == ("Meridian Parcel", "AB 12")
    assert (after["shop_refunds"]["total"], after["shop_refunds"]["shipping"]) == (total, 0)
    note = after["shop_order_comments"]
    assert (note["text"], note["status"], note["visible"], note["notified"]) == ("On its way", "complete", 1, 0)
    assert len(office.changes()) == 6
    numbers = office.world.rows("SELECT number FROM shop_invoices ORDER BY number DESC LIMIT 1")
    assert int(after["shop_invoices"]["number"]) == int(numbers[0][0]) + 1


def test_a_refund_may_put_the_goods_back(office: Office) -> None:
    order = office.one("SELECT * FROM shop_orders WHERE status = 'complete'")
    office.post(f"/orders/{order['id']}/refund", shipping=dollars(order["shipping"]), fee="0", restock="1")
    lines = office.world.rows("SELECT DISTINCT product FROM shop_order_lines WHERE order_id = ?", order["id"])
    assert {c.key for c in office.changes() if c.table == "shop_products"} == {line[0] for line in lines}


def test_what_a_status_does_not_allow_changes_nothing(office: Office) -> None:
    complete, canceled, held, closed = (
        office.world.value("SELECT id FROM shop_orders WHERE status = ?", status)
        for status in ("complete", "canceled", "on hold", "closed")
    )
    for id, steps in (
        (complete, "cancel hold unhold invoice ship"),
        (canceled, "cancel hold unhold invoice ship refund"),
        (held, "cancel hold invoice ship refund"),
        (closed, "cancel hold unhold invoice ship refund"),
    ):
        page = office.get(f"/orders/{id}")
        for step in steps.split():
            assert f"/orders/{id}/{step}" not in page
            office.post(f"/orders/{id}/{step}", carrier="Meridian Parcel", shipping="0", fee="0")
            if step in ("invoice", "ship", "refund"):
                assert "cannot be" in office.get(f"/orders/{id}/{step}", 403)
    assert office.changes() == []


def test_hold_and_unhold(office: Office) -> None:
    fresh = office.one(f"SELECT id FROM shop_orders WHERE {OPEN}")["id"]
    paid = office.one("SELECT id FROM shop_orders WHERE status = 'processing'")["id"]
    office.post(f"/orders/{fresh}/hold")
    office.post(f"/orders/{paid}/hold")
    assert {c[2]["status"] for c in office.changed()} == {"on hold"} and len(office.changed()) == 2
    office.post(f"/orders/{fresh}/unhold")
    office.post(f"/orders/{paid}/comments", status="processing", comment="It goes on")
    assert [c.table for c in office.changes()] == ["shop_order_comments"]


def test_a_comment_is_added_with_what_was_ticked(office: Office) -> None:
    order = office.one("SELECT id FROM shop_orders WHERE status = 'complete'")["id"]
    office.post(f"/orders/{order}/comments", status="complete", comment=HOSTILE, visible="1")
    (change,) = office.changes()
    after = dict(change.after or {})
    assert (after["order_id"], after["text"], after["visible"], after["notified"]) == (order, HOSTILE, 1, 0)
    assert after["moment"] == "2026-03-16 10:30:00"
    page = office.http.get(f"/orders/{order}").text
    assert "<script>alert" not in page and "{{ 7*7 }}" in page
    refused = office.post(f"/orders/{order}/comments", 422, status="pending", comment="")
    assert "Comment is a required field." in refused.text and "Status: please choose" in refused.text
    assert len(office.changes()) == 1


@pytest.mark.parametrize("kind", ["shipping", "billing"])
def test_an_address_of_an_order_is_edited(office: Office, kind: str) -> None:
    page = office.get("/orders/5")
    assert f'href="/orders/5/{kind}-address"' in page
    refused = office.post(f"/orders/5/{kind}-address", 422, **{**ADDRESS, "zip": " "})
    assert "Zip/Postal Code is a required field." in refused.text and "1 Mill Road" in refused.text
    office.post(f"/orders/5/{kind}-address", **ADDRESS)
    (change,) = office.changes()
    assert dict(change.after or {}) | ADDRESS | {"order_id": 5, "kind": kind} == dict(change.after or {})


def test_tracking_numbers_are_added_and_deleted(office: Office) -> None:
    track = office.one("SELECT * FROM shop_tracks ORDER BY id DESC")
    path = f"/shipments/{track['shipment']}"
    office.post(f"{path}/tracks", 422, carrier="Nobody", track="")
    office.post(f"{path}/tracks", carrier="Bluebird Courier", track="77")
    office.post(f"{path}/tracks/{track['id']}/delete")
    office.post(f"/shipments/{track['shipment'] - 1}/tracks/{track['id'] - 1}/delete", 404)
    added, gone = sorted(office.changes(), key=lambda change: change.before is not None)
    assert dict(added.after or {})["number"] == "77" and gone.key == track["id"] and gone.after is None


# The catalogue


def product_form(office: Office, id: int, **changed: str) -> dict[str, str]:
    """What a browser would send of a product's page."""
    page = office.get(f"/products/{id}").split('id="product"')[1].split("</form>")[0]
    fields = dict(re.findall(r'<input id="\w+" name="(\w+)" value="([^"]*)"', page))
    fields |= dict(re.findall(r'<textarea id="\w+" name="(\w+)"[^>]*>(.*?)</textarea>', page, re.DOTALL))
    fields["category"] = re.findall(r'<option value="(\d+)" selected', page)[0]
    fields["enabled"] = "1" if re.search(r'name="enabled" value="1" checked', page) else ""
    return {**fields, **changed}


def test_a_product_saved_as_it_is_does_not_change(office: Office) -> None:
    for id in (1, 2, 3, 250):
        office.post(f"/products/{id}", **product_form(office, id))
    assert office.changes() == []


def test_a_product_changes_as_its_form_says(office: Office) -> None:
    fields = product_form(
        office, 2, price="$1,049.90", special_price="1,000", stock="3", enabled="", description=HOSTILE
    )
    attribute = office.one("SELECT * FROM shop_attributes WHERE product = 2 ORDER BY id")["id"]
    office.post("/products/2", **{**fields, f"attribute_{attribute}": ""})
    gone, product = office.changes()
    assert (gone.table, gone.key, gone.after) == ("shop_attributes", attribute, None)
    after = dict(product.after or {})
    assert product.columns == {"price", "special_price", "stock", "enabled", "description"}
    assert (after["price"], after["special_price"], after["stock"], after["enabled"]) == (104990, 100000, 3, 0)
    assert "<script>alert" not in office.http.get("/products/2").text


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"price": "cheap"}, "Price must be an amount"),
        ({"stock": "-1"}, "Quantity must be a whole number"),
        ({"special_price": "99999"}, "Special Price must be less than Price."),
        ({"name": ""}, "Product Name is a required field."),
        ({"category": "1"}, "Category: please choose"),
        ({"sku": "taken"}, "The SKU is taken"),
    ],
)
def test_a_product_that_makes_no_sense_is_refused(office: Office, changed: dict[str, str], why: str) -> None:
    if changed.get("sku"):
        changed = {"sku": office.world.value("SELECT sku FROM shop_products WHERE id = 5")}
    refused = html.unescape(office.post("/products/2", 422, **product_form(office, 2, **changed)).text)
    assert why in refused and 'role="alert"' in refused
    assert all(value in refused for value in changed.values())
    assert office.changes() == []


def test_a_product_is_added(office: Office) -> None:
    category = office.world.value("SELECT id FROM shop_categories WHERE parent IS NOT NULL")
    name = office.world.value("SELECT name FROM shop_products WHERE id = 3")
    fields = {"name": name, "sku": "NEW-1", "price": "9.5", "stock": "4", "weight": "0", "brand": "Corvessa"}
    refused = office.post("/products/new", 422, **fields, enabled="1")
    assert "Category" in refused.text and 'value="NEW-1"' in refused.text
    office.post("/products/new", **fields, enabled="1", category=category)
    (change,) = office.changes()
    after = dict(change.after or {})
    assert change.before is None and after["slug"] == f"{slug_of(name)}-2"
    assert (after["price"], after["special_price"], after["enabled"], after["category"]) == (950, None, 1, category)


def test_mass_actions_on_products(office: Office) -> None:
    ids = [row[0] for row in office.world.rows("SELECT id FROM shop_products WHERE enabled ORDER BY id LIMIT 3")]
    back = {"referer": "http://admin.test/products?page=2"}
    answer = office.post("/products/mass", headers=back, action="disable", id=ids)
    assert answer.headers["location"] == "/products?page=2"
    assert "A total of 3 records have been updated." in office.get("/products")
    assert office.changed() == [("shop_products", id, {"enabled": 0}) for id in ids]
    office.post("/products/mass", action="", id=ids)
    assert "Please select products and an action." in office.get("/products")
    office.post("/products/mass", action="enable", id=ids)
    assert office.changes() == []


def test_attributes_and_options_of_a_product(office: Office) -> None:
    option = office.one("SELECT * FROM shop_options WHERE product = 2 AND name = 'Size' ORDER BY position DESC")
    office.post("/products/2/attributes", attribute_name="Origin", attribute_value="Brammere")
    office.post("/products/2/attributes", 422, attribute_name="Origin", attribute_value="Elsewhere")
    office.post("/products/2/options", option_name="Size", option_value="XXL", option_extra="2.50")
    office.post("/products/2/options", 422, option_name="Size", option_value="XXL")
    office.post(f"/products/2/options/{option['id']}/delete")
    office.post(f"/products/3/options/{option['id'] - 1}/delete", 404)
    attribute, gone, added = sorted(office.changes(), key=lambda change: (change.table, change.key))
    assert dict(attribute.after or {})["value"] == "Brammere" and gone.key == option["id"]
    after = dict(added.after or {})
    assert (after["name"], after["value"], after["extra"]) == ("Size", "XXL", 250)
    assert after["position"] == option["position"] + 1


def test_a_category_is_edited(office: Office) -> None:
    office.post("/categories/2", 422, name="", description="x")
    office.post("/categories/2", name="Kettles", description="For tea.")
    assert office.changed() == [("shop_categories", 2, {"name": "Kettles", "description": "For tea.", "enabled": 0})]
    assert "Kettles" in office.get("/categories?under=1")


# Customers and marketing


def test_a_customer_is_edited(office: Office) -> None:
    row = office.one("SELECT * FROM shop_customers WHERE id = 4")
    other = office.world.value("SELECT email FROM shop_customers WHERE id = 5")
    fields = {name: row[name] for name in ("first", "last", "email", "customer_group")}
    for wrong in ({"email": "nobody"}, {"email": other.upper()}, {"first": ""}, {"customer_group": "Kings"}):
        office.post("/customers/4", 422, **{**fields, **wrong})
    office.post(
        "/customers/4", **{**fields, "customer_group": "Retailer" if row["customer_group"] != "Retailer" else "General"}
    )
    (change,) = office.changes()
    assert change.key == 4 and change.columns == {"customer_group"}


def test_an_address_of_a_customer_is_edited(office: Office) -> None:
    address = office.one("SELECT * FROM shop_addresses WHERE customer = 4")["id"]
    office.post(f"/customers/5/addresses/{address}", 404, **ADDRESS)
    office.post(f"/customers/4/addresses/{address}", 422)
    office.post(f"/customers/4/addresses/{address}", **ADDRESS)
    (change,) = office.changes()
    assert change.key == address and dict(change.after or {})["street"] == "1 Mill Road"


def test_a_customer_reads_the_newsletter_or_not(office: Office) -> None:
    reader = office.one("SELECT * FROM shop_subscribers WHERE customer IS NOT NULL AND status = 'subscribed'")
    office.post(f"/customers/{reader['customer']}/newsletter", status="unsubscribed")
    assert office.changed() == [("shop_subscribers", reader["id"], {"status": "unsubscribed"})]
    other = office.world.value(
        "SELECT id FROM shop_customers WHERE id NOT IN (SELECT customer FROM shop_subscribers WHERE customer NOT NULL)"
    )
    office.post(f"/customers/{other}/newsletter", status="subscribed")
    assert "Unsubscribe from Newsletter" in office.get(f"/customers/{other}")
    assert len(office.changes()) == 2


def test_a_review_is_moderated(office: Office) -> None:
    row = office.one("SELECT * FROM shop_reviews WHERE status = 'pending'")
    fields = {name: str(row[name]) for name in ("nickname", "title", "text", "rating", "status")}
    office.post(f"/reviews/{row['id']}", 422, **{**fields, "rating": "6", "status": "loved"})
    office.post(f"/reviews/{row['id']}", **{**fields, "status": "approved"})
    assert office.changed() == [("shop_reviews", row["id"], {"status": "approved"})]
    office.post(f"/reviews/{row['id']}/delete")
    (change,) = office.changes()
    assert change.key == row["id"] and change.after is None


def test_mass_actions_on_reviews_and_subscribers(office: Office) -> None:
    pending = [row[0] for row in office.world.rows("SELECT id FROM shop_reviews WHERE status = 'pending' LIMIT 2")]
    office.post("/reviews/mass", action="rejected", id=pending)
    office.post("/subscribers/mass", action="delete", id=[1])
    readers = [row[0] for row in office.world.rows("SELECT id FROM shop_subscribers WHERE status = 'subscribed'")][-2:]
    office.post("/subscribers/mass", action="unsubscribe", id=readers)
    office.post("/subscribers/mass", id=readers)
    office.post("/reviews/mass", action="approved")
    reviews = [("shop_reviews", id, {"status": "rejected"}) for id in pending]
    subscribers = [("shop_subscribers", id, {"status": "unsubscribed"}) for id in readers]
    assert [change for change in office.changed() if change[2]] == [*reviews, *subscribers]
    assert [(c.table, c.key) for c in office.changes() if c.after is None] == [("shop_subscribers", 1)]
    office.post("/reviews/mass", action="delete", id=pending)
    assert sum(c.after is None for c in office.changes()) == 3


RULE = {
    "name": "Easter",
    "description": "",
    "active": "1",
    "customer_group": "",
    "coupon": "EGGS",
    "starts": "2026-04-01",
}


def test_a_rule_is_added_and_deleted(office: Office) -> None:
    office.post("/rules/new", **RULE, ends="4/6/2026", kind="fixed", amount="7.50", minimum="40")
    (change,) = office.changes()
    after = dict(change.after or {})
    assert (after["kind"], after["amount"], after["minimum"], after["used"]) == ("fixed", 750, 4000, 0)
    assert (after["starts"], after["ends"], after["coupon"]) == ("2026-04-01", "2026-04-06", "EGGS")
    office.post("/rules/new", 422, **{**RULE, "coupon": "eggs"}, kind="percent", amount="10")
    office.post(f"/rules/{change.key}/delete")
    assert office.changes() == []


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"amount": "101"}, "Discount Amount must be a whole number from 1 to 100."),
        ({"kind": "fixed", "amount": "0"}, "Discount Amount must be positive."),
        ({"kind": "all"}, "Apply: please choose"),
        ({"ends": "2026-03-31"}, "To must not be before From."),
        ({"ends": "Easter"}, "To must be a day"),
        ({"coupon": "two words"}, "Coupon Code must be"),
        ({"minimum": "much"}, "Minimum Subtotal must be an amount"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(office: Office, changed: dict[str, str], why: str) -> None:
    refused = office.post("/rules/new", 422, **{**RULE, "kind": "percent", "amount": "10", **changed})
    assert why in html.unescape(refused.text) and office.changes() == []


def test_every_rule_saved_as_it_is_does_not_change(office: Office) -> None:
    for row in office.world.rows("SELECT * FROM shop_rules"):
        fields = {name: "" if row[name] is None else row[name] for name in (*RULE, "ends", "kind")}
        fields["amount"] = dollars(row["amount"]) if row["kind"] == "fixed" else row["amount"]
        fields["active"] = row["active"] or ""
        shown = office.get(f"/rules/{row['id']}")
        assert f'name="amount" value="{fields["amount"]}"' in shown
        office.post(f"/rules/{row['id']}", **fields, minimum=dollars(row["minimum"]))
    assert office.changes() == []


def test_pages_are_added_edited_and_deleted(office: Office) -> None:
    office.post("/pages/new", title="Summer Café & Co.", content="Come in.", enabled="1")
    office.post("/pages/new", 422, title="Other", url_key="summer-cafe-co", content="x")
    office.post("/pages/new", 422, title="Other", url_key="Not/a key", content="x")
    (change,) = office.changes()
    after = dict(change.after or {})
    assert (after["url_key"], after["enabled"], after["updated"]) == ("summer-cafe-co", 1, "2026-03-16 10:30:00")
    office.post(f"/pages/{change.key}", title="Winter", url_key="winter", content=HOSTILE)
    assert {**dict(office.changes()[0].after or {}), "title": "Winter", "url_key": "winter", "enabled": 0} == dict(
        office.changes()[0].after or {}
    )
    assert "<script>alert" not in office.http.get(f"/pages/{change.key}").text
    office.post(f"/pages/{change.key}/delete")
    assert office.changes() == []


def test_settings_are_saved_and_refused(office: Office) -> None:
    page = office.get("/settings")
    fields = dict(re.findall(r'<input id="setting-\w+" name="(\w+)" value="([^"]*)"', page))
    assert set(fields) == {row[0] for row in office.world.rows("SELECT name FROM shop_settings")}
    office.post("/settings", **fields)
    assert office.changes() == []
    refused = office.post(
        "/settings", 422, **{**fields, "free_shipping_from": "lots", "email": "x", "tax_percent": "51"}
    )
    assert refused.text.count("<p>") >= 3 and 'value="lots"' in refused.text and office.changes() == []
    office.post("/settings", **{**fields, "free_shipping_from": "49.90"})
    assert [change[2] for change in office.changed()] == [{"value": "4990"}]


def test_an_enquiry_is_read_and_deleted(office: Office) -> None:
    row = office.one("SELECT * FROM shop_enquiries WHERE id = 1")
    assert row["text"][:20] in office.get("/enquiries/1")
    office.post("/enquiries/1/delete")
    assert [(c.table, c.after) for c in office.changes()] == [("shop_enquiries", None)]


# Reports and the dashboard


def test_the_dashboard_adds_up(office: Office) -> None:
    page = office.get("/?range=1m&chart=amounts")
    life = office.one("SELECT SUM(total) AS total, COUNT(*) AS n FROM shop_orders WHERE status <> 'canceled'")
    assert money(life["total"]) in page and money(life["total"] // life["n"]) in page
    month = office.one(
        "SELECT SUM(total), COUNT(*) FROM shop_orders WHERE status <> 'canceled' AND moment >= '2026-03-01'"
    )
    told = dict(re.findall(r"<dt>(\w+)</dt><dd>(.*?)</dd>", page))
    assert (told["Revenue"], told["Orders"]) == (money(month[0]), str(month[1]))
    for period, bars in (("24h", 24), ("7d", 7), ("1m", 16), ("1y", 12), ("nonsense", 12)):
        assert office.get(f"/?range={period}").count("<rect") == bars
    newest = office.world.value("SELECT first || ' ' || last FROM shop_customers ORDER BY joined DESC")
    assert newest in page


def test_the_orders_report_adds_up(office: Office) -> None:
    page = office.get("/reports/orders?period=month&from=2025-06-01&to=2025-08-31&status=any")
    rows = office.world.rows(
        "SELECT strftime('%m', moment), COUNT(*), SUM(total), SUM(tax), SUM(shipping), SUM(discount) FROM shop_orders "
        "WHERE date(moment) BETWEEN '2025-06-01' AND '2025-08-31' GROUP BY 1 ORDER BY 1"
    )
    shown = cells(page)
    assert [row[0] for row in shown] == ["Jun 2025", "Jul 2025", "Aug 2025"]
    assert [row[1] for row in shown] == [str(row[1]) for row in rows]
    assert [row[3:7] for row in shown] == [[money(value) for value in row[2:6]] for row in rows]
    foot = page.split("<tfoot>")[1]
    assert f">{money(sum(row[2] for row in rows))}<" in foot
    assert "isn't" not in page and "is not a day" in office.get("/reports/orders?from=never")


def test_the_bestsellers_report_is_what_sql_finds(office: Office) -> None:
    shown = cells(office.get("/reports/bestsellers?period=year&from=2025-01-01&to=2025-12-31"))
    best = office.world.rows(
        "SELECT p.name, SUM(l.quantity) AS n FROM shop_order_lines l JOIN shop_orders o ON o.id = l.order_id "
        "JOIN shop_products p ON p.id = l.product WHERE o.status <> 'canceled' AND o.moment LIKE '2025%' "
        "GROUP BY p.id ORDER BY n DESC, p.name LIMIT 5"
    )
    assert [(row[0], row[1], row[3]) for row in shown] == [("2025", row[0], str(row[1])) for row in best]


def test_other_reports_add_up(office: Office) -> None:
    every = "from=&to=&status=any"
    uses = re.findall(r"<tfoot>.*?</tfoot>", office.get(f"/reports/coupons?period=year&{every}"), re.DOTALL)[0]
    used = office.world.value("SELECT COUNT(*) FROM shop_orders WHERE coupon <> ''")
    assert f'<td class="number">{used}</td>' in uses
    most = office.one("SELECT customer, COUNT(*) AS n FROM shop_orders GROUP BY 1 ORDER BY n DESC, SUM(total) DESC")
    assert cells(office.get(f"/reports/customers?{every}"))[0][2] == str(most["n"])
    sold = office.world.value("SELECT SUM(quantity) FROM shop_order_lines")
    assert f'<td class="number">{sold:,}</td>' in office.get(f"/reports/products?{every}&page=2")
    most = office.world.value("SELECT COUNT(*) AS n FROM shop_reviews GROUP BY product ORDER BY n DESC")
    assert cells(office.get("/reports/reviews"))[0][1] == str(most)
    low = office.world.value("SELECT COUNT(*) FROM shop_products WHERE stock < 10 AND enabled")
    assert found(office.get("/reports/low-stock")) == low


# Parts


def test_days_are_read_as_people_type_them() -> None:
    for text in ("2026-03-09", "2026-3-9", "3/9/2026", "03/09/2026", "Mar 9, 2026", "March 9, 2026"):
        assert parse_day(text) == datetime.date(2026, 3, 9)
    for text in ("", "2026-02-30", "9.3.2026", "Foo 9, 2026", "0026-01-01", "2026-03-09 ", "９/9/2026"):
        assert parse_day(text) is None
    assert day_after(datetime.date(2025, 12, 31)) == "2026-01-01"
    assert (told("2026-03-05"), told("2026-03"), told("2026")) == (day("2026-03-05"), "Mar 2026", "2026")
    assert first_of_month(3).isoformat() == "2025-12-01"


def test_small_parts() -> None:
    assert (dollars(None), dollars(1250), slug_of("Café & Bar!")) == ("", "12.50", "cafe-bar")
    assert place_of("/reviews/pending") == "/reviews/pending" and place_of("/reviews/12") == "/reviews"
    assert place_of("/") == "" and place_of("/ordersx") == ""

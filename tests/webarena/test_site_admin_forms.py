"""The administration: forms for products, customers, marketing and settings change only what they should."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest

from agentgym_envs.webarena.sites.admin.forms import dollars, slug_of
from tests.webarena.embedded import visit
from tests.webarena.office import ADDRESS, HOSTILE, Office

pytestmark = pytest.mark.slow


@pytest.fixture
def office() -> Iterator[Office]:
    yield from visit(Office())


# The catalogue


def product_form(office: Office, id: int, **changed: str) -> dict[str, str]:
    """Return the fields that a browser would send from a product's page."""
    page = office.get(f"/products/{id}").split('id="product"')[1].split("</form>")[0]
    fields = dict(re.findall(r'<input id="\w+" name="(\w+)" value="([^"]*)"', page))
    fields |= dict(re.findall(r'<textarea id="\w+" name="(\w+)"[^>]*>(.*?)</textarea>', page, re.DOTALL))
    fields["category"] = re.findall(r'<option value="(\d+)" selected', page)[0]
    fields["enabled"] = "1" if re.search(r'name="enabled" value="1" checked', page) else ""
    return {**fields, **changed}


def test_saving_an_unchanged_product_changes_nothing(office: Office) -> None:
    for id in (1, 2, 3, 250):
        office.post(f"/products/{id}", **product_form(office, id))
    assert office.changes() == []


def test_a_product_is_saved_from_its_form(office: Office) -> None:
    attribute, id = office.one(
        "SELECT a.id, p.id FROM shop_attributes a JOIN shop_products p ON p.id = a.product "
        "WHERE p.enabled AND p.stock > 3 ORDER BY a.id"
    )
    changed = {"price": "$1,049.90", "special_price": "1,000", "stock": "3", "enabled": "", "description": HOSTILE}
    office.post(f"/products/{id}", **{**product_form(office, id, **changed), f"attribute_{attribute}": ""})
    gone, product = office.changes()
    assert (gone.table, gone.key, gone.after) == ("shop_attributes", attribute, None)
    after = dict(product.after or {})
    assert product.columns == {"price", "special_price", "stock", "enabled", "description"}
    assert (after["price"], after["special_price"], after["stock"], after["enabled"]) == (104990, 100000, 3, 0)
    assert "<script>alert" not in office.http.get(f"/products/{id}").text


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
def test_an_invalid_product_is_refused(office: Office, changed: dict[str, str], why: str) -> None:
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


def test_mass_actions_change_products(office: Office) -> None:
    ids = [row[0] for row in office.world.rows("SELECT id FROM shop_products WHERE enabled ORDER BY id LIMIT 3")]
    back = {"referer": "http://admin.test/products?page=2"}
    response = office.post("/products/mass", headers=back, action="disable", id=ids)
    assert response.headers["location"] == "/products?page=2"
    assert "A total of 3 records have been updated." in office.get("/products")
    assert office.changed() == [("shop_products", id, {"enabled": 0}) for id in ids]
    office.post("/products/mass", action="", id=ids)
    assert "Please select products and an action." in office.get("/products")
    office.post("/products/mass", action="enable", id=ids)
    assert office.changes() == []


def test_attributes_and_options_of_a_product_are_edited(office: Office) -> None:
    option = office.one("SELECT * FROM shop_options ORDER BY id DESC")
    path, name = f"/products/{option['product']}", option["name"]
    office.post(f"{path}/attributes", attribute_name="Origin", attribute_value="Brammere")
    office.post(f"{path}/attributes", 422, attribute_name="Origin", attribute_value="Elsewhere")
    office.post(f"{path}/options", option_name=name, option_value="Plum", option_extra="2.50")
    office.post(f"{path}/options", 422, option_name=name, option_value="Plum")
    office.post(f"{path}/options", 422, option_name=name, option_value="Moss", option_extra="some")
    office.post(f"/products/{option['product'] + 1}/options/{option['id']}/delete", 404)
    office.post(f"{path}/options/{option['id']}/delete")
    attribute, gone, added = sorted(office.changes(), key=lambda change: (change.table, change.key))
    assert dict(attribute.after or {})["value"] == "Brammere" and gone.key == option["id"]
    after = dict(added.after or {})
    assert (after["name"], after["value"], after["extra"]) == (name, "Plum", 250)
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


def test_a_customer_is_subscribed_and_unsubscribed(office: Office) -> None:
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


def test_mass_actions_change_reviews_and_subscribers(office: Office) -> None:
    pending = [
        row[0] for row in office.world.rows("SELECT id FROM shop_reviews WHERE status = 'pending' ORDER BY id LIMIT 2")
    ]
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


@pytest.mark.parametrize("typed", ["5", "5%", "5 %", "5.0", "5.00%"])
def test_a_percentage_is_accepted_in_several_formats(office: Office, typed: str) -> None:
    office.post("/rules/new", **RULE, kind="percent", amount=typed)
    (change,) = office.changes()
    assert dict(change.after or {})["amount"] == 5


@pytest.mark.parametrize("path", ["/rules/new", "/orders", "/reports/orders"])
def test_day_fields_show_the_format(office: Office, path: str) -> None:
    assert office.get(path).count('<small class="hint">YYYY-MM-DD</small>') == 2


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"amount": "101"}, "Discount Amount must be a whole number from 1 to 100."),
        ({"amount": "0%"}, "Discount Amount must be a whole number from 1 to 100."),
        ({"amount": "7.5"}, "Discount Amount must be a whole number from 1 to 100."),
        ({"kind": "fixed", "amount": "0"}, "Discount Amount must be positive."),
        ({"kind": "all"}, "Apply: please choose"),
        ({"ends": "2026-03-31"}, "To must not be before From."),
        ({"ends": "Easter"}, "To must be a day"),
        ({"coupon": "two words"}, "Coupon Code must be"),
        ({"minimum": "much"}, "Minimum Subtotal must be an amount"),
    ],
)
def test_an_invalid_rule_is_refused(office: Office, changed: dict[str, str], why: str) -> None:
    refused = office.post("/rules/new", 422, **{**RULE, "kind": "percent", "amount": "10", **changed})
    assert why in html.unescape(refused.text) and office.changes() == []


def test_saving_an_unchanged_rule_changes_nothing(office: Office) -> None:
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


def test_valid_settings_are_saved_and_invalid_ones_refused(office: Office) -> None:
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

"""The administration: pages show the content of the tables, and orders follow the rules."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

import pytest

from agentgym_envs.webarena.sites.admin.days import day_after, first_of_month, interval_label, parse_day
from agentgym_envs.webarena.sites.admin.forms import dollars, slug_of
from agentgym_envs.webarena.sites.admin.menu import MENU, menu_path_of
from agentgym_envs.webarena.sites.clock import day, minute
from agentgym_envs.webarena.sites.framework.rendering import money
from tests.webarena.embedded import signed_out, visit
from tests.webarena.office import ADDRESS, HOSTILE, OPEN, Office, cells, found, plain

MENU_PATHS = [entry.path for section in MENU for entry in section.entries]
NOWHERE = [
    "/orders/0",
    "/orders/99999999999999999999",
    "/orders/1/other-address",
    "/invoices/0",
    "/shipments/0",
    "/credit-memos/0",
    "/products/0",
    "/categories/0",
    "/customers/0",
    "/customers/1/addresses/0",
    "/customers/2/addresses/1",
    "/reviews/0",
    "/rules/0",
    "/pages/0",
    "/enquiries/0",
    "/nowhere",
]


@pytest.fixture
def office() -> Iterator[Office]:
    yield from visit(Office())


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("path", ["/", *MENU_PATHS])
def test_pages_of_the_menu_require_login(office: Office, path: str) -> None:
    page = office.get(path)
    assert page.count("<h1>") == 1 and "Traceback" not in page
    response = office.http.get(path, headers=signed_out(office.episode))
    assert response.status_code == 303 and response.headers["location"].startswith("/sign-in?after=")
    assert office.changes() == []


def test_only_an_administrator_can_sign_in(office: Office) -> None:
    assert office.http.get("/sign-in", headers=signed_out(office.episode)).status_code == 200
    office.post("/sign-in", 401, user="anika", password="opensesame")
    office.post("/sign-in", user="Admin", password="opensesame")
    assert "Dashboard" in office.get("/")
    office.http.cookies.clear()
    office.post("/orders/1/comments", headers=signed_out(office.episode), status="complete", comment="No")
    assert office.changes() == []


@pytest.mark.parametrize("path", NOWHERE)
def test_missing_pages_are_404(office: Office, path: str) -> None:
    assert "Page not found" in office.get(path, 404)


# Grids


def test_the_orders_grid_shows_the_table(office: Office) -> None:
    query = """SELECT o.number, o.moment, c.first || ' ' || c.last, o.total, o.status FROM shop_orders o
        JOIN shop_customers c ON c.id = o.customer ORDER BY o.moment DESC, o.id DESC"""
    rows = [(r[0], minute(r[1]), r[2], money(r[3]), r[4].capitalize()) for r in office.world.rows(query)]
    page = office.get("/orders")
    assert found(page) == len(rows) == 600
    shown = [
        tuple(row[column] for column in (0, 1, 2, 4, 5)) for row in cells(page) + cells(office.get("/orders?page=2"))
    ]
    assert shown == rows[:30]
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
def test_filters_of_orders_match_sql(office: Office, query: str, where: str) -> None:
    assert found(office.get(f"/orders?{query}")) == office.world.value(
        f"SELECT COUNT(*) FROM shop_orders WHERE {where}"
    )


def test_active_filters_are_shown_kept_and_removed(office: Office) -> None:
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
def test_grids_sort_in_both_directions(office: Office, path: str, keys: str, query: str) -> None:
    column = 1 if path in ("/products", "/reviews", "/subscribers") else 0
    for direction in ("asc", "desc"):
        rows = office.world.rows(f"{query} ORDER BY {keys} {direction}, id {direction} LIMIT 10")
        shown = cells(office.get(f"{path}?sort={keys}&dir={direction}"))
        assert [row[column] for row in shown[:10]] == [str(row[0]) for row in rows]


def test_filters_of_other_grids_match_sql(office: Office) -> None:
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


def test_an_order_page_shows_the_order(office: Office) -> None:
    order = office.one("SELECT * FROM shop_orders WHERE status = 'complete' AND discount > 0 AND shipping > 0")
    page = office.get(f"/orders/{order['id']}")
    pairs = {plain(a): plain(b) for a, b in re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', page)}
    assert pairs["Grand Total"] == money(order["total"]) and pairs["Order Status"] == "Complete"
    assert pairs[f"Discount ({order['coupon']})"] == money(-order["discount"])
    for line in office.world.rows("SELECT * FROM shop_order_lines WHERE order_id = ?", order["id"]):
        row = next(row for row in cells(page.split("Items Ordered")[1]) if row[1] == line["sku"])
        assert row[0].startswith(line["name"]) and row[4] == money(line["price"] * line["quantity"])
    for track in office.world.rows(
        "SELECT t.* FROM shop_tracks t JOIN shop_shipments s ON s.id = t.shipment WHERE s.order_id = ?", order["id"]
    ):
        assert f"{track['carrier']} {track['number']}" in page


def test_canceling_a_pending_order_restocks_it_once(office: Office) -> None:
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
    assert office.value("SELECT status FROM shop_orders WHERE id = ?", id) == "processing"
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


def test_a_refund_can_restock_the_items(office: Office) -> None:
    order = office.one("SELECT * FROM shop_orders WHERE status = 'complete'")
    office.post(f"/orders/{order['id']}/refund", shipping=dollars(order["shipping"]), fee="0", restock="1")
    lines = office.world.rows("SELECT DISTINCT product FROM shop_order_lines WHERE order_id = ?", order["id"])
    assert {c.key for c in office.changes() if c.table == "shop_products"} == {line[0] for line in lines}


def test_actions_that_the_status_forbids_change_nothing(office: Office) -> None:
    complete, canceled, held, closed = (
        office.world.value("SELECT id FROM shop_orders WHERE status = ?", status)
        for status in ("complete", "canceled", "on hold", "closed")
    )
    every = ("cancel", "hold", "unhold", "invoice", "ship", "refund")
    for id, allowed in ((complete, "refund"), (canceled, ""), (held, "unhold"), (closed, "")):
        page = office.get(f"/orders/{id}")
        for step in (step for step in every if step != allowed):
            assert f'/orders/{id}/{step}"' not in page
            office.post(f"/orders/{id}/{step}", carrier="Meridian Parcel", shipping="0", fee="0")
            if step in ("invoice", "ship", "refund"):
                assert "cannot be" in office.get(f"/orders/{id}/{step}", 403)
    assert office.changes() == []


def test_an_order_is_held_and_released(office: Office) -> None:
    fresh = office.one(f"SELECT id FROM shop_orders WHERE {OPEN}")["id"]
    paid = office.one("SELECT id FROM shop_orders WHERE status = 'processing'")["id"]
    office.post(f"/orders/{fresh}/hold")
    office.post(f"/orders/{paid}/hold")
    assert {c[2]["status"] for c in office.changed()} == {"on hold"} and len(office.changed()) == 2
    office.post(f"/orders/{fresh}/unhold")
    office.post(f"/orders/{paid}/comments", status="processing", comment="It goes on")
    assert [c.table for c in office.changes()] == ["shop_order_comments"]


def test_a_comment_is_added_with_its_checkboxes(office: Office) -> None:
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
    office.post(f"/shipments/{track['shipment'] - 1}/tracks/{track['id']}/delete", 404)
    added, gone = sorted(office.changes(), key=lambda change: change.before is not None)
    assert dict(added.after or {})["number"] == "77" and gone.key == track["id"] and gone.after is None


# Reports and the dashboard


def test_the_dashboard_totals_are_correct(office: Office) -> None:
    page = office.get("/?range=1m&chart=amounts")
    life = office.one("SELECT SUM(total) AS total, COUNT(*) AS n FROM shop_orders WHERE status <> 'canceled'")
    assert money(life["total"]) in page and money(life["total"] // life["n"]) in page
    month = office.one(
        "SELECT SUM(total), COUNT(*) FROM shop_orders WHERE status <> 'canceled' AND moment >= '2026-03-01'"
    )
    interval_label = dict(re.findall(r"<dt>(\w+)</dt><dd>(.*?)</dd>", page))
    assert (interval_label["Revenue"], interval_label["Orders"]) == (money(month[0]), str(month[1]))
    for period, bars in (("24h", 24), ("7d", 7), ("1m", 16), ("1y", 12), ("nonsense", 12)):
        assert office.get(f"/?range={period}").count("<rect") == bars
    newest = office.world.value("SELECT first || ' ' || last FROM shop_customers ORDER BY joined DESC")
    assert newest in page


def test_the_orders_report_totals_are_correct(office: Office) -> None:
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


def test_a_report_has_one_url_for_all_day_formats(office: Office) -> None:
    office.get("/reports/orders?from=2025-05-30&to=never&status=any")
    response = office.http.get("/reports/orders?from=05/30/2025&to=Aug+2,+2025&status=any")
    assert response.status_code == 303
    assert response.headers["location"] == "/reports/orders?status=any&from=2025-05-30&to=2025-08-02"
    office.get(response.headers["location"])


def test_the_bestsellers_report_matches_sql(office: Office) -> None:
    shown = cells(office.get("/reports/bestsellers?period=year&from=2025-01-01&to=2025-12-31"))
    best = office.world.rows(
        "SELECT p.name, SUM(l.quantity) AS n FROM shop_order_lines l JOIN shop_orders o ON o.id = l.order_id "
        "JOIN shop_products p ON p.id = l.product WHERE o.status <> 'canceled' AND o.moment LIKE '2025%' "
        "GROUP BY p.id ORDER BY n DESC, p.name LIMIT 5"
    )
    assert [(row[0], row[1], row[3]) for row in shown] == [("2025", row[0], str(row[1])) for row in best]


def test_totals_of_other_reports_are_correct(office: Office) -> None:
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


@pytest.mark.parametrize(
    ("report", "leads"), [("customers", "customers"), ("products", "products"), ("bestsellers", "products")]
)
def test_names_in_reports_link_to_their_pages(office: Office, report: str, leads: str) -> None:
    rows = re.findall(rf'<a href="(/{leads}/\d+)">(.*?)</a></td>', office.get(f"/reports/{report}"))
    for path, name in rows[:2]:
        assert f"<h1>{name}</h1>" in office.get(path)
    assert len(rows) > 2


# Parts


def test_days_are_parsed_in_several_formats() -> None:
    for text in ("2026-03-09", "2026-3-9", "3/9/2026", "03/09/2026", "Mar 9, 2026", "March 9, 2026"):
        assert parse_day(text) == datetime.date(2026, 3, 9)
    for text in ("", "2026-02-30", "9.3.2026", "Foo 9, 2026", "0026-01-01", "2026-03-09 ", "９/9/2026"):
        assert parse_day(text) is None
    assert day_after(datetime.date(2025, 12, 31)) == "2026-01-01"
    assert (interval_label("2026-03-05"), interval_label("2026-03"), interval_label("2026")) == (
        day("2026-03-05"),
        "Mar 2026",
        "2026",
    )
    assert first_of_month(3).isoformat() == "2025-12-01"


def test_helpers_format_amounts_slugs_and_menu_paths() -> None:
    assert (dollars(None), dollars(1250), slug_of("Café & Bar!")) == ("", "12.50", "cafe-bar")
    assert menu_path_of("/reviews/pending") == "/reviews/pending" and menu_path_of("/reviews/12") == "/reviews"
    assert menu_path_of("/") == "" and menu_path_of("/ordersx") == ""

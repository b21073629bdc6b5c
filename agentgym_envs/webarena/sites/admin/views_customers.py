"""Customers."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.admin.forms import Checked, choices
from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.admin.views_orders import ADDRESS, read_address
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
GROUPS = ("General", "Wholesale", "Retailer")
FIELDS = ("first", "last", "email", "customer_group")
_SOURCE = """
SELECT c.id, c.first || ' ' || c.last AS name, c.email, c.customer_group, c.joined, a.phone, a.zip, a.town, a.region
FROM shop_customers c LEFT JOIN shop_addresses a ON a.id = c.address
"""
CUSTOMERS = Grid(
    title="Customers",
    source=_SOURCE,
    columns=(
        Column("id", "ID"),
        Column("name", "Name"),
        Column("email", "E-mail"),
        Column("customer_group", "Group"),
        Column("phone", "Phone"),
        Column("zip", "ZIP"),
        Column("region", "State/Region"),
        Column("joined", "Customer Since", "day"),
    ),
    filters=(
        Filter("name", "Name"),
        Filter("email", "E-mail"),
        Filter("customer_group", "Group", "choice", choices(GROUPS)),
        Filter("phone", "Phone"),
        Filter("zip", "ZIP"),
        Filter("town", "City"),
        Filter("region", "State/Region"),
        Filter("joined", "Customer since", "day"),
    ),
    order="id",
    falling=False,
    path="/customers/{id}",
)
_ORDERED = """
SELECT COUNT(*) AS orders, COALESCE(SUM(total), 0) AS spent, MAX(moment) AS last FROM shop_orders
WHERE customer = ? AND status <> 'canceled'
"""


@routes.get("/customers")
def customers(visit: RequestContext) -> Response:
    """All customers."""
    return CUSTOMERS.page(visit, "grid.html")


@routes.get("/customers/{id:int}")
def customer(visit: RequestContext, id: int) -> Response:
    """The form, and what is known of a customer."""
    row = visit.one("SELECT * FROM shop_customers WHERE id = ?", id)
    return _page(visit, row, {name: row[name] for name in FIELDS})


def _page(visit: RequestContext, row: sqlite3.Row, values: dict[str, str], wrong: list[str] | None = None) -> Response:
    id = row["id"]
    reviews = """SELECT r.*, p.name AS product_name FROM shop_reviews r JOIN shop_products p ON p.id = r.product
        WHERE r.customer = ? ORDER BY r.moment DESC, r.id DESC LIMIT 6"""
    found: dict[str, Any] = {
        "groups": choices(GROUPS),
        "totals": visit.one(_ORDERED, id),
        "orders": visit.rows("SELECT * FROM shop_orders WHERE customer = ? ORDER BY moment DESC, id DESC LIMIT 8", id),
        "order_count": visit.value("SELECT COUNT(*) FROM shop_orders WHERE customer = ?", id),
        "addresses": visit.rows("SELECT * FROM shop_addresses WHERE customer = ? ORDER BY id", id),
        "reviews": visit.rows(reviews, id),
        "review_count": visit.value("SELECT COUNT(*) FROM shop_reviews WHERE customer = ?", id),
        "subscription": _subscription(visit, row["email"]),
    }
    return visit.page("customer.html", 422 if wrong else 200, customer=row, values=values, wrong=wrong or [], **found)


@routes.post("/customers/{id:int}")
def save(visit: RequestContext, id: int) -> Response:
    """Change names, e-mail and group."""
    row, sent = visit.one("SELECT * FROM shop_customers WHERE id = ?", id), Checked(visit)
    first, last = sent.text("first", "First Name", most=60), sent.text("last", "Last Name", most=60)
    email, group = sent.email("email", "E-mail"), sent.choice("customer_group", "Group", GROUPS)
    if visit.value("SELECT 1 FROM shop_customers WHERE email = ? COLLATE NOCASE AND id <> ?", email, id):
        sent.refuse("A customer with this e-mail exists already.")
    if sent.wrong:
        return _page(visit, row, sent.as_sent(*FIELDS), sent.wrong)
    update = "UPDATE shop_customers SET first = ?, last = ?, email = ?, customer_group = ? WHERE id = ?"
    visit.write(update, first, last, email, group, id)
    visit.say("You saved the customer.")
    return Redirect(f"/customers/{id}")


def _subscription(visit: RequestContext, email: str) -> str | None:
    """The status of the newsletter's reader of that address, as the shop finds them."""
    found: str | None = visit.value("SELECT status FROM shop_subscribers WHERE lower(email) = lower(?)", email)
    return found


@routes.post("/customers/{id:int}/newsletter")
def newsletter(visit: RequestContext, id: int) -> Response:
    """Subscribe a customer, or the other way round."""
    row = visit.one("SELECT * FROM shop_customers WHERE id = ?", id)
    status = visit.form.choice("status", ("subscribed", "unsubscribed"), "unsubscribed")
    if _subscription(visit, row["email"]) is None:
        insert = "INSERT INTO shop_subscribers (email, customer, status, moment) VALUES (?, ?, ?, ?)"
        visit.write(insert, row["email"], id, status, stamp())
    elif status == "subscribed":
        update = "UPDATE shop_subscribers SET status = ?, moment = ? WHERE lower(email) = lower(?)"
        visit.write(update, status, stamp(), row["email"])
    else:
        visit.write("UPDATE shop_subscribers SET status = ? WHERE lower(email) = lower(?)", status, row["email"])
    visit.say(f"The customer is {status} now.")
    return Redirect(f"/customers/{id}")


@routes.get("/customers/{id:int}/addresses/{address:int}")
def address_form(visit: RequestContext, id: int, address: int) -> Response:
    """The form for an address of a customer."""
    found = visit.one("SELECT * FROM shop_addresses WHERE id = ? AND customer = ?", address, id)
    return _address_form(visit, id, {name: found[name] for name in ADDRESS}, [])


def _address_form(visit: RequestContext, id: int, values: dict[str, str], wrong: list[str]) -> Response:
    row = visit.one("SELECT * FROM shop_customers WHERE id = ?", id)
    return visit.page("customer_address.html", 422 if wrong else 200, customer=row, values=values, wrong=wrong)


@routes.post("/customers/{id:int}/addresses/{address:int}")
def save_address(visit: RequestContext, id: int, address: int) -> Response:
    """Change it, of this customer only."""
    visit.one("SELECT id FROM shop_addresses WHERE id = ? AND customer = ?", address, id)
    sent = Checked(visit)
    values = read_address(sent)
    if sent.wrong:
        return _address_form(visit, id, sent.as_sent(*ADDRESS), sent.wrong)
    visit.update("shop_addresses", address, values)
    visit.say("You saved the customer's address.")
    return Redirect(f"/customers/{id}")

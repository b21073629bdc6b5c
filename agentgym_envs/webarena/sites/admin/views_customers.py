"""Customers."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.admin.forms import CheckedForm, choices
from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
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
        GridColumn("id", "ID"),
        GridColumn("name", "Name"),
        GridColumn("email", "E-mail"),
        GridColumn("customer_group", "Group"),
        GridColumn("phone", "Phone"),
        GridColumn("zip", "ZIP"),
        GridColumn("region", "State/Region"),
        GridColumn("joined", "Customer Since", "day"),
    ),
    filters=(
        GridFilter("name", "Name"),
        GridFilter("email", "E-mail"),
        GridFilter("customer_group", "Group", "choice", choices(GROUPS)),
        GridFilter("phone", "Phone"),
        GridFilter("zip", "ZIP"),
        GridFilter("town", "City"),
        GridFilter("region", "State/Region"),
        GridFilter("joined", "Customer since", "day"),
    ),
    order="id",
    descending=False,
    path="/customers/{id}",
)
_ORDERED = """
SELECT COUNT(*) AS orders, COALESCE(SUM(total), 0) AS spent, MAX(moment) AS last FROM shop_orders
WHERE customer = ? AND status <> 'canceled'
"""


@routes.get("/customers")
def customers(context: RequestContext) -> Response:
    """List the customers."""
    return CUSTOMERS.page(context, "grid.html")


@routes.get("/customers/{id:int}")
def customer(context: RequestContext, id: int) -> Response:
    """Show the form of a customer, with their orders, addresses and reviews."""
    row = context.one("SELECT * FROM shop_customers WHERE id = ?", id)
    return _page(context, row, {name: row[name] for name in FIELDS})


def _page(
    context: RequestContext, row: sqlite3.Row, values: dict[str, str], errors: list[str] | None = None
) -> Response:
    id = row["id"]
    reviews = """SELECT r.*, p.name AS product_name FROM shop_reviews r JOIN shop_products p ON p.id = r.product
        WHERE r.customer = ? ORDER BY r.moment DESC, r.id DESC LIMIT 6"""
    details: dict[str, Any] = {
        "groups": choices(GROUPS),
        "totals": context.one(_ORDERED, id),
        "orders": context.rows(
            "SELECT * FROM shop_orders WHERE customer = ? ORDER BY moment DESC, id DESC LIMIT 8", id
        ),
        "order_count": context.value("SELECT COUNT(*) FROM shop_orders WHERE customer = ?", id),
        "addresses": context.rows("SELECT * FROM shop_addresses WHERE customer = ? ORDER BY id", id),
        "reviews": context.rows(reviews, id),
        "review_count": context.value("SELECT COUNT(*) FROM shop_reviews WHERE customer = ?", id),
        "subscription": _subscription(context, row["email"]),
    }
    return context.page(
        "customer.html", 422 if errors else 200, customer=row, values=values, errors=errors or [], **details
    )


@routes.post("/customers/{id:int}")
def save(context: RequestContext, id: int) -> Response:
    """Save the names, e-mail address and group of a customer."""
    row, form = context.one("SELECT * FROM shop_customers WHERE id = ?", id), CheckedForm(context)
    first, last = form.text("first", "First Name", most=60), form.text("last", "Last Name", most=60)
    email, group = form.email("email", "E-mail"), form.choice("customer_group", "Group", GROUPS)
    if context.value("SELECT 1 FROM shop_customers WHERE email = ? COLLATE NOCASE AND id <> ?", email, id):
        form.refuse("A customer with this e-mail exists already.")
    if form.errors:
        return _page(context, row, form.as_sent(*FIELDS), form.errors)
    update = "UPDATE shop_customers SET first = ?, last = ?, email = ?, customer_group = ? WHERE id = ?"
    context.write(update, first, last, email, group, id)
    context.flash("You saved the customer.")
    return Redirect(f"/customers/{id}")


def _subscription(context: RequestContext, email: str) -> str | None:
    """Return the newsletter status of an e-mail address, compared as the shop does."""
    subscription: str | None = context.value("SELECT status FROM shop_subscribers WHERE lower(email) = lower(?)", email)
    return subscription


@routes.post("/customers/{id:int}/newsletter")
def newsletter(context: RequestContext, id: int) -> Response:
    """Subscribe a customer to the newsletter, or unsubscribe them."""
    row = context.one("SELECT * FROM shop_customers WHERE id = ?", id)
    status = context.form.choice("status", ("subscribed", "unsubscribed"), "unsubscribed")
    if _subscription(context, row["email"]) is None:
        insert = "INSERT INTO shop_subscribers (email, customer, status, moment) VALUES (?, ?, ?, ?)"
        context.write(insert, row["email"], id, status, stamp())
    elif status == "subscribed":
        update = "UPDATE shop_subscribers SET status = ?, moment = ? WHERE lower(email) = lower(?)"
        context.write(update, status, stamp(), row["email"])
    else:
        context.write("UPDATE shop_subscribers SET status = ? WHERE lower(email) = lower(?)", status, row["email"])
    context.flash(f"The customer is {status} now.")
    return Redirect(f"/customers/{id}")


@routes.get("/customers/{id:int}/addresses/{address:int}")
def address_form(context: RequestContext, id: int, address: int) -> Response:
    """Show the form for an address of a customer."""
    row = context.one("SELECT * FROM shop_addresses WHERE id = ? AND customer = ?", address, id)
    return _address_form(context, id, {name: row[name] for name in ADDRESS}, [])


def _address_form(context: RequestContext, id: int, values: dict[str, str], errors: list[str]) -> Response:
    row = context.one("SELECT * FROM shop_customers WHERE id = ?", id)
    return context.page("customer_address.html", 422 if errors else 200, customer=row, values=values, errors=errors)


@routes.post("/customers/{id:int}/addresses/{address:int}")
def save_address(context: RequestContext, id: int, address: int) -> Response:
    """Save an address of this customer."""
    context.one("SELECT id FROM shop_addresses WHERE id = ? AND customer = ?", address, id)
    form = CheckedForm(context)
    values = read_address(form)
    if form.errors:
        return _address_form(context, id, form.as_sent(*ADDRESS), form.errors)
    context.update("shop_addresses", address, values)
    context.flash("You saved the customer's address.")
    return Redirect(f"/customers/{id}")

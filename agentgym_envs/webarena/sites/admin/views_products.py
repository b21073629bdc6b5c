"""Products: the grid with its mass actions, and the form to edit or add one."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.admin.forms import Checked, dollars, slug_of
from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.rendering import plural
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.words import words

routes = Routes()
_SOURCE = """
SELECT p.id, p.name, p.sku, p.price, p.special_price, p.stock, p.enabled, p.category, p.brand,
    k.name AS category_name, k.slug AS shelf,
    CASE p.enabled WHEN 1 THEN 'Enabled' ELSE 'Disabled' END AS status
FROM shop_products p JOIN shop_categories k ON k.id = p.category
"""
STATUSES = (("Enabled", "Enabled"), ("Disabled", "Disabled"))
PRODUCTS = Grid(
    title="Products",
    source=_SOURCE,
    columns=(
        Column("id", "ID"),
        Column("shelf", "Thumbnail", "picture"),
        Column("name", "Name"),
        Column("sku", "SKU"),
        Column("category_name", "Category"),
        Column("price", "Price", "money"),
        Column("stock", "Quantity", "number"),
        Column("status", "Status", "status"),
    ),
    filters=(
        Filter("name", "Name"),
        Filter("sku", "SKU"),
        Filter("brand", "Brand"),
        Filter("price", "Price", "money"),
        Filter("stock", "Quantity", "number"),
        Filter("category", "Category", "choice"),
        Filter("status", "Status", "choice", STATUSES),
    ),
    order="id",
    falling=False,
    path="/products/{id}",
    names="name",
    mass=("/products/mass", (("enable", "Enable"), ("disable", "Disable"))),
    size=10,
)
_ONE = "SELECT p.*, k.slug AS shelf FROM shop_products p JOIN shop_categories k ON k.id = p.category WHERE p.id = ?"
FIELDS = words("name sku price special_price cost stock weight category brand summary description")


def categories(visit: RequestContext) -> list[sqlite3.Row]:
    """Those that products are in, with the names of what they are under."""
    query = """SELECT k.id, k.name, above.name AS above FROM shop_categories k JOIN shop_categories above
        ON above.id = k.parent ORDER BY above.position, above.id, k.position, k.id"""
    return visit.rows(query)


@routes.get("/products")
def products(visit: RequestContext) -> Response:
    """All products."""
    choices = [(str(row["id"]), row["name"]) for row in categories(visit)]
    shown = PRODUCTS.show(visit, category=choices)
    return visit.page("grid.html", shown=shown, heading="Products", add=("Add Product", "/products/new"))


@routes.post("/products/mass")
def mass(visit: RequestContext) -> Response:
    """Enable or disable those that were ticked."""
    action = visit.form.choice("action", ("enable", "disable"))
    ids = dict.fromkeys(visit.form.numbers("id"))
    if not action or not ids:
        visit.say("Please select products and an action.", "error")
        return visit.back("/products")
    for id in ids:
        visit.write("UPDATE shop_products SET enabled = ? WHERE id = ?", int(action == "enable"), id)
    visit.say(f"A total of {plural(len(ids), 'record')} have been updated.")
    return visit.back("/products")


@routes.get("/products/new")
def new(visit: RequestContext) -> Response:
    """An empty form."""
    values = {**dict.fromkeys(FIELDS, ""), "stock": "0", "weight": "0", "enabled": "1"}
    return _form(visit, None, values)


@routes.get("/products/{id:int}")
def product(visit: RequestContext, id: int) -> Response:
    """The form with a product in it."""
    return product_page(visit, id)


def product_page(visit: RequestContext, id: int, **more: Any) -> Response:
    """The form with a product as it is."""
    row = visit.one(_ONE, id)
    values = {name: str(row[name]) for name in (*FIELDS, "enabled")}
    for name in ("price", "special_price", "cost"):
        values[name] = dollars(row[name])
    values.update({f"attribute_{one['id']}": one["value"] for one in _attributes(visit, id)})
    return _form(visit, row, values, **more)


def _attributes(visit: RequestContext, id: int) -> list[sqlite3.Row]:
    return visit.rows("SELECT * FROM shop_attributes WHERE product = ? ORDER BY id", id)


def _form(
    visit: RequestContext, row: sqlite3.Row | None, values: dict[str, str], wrong: list[str] | None = None
) -> Response:
    id = row["id"] if row else 0
    return visit.page(
        "product.html",
        422 if wrong else 200,
        product=row,
        values=values,
        wrong=wrong or [],
        categories=categories(visit),
        attributes=_attributes(visit, id),
        options=visit.rows("SELECT * FROM shop_options WHERE product = ? ORDER BY name, position, id", id),
    )


def _read(visit: RequestContext, sent: Checked, id: int) -> dict[str, Any]:
    """The columns that the form says."""
    values: dict[str, Any] = {
        "name": sent.text("name", "Product Name"),
        "sku": sent.text("sku", "SKU", most=64),
        "price": sent.amount("price", "Price"),
        "special_price": sent.amount_or_none("special_price", "Special Price"),
        "cost": sent.amount("cost", "Cost") if sent.form.text("cost") else 0,
        "stock": sent.number("stock", "Quantity"),
        "weight": sent.number("weight", "Weight"),
        "category": sent.number("category", "Category"),
        "brand": sent.text("brand", "Brand", most=60),
        "summary": sent.text("summary", "Short Description", most=500, needed=False),
        "description": sent.text("description", "Description", most=5_000, needed=False),
        "enabled": sent.ticked("enabled"),
    }
    if values["category"] not in [row["id"] for row in categories(visit)]:
        sent.refuse("Category: please choose one of the list.")
    if values["special_price"] is not None and values["special_price"] >= values["price"]:
        sent.refuse("Special Price must be less than Price.")
    if visit.value("SELECT 1 FROM shop_products WHERE sku = ? AND id <> ?", values["sku"], id):
        sent.refuse("The SKU is taken by another product.")
    return values


@routes.post("/products/new")
def add(visit: RequestContext) -> Response:
    """Add a simple product."""
    sent = Checked(visit)
    values = _read(visit, sent, 0)
    if sent.wrong:
        return _form(visit, None, sent.as_sent(*FIELDS, "enabled"), sent.wrong)
    values |= {"slug": _free_slug(visit, values["name"]), "created": stamp()}
    id = visit.insert("shop_products", values)
    visit.say("You saved the product.")
    return Redirect(f"/products/{id}")


def _free_slug(visit: RequestContext, name: str) -> str:
    """A part of an address that no product has."""
    slug, number = slug_of(name) or "product", 2
    free = slug
    while visit.value("SELECT 1 FROM shop_products WHERE slug = ?", free):
        free, number = f"{slug}-{number}", number + 1
    return free


@routes.post("/products/{id:int}")
def save(visit: RequestContext, id: int) -> Response:
    """Change a product and its attributes."""
    row, sent = visit.one(_ONE, id), Checked(visit)
    values, attributes = _read(visit, sent, id), _attributes(visit, id)
    named = [f"attribute_{one['id']}" for one in attributes]
    given = [sent.text(name, one["name"], most=120, needed=False) for name, one in zip(named, attributes, strict=True)]
    if sent.wrong:
        return _form(visit, row, sent.as_sent(*FIELDS, "enabled", *named), sent.wrong)
    visit.update("shop_products", id, values)
    for one, value in zip(attributes, given, strict=True):
        _save_attribute(visit, one["id"], value)
    visit.say("You saved the product.")
    return Redirect(f"/products/{id}")


def _save_attribute(visit: RequestContext, id: int, value: str) -> None:
    """An empty value takes it away."""
    if value:
        visit.write("UPDATE shop_attributes SET value = ? WHERE id = ?", value, id)
    else:
        visit.write("DELETE FROM shop_attributes WHERE id = ?", id)

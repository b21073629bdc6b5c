"""Products: the grid with its mass actions, and the form to edit or add one."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.admin.forms import CheckedForm, dollars, slug_of
from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
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
        GridColumn("id", "ID"),
        GridColumn("shelf", "Thumbnail", "picture"),
        GridColumn("name", "Name"),
        GridColumn("sku", "SKU"),
        GridColumn("category_name", "Category"),
        GridColumn("price", "Price", "money"),
        GridColumn("stock", "Quantity", "number"),
        GridColumn("status", "Status", "status"),
    ),
    filters=(
        GridFilter("name", "Name"),
        GridFilter("sku", "SKU"),
        GridFilter("brand", "Brand"),
        GridFilter("price", "Price", "money"),
        GridFilter("stock", "Quantity", "number"),
        GridFilter("category", "Category", "choice"),
        GridFilter("status", "Status", "choice", STATUSES),
    ),
    order="id",
    descending=False,
    path="/products/{id}",
    link_column="name",
    mass_actions=("/products/mass", (("enable", "Enable"), ("disable", "Disable"))),
    size=10,
)
_ONE = "SELECT p.*, k.slug AS shelf FROM shop_products p JOIN shop_categories k ON k.id = p.category WHERE p.id = ?"
FIELDS = words("name sku price special_price cost stock weight category brand summary description")


def categories(context: RequestContext) -> list[sqlite3.Row]:
    """Return the categories that contain products, with the names of their parents."""
    query = """SELECT k.id, k.name, above.name AS above FROM shop_categories k JOIN shop_categories above
        ON above.id = k.parent ORDER BY above.position, above.id, k.position, k.id"""
    return context.rows(query)


@routes.get("/products")
def products(context: RequestContext) -> Response:
    """List the products."""
    choices = [(str(row["id"]), row["name"]) for row in categories(context)]
    shown = PRODUCTS.show(context, category=choices)
    return context.page("grid.html", shown=shown, heading="Products", add=("Add Product", "/products/new"))


@routes.post("/products/mass")
def mass_update(context: RequestContext) -> Response:
    """Enable or disable the selected products."""
    action = context.form.choice("action", ("enable", "disable"))
    ids = dict.fromkeys(context.form.numbers("id"))
    if not action or not ids:
        context.flash("Please select products and an action.", "error")
        return context.redirect_back("/products")
    for id in ids:
        context.write("UPDATE shop_products SET enabled = ? WHERE id = ?", int(action == "enable"), id)
    context.flash(f"A total of {plural(len(ids), 'record')} have been updated.")
    return context.redirect_back("/products")


@routes.get("/products/new")
def new(context: RequestContext) -> Response:
    """Show an empty form."""
    values = {**dict.fromkeys(FIELDS, ""), "stock": "0", "weight": "0", "enabled": "1"}
    return _form(context, None, values)


@routes.get("/products/{id:int}")
def product(context: RequestContext, id: int) -> Response:
    """Show the form of a product."""
    return product_page(context, id)


def product_page(context: RequestContext, id: int, **more: Any) -> Response:
    """Return the form of a product with its stored values."""
    row = context.one(_ONE, id)
    values = {name: str(row[name]) for name in (*FIELDS, "enabled")}
    for name in ("price", "special_price", "cost"):
        values[name] = dollars(row[name])
    values.update({f"attribute_{one['id']}": one["value"] for one in _attributes(context, id)})
    return _form(context, row, values, **more)


def _attributes(context: RequestContext, id: int) -> list[sqlite3.Row]:
    return context.rows("SELECT * FROM shop_attributes WHERE product = ? ORDER BY id", id)


def _form(
    context: RequestContext, row: sqlite3.Row | None, values: dict[str, str], errors: list[str] | None = None
) -> Response:
    id = row["id"] if row else 0
    return context.page(
        "product.html",
        422 if errors else 200,
        product=row,
        values=values,
        errors=errors or [],
        categories=categories(context),
        attributes=_attributes(context, id),
        options=context.rows("SELECT * FROM shop_options WHERE product = ? ORDER BY name, position, id", id),
    )


def _read(context: RequestContext, form: CheckedForm, id: int) -> dict[str, Any]:
    """Return the columns from the form."""
    values: dict[str, Any] = {
        "name": form.text("name", "Product Name"),
        "sku": form.text("sku", "SKU", most=64),
        "price": form.amount("price", "Price"),
        "special_price": form.amount_or_none("special_price", "Special Price"),
        "cost": form.amount("cost", "Cost") if form.fields.text("cost") else 0,
        "stock": form.number("stock", "Quantity"),
        "weight": form.number("weight", "Weight"),
        "category": form.number("category", "Category"),
        "brand": form.text("brand", "Brand", most=60),
        "summary": form.text("summary", "Short Description", most=500, needed=False),
        "description": form.text("description", "Description", most=5_000, needed=False),
        "enabled": form.flag("enabled"),
    }
    if values["category"] not in [row["id"] for row in categories(context)]:
        form.refuse("Category: please choose one of the list.")
    if values["special_price"] is not None and values["special_price"] >= values["price"]:
        form.refuse("Special Price must be less than Price.")
    if context.value("SELECT 1 FROM shop_products WHERE sku = ? AND id <> ?", values["sku"], id):
        form.refuse("The SKU is taken by another product.")
    return values


@routes.post("/products/new")
def add(context: RequestContext) -> Response:
    """Add a simple product."""
    form = CheckedForm(context)
    values = _read(context, form, 0)
    if form.errors:
        return _form(context, None, form.as_sent(*FIELDS, "enabled"), form.errors)
    values |= {"slug": _free_slug(context, values["name"]), "created": stamp()}
    id = context.insert("shop_products", values)
    context.flash("You saved the product.")
    return Redirect(f"/products/{id}")


def _free_slug(context: RequestContext, name: str) -> str:
    """Return a slug that no product has."""
    slug, number = slug_of(name) or "product", 2
    free = slug
    while context.value("SELECT 1 FROM shop_products WHERE slug = ?", free):
        free, number = f"{slug}-{number}", number + 1
    return free


@routes.post("/products/{id:int}")
def save(context: RequestContext, id: int) -> Response:
    """Save a product and its attributes."""
    row, form = context.one(_ONE, id), CheckedForm(context)
    values, attributes = _read(context, form, id), _attributes(context, id)
    named = [f"attribute_{one['id']}" for one in attributes]
    given = [form.text(name, one["name"], most=120, needed=False) for name, one in zip(named, attributes, strict=True)]
    if form.errors:
        return _form(context, row, form.as_sent(*FIELDS, "enabled", *named), form.errors)
    context.update("shop_products", id, values)
    for one, value in zip(attributes, given, strict=True):
        _save_attribute(context, one["id"], value)
    context.flash("You saved the product.")
    return Redirect(f"/products/{id}")


def _save_attribute(context: RequestContext, id: int, value: str) -> None:
    """Save an attribute; an empty value deletes it."""
    if value:
        context.write("UPDATE shop_attributes SET value = ? WHERE id = ?", value, id)
    else:
        context.write("DELETE FROM shop_attributes WHERE id = ?", id)

"""Parts of a product: its attributes and the options that a customer can choose."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.forms import CheckedForm
from agentgym_envs.webarena.sites.admin.views_products import product_page
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()


@routes.post("/products/{id:int}/attributes")
def add_attribute(context: RequestContext, id: int) -> Response:
    """Add an attribute to a product."""
    context.one("SELECT id FROM shop_products WHERE id = ?", id)
    form = CheckedForm(context)
    name = form.text("attribute_name", "Attribute", most=40)
    value = form.text("attribute_value", "Attribute Value", most=120)
    if context.value("SELECT 1 FROM shop_attributes WHERE product = ? AND name = ?", id, name):
        form.refuse(f"The product has an attribute “{name}” already.")
    if form.errors:
        return product_page(context, id, errors=form.errors)
    context.write("INSERT INTO shop_attributes (product, name, value) VALUES (?, ?, ?)", id, name, value)
    context.flash("You added the attribute.")
    return Redirect(f"/products/{id}")


@routes.post("/products/{id:int}/options")
def add_option(context: RequestContext, id: int) -> Response:
    """Add an option value after the existing ones."""
    context.one("SELECT id FROM shop_products WHERE id = ?", id)
    form = CheckedForm(context)
    name, value = form.text("option_name", "Option", most=40), form.text("option_value", "Option Value", most=60)
    extra = form.amount("option_extra", "Extra Price") if form.fields.text("option_extra") else 0
    if context.value("SELECT 1 FROM shop_options WHERE product = ? AND name = ? AND value = ?", id, name, value):
        form.refuse(f"The product has an option “{name}: {value}” already.")
    if form.errors:
        return product_page(context, id, errors=form.errors)
    last = context.value("SELECT COALESCE(MAX(position), 0) FROM shop_options WHERE product = ? AND name = ?", id, name)
    insert = "INSERT INTO shop_options (product, name, value, extra, position) VALUES (?, ?, ?, ?, ?)"
    context.write(insert, id, name, value, extra, last + 1)
    context.flash("You added the option.")
    return Redirect(f"/products/{id}")


@routes.post("/products/{id:int}/options/{option:int}/delete")
def delete_option(context: RequestContext, id: int, option: int) -> Response:
    """Delete an option value."""
    context.one("SELECT id FROM shop_options WHERE id = ? AND product = ?", option, id)
    context.write("DELETE FROM shop_options WHERE id = ?", option)
    context.flash("You deleted the option.")
    return Redirect(f"/products/{id}")

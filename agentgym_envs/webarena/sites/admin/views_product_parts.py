"""What belongs to a product: attributes that it has, options that a customer chooses from."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.forms import Checked
from agentgym_envs.webarena.sites.admin.views_products import product_page
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()


@routes.post("/products/{id:int}/attributes")
def add_attribute(visit: RequestContext, id: int) -> Response:
    """Say something more of a product."""
    visit.one("SELECT id FROM shop_products WHERE id = ?", id)
    sent = Checked(visit)
    name = sent.text("attribute_name", "Attribute", most=40)
    value = sent.text("attribute_value", "Attribute Value", most=120)
    if visit.value("SELECT 1 FROM shop_attributes WHERE product = ? AND name = ?", id, name):
        sent.refuse(f"The product has an attribute “{name}” already.")
    if sent.wrong:
        return product_page(visit, id, wrong=sent.wrong)
    visit.write("INSERT INTO shop_attributes (product, name, value) VALUES (?, ?, ?)", id, name, value)
    visit.say("You added the attribute.")
    return Redirect(f"/products/{id}")


@routes.post("/products/{id:int}/options")
def add_option(visit: RequestContext, id: int) -> Response:
    """Add a value to choose from, behind the others."""
    visit.one("SELECT id FROM shop_products WHERE id = ?", id)
    sent = Checked(visit)
    name, value = sent.text("option_name", "Option", most=40), sent.text("option_value", "Option Value", most=60)
    extra = sent.amount("option_extra", "Extra Price") if sent.form.text("option_extra") else 0
    if visit.value("SELECT 1 FROM shop_options WHERE product = ? AND name = ? AND value = ?", id, name, value):
        sent.refuse(f"The product has an option “{name}: {value}” already.")
    if sent.wrong:
        return product_page(visit, id, wrong=sent.wrong)
    last = visit.value("SELECT COALESCE(MAX(position), 0) FROM shop_options WHERE product = ? AND name = ?", id, name)
    insert = "INSERT INTO shop_options (product, name, value, extra, position) VALUES (?, ?, ?, ?, ?)"
    visit.write(insert, id, name, value, extra, last + 1)
    visit.say("You added the option.")
    return Redirect(f"/products/{id}")


@routes.post("/products/{id:int}/options/{option:int}/delete")
def delete_option(visit: RequestContext, id: int, option: int) -> Response:
    """Offer a value no longer."""
    visit.one("SELECT id FROM shop_options WHERE id = ? AND product = ?", option, id)
    visit.write("DELETE FROM shop_options WHERE id = ?", option)
    visit.say("You deleted the option.")
    return Redirect(f"/products/{id}")

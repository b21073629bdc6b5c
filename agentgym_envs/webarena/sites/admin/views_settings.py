"""Settings of the store."""

from __future__ import annotations

from typing import NamedTuple

from agentgym_envs.webarena.sites.admin.forms import CheckedForm, dollars
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()


class StoreSetting(NamedTuple):
    """A setting: its name in the table and its label; `kind` is text, email, money or number."""

    name: str
    label: str
    kind: str = "text"
    most: int = 120


GROUPS = (
    (
        "Store Information",
        (
            StoreSetting("store_name", "Store Name"),
            StoreSetting("email", "Store E-mail", "email"),
            StoreSetting("phone", "Store Phone Number"),
            StoreSetting("hours", "Store Hours of Operation"),
            StoreSetting("street", "Street Address"),
            StoreSetting("town", "City"),
        ),
    ),
    (
        "Shipping and Tax",
        (
            StoreSetting("standard_rate", "Standard Shipping Rate", "money"),
            StoreSetting("express_rate", "Express Shipping Rate", "money"),
            StoreSetting("free_shipping_from", "Free Shipping From", "money"),
            StoreSetting("delivery_days", "Delivery Time in Days"),
            StoreSetting("tax_percent", "Tax Percent", "number", 50),
            StoreSetting("return_days", "Days to Return", "number", 365),
        ),
    ),
)
_ALL = tuple(setting for _, settings in GROUPS for setting in settings)


@routes.get("/settings")
def settings(context: RequestContext) -> Response:
    """Show the form."""
    stored = {row["name"]: row["value"] for row in context.rows("SELECT name, value FROM shop_settings")}
    values = {one.name: _shown(one, stored.get(one.name, "")) for one in _ALL}
    return context.page("settings.html", groups=GROUPS, values=values, errors=[])


def _shown(setting: StoreSetting, value: str) -> str:
    return dollars(int(value)) if setting.kind == "money" and value.isdecimal() else value


@routes.post("/settings")
def save(context: RequestContext) -> Response:
    """Save all settings."""
    form = CheckedForm(context)
    values = {one.name: _read(form, one) for one in _ALL}
    if form.errors:
        names = (one.name for one in _ALL)
        return context.page("settings.html", 422, groups=GROUPS, values=form.as_sent(*names), errors=form.errors)
    for name, value in values.items():
        context.write("UPDATE shop_settings SET value = ? WHERE name = ?", value, name)
    context.flash("You saved the configuration.")
    return Redirect("/settings")


def _read(form: CheckedForm, setting: StoreSetting) -> str:
    """Return a setting as the table stores it; amounts are stored in cents."""
    if setting.kind == "money":
        return str(form.amount(setting.name, setting.label))
    if setting.kind == "number":
        return str(form.number(setting.name, setting.label, most=setting.most))
    if setting.kind == "email":
        return form.email(setting.name, setting.label)
    return form.text(setting.name, setting.label, most=setting.most)

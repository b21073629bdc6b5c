"""The settings of the store."""

from __future__ import annotations

from typing import NamedTuple

from agentgym_envs.webarena.sites.admin.forms import Checked, dollars
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()


class Setting(NamedTuple):
    """A setting: what it is called in the table and in the form; `kind` is text, email, money or number."""

    name: str
    label: str
    kind: str = "text"
    most: int = 120


GROUPS = (
    (
        "Store Information",
        (
            Setting("store_name", "Store Name"),
            Setting("email", "Store E-mail", "email"),
            Setting("phone", "Store Phone Number"),
            Setting("hours", "Store Hours of Operation"),
            Setting("street", "Street Address"),
            Setting("town", "City"),
        ),
    ),
    (
        "Shipping and Tax",
        (
            Setting("standard_rate", "Standard Shipping Rate", "money"),
            Setting("express_rate", "Express Shipping Rate", "money"),
            Setting("free_shipping_from", "Free Shipping From", "money"),
            Setting("delivery_days", "Delivery Time in Days"),
            Setting("tax_percent", "Tax Percent", "number", 50),
            Setting("return_days", "Days to Return", "number", 365),
        ),
    ),
)
_ALL = tuple(setting for _, settings in GROUPS for setting in settings)


@routes.get("/settings")
def settings(visit: RequestContext) -> Response:
    """The form."""
    stored = {row["name"]: row["value"] for row in visit.rows("SELECT name, value FROM shop_settings")}
    values = {one.name: _shown(one, stored.get(one.name, "")) for one in _ALL}
    return visit.page("settings.html", groups=GROUPS, values=values, wrong=[])


def _shown(setting: Setting, value: str) -> str:
    return dollars(int(value)) if setting.kind == "money" and value.isdecimal() else value


@routes.post("/settings")
def save(visit: RequestContext) -> Response:
    """Change them all."""
    sent = Checked(visit)
    values = {one.name: _read(sent, one) for one in _ALL}
    if sent.wrong:
        names = (one.name for one in _ALL)
        return visit.page("settings.html", 422, groups=GROUPS, values=sent.as_sent(*names), wrong=sent.wrong)
    for name, value in values.items():
        visit.write("UPDATE shop_settings SET value = ? WHERE name = ?", value, name)
    visit.say("You saved the configuration.")
    return Redirect("/settings")


def _read(sent: Checked, setting: Setting) -> str:
    """A setting as the table holds it, where amounts are cents."""
    if setting.kind == "money":
        return str(sent.amount(setting.name, setting.label))
    if setting.kind == "number":
        return str(sent.number(setting.name, setting.label, most=setting.most))
    if setting.kind == "email":
        return sent.email(setting.name, setting.label)
    return sent.text(setting.name, setting.label, most=setting.most)

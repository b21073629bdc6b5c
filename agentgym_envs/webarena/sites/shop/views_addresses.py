"""The addresses of the customer."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.store import customer_of

routes = Routes()
_FIELDS = ("name", "street", "town", "region", "zip", "phone")


@routes.get("/account/addresses")
def addresses(context: RequestContext) -> Response:
    """List the addresses."""
    customer = customer_of(context)
    rows = context.rows("SELECT * FROM shop_addresses WHERE customer = ? ORDER BY id", customer["id"])
    return context.page("addresses.html", addresses=rows, default=customer["address"])


@routes.get("/account/addresses/new")
def new(context: RequestContext) -> Response:
    """Show an empty form."""
    customer = customer_of(context)
    values = dict.fromkeys(_FIELDS, "") | {"name": f"{customer['first']} {customer['last']}"}
    return _form(context, 0, values)


@routes.get("/account/addresses/{number:int}")
def edit(context: RequestContext, number: int) -> Response:
    """Show the form of an address."""
    return _form(context, number, dict(_address(context, number)))


@routes.post("/account/addresses/new")
def add(context: RequestContext) -> Response:
    """Add an address."""
    return _save(context, 0)


@routes.post("/account/addresses/{number:int}")
def save(context: RequestContext, number: int) -> Response:
    """Save an address."""
    return _save(context, _address(context, number)["id"])


@routes.post("/account/addresses/{number:int}/default")
def make_default(context: RequestContext, number: int) -> Response:
    """Make an address the default."""
    _make_default(context, _address(context, number)["id"])
    context.flash("The default address was changed.")
    return Redirect("/account/addresses")


@routes.post("/account/addresses/{number:int}/delete")
def delete(context: RequestContext, number: int) -> Response:
    """Delete an address, unless it is the default."""
    address = _address(context, number)
    context.require(address["id"] != customer_of(context)["address"], "The default address cannot be deleted.")
    context.write("DELETE FROM shop_addresses WHERE id = ?", address["id"])
    context.flash("You deleted the address.")
    return Redirect("/account/addresses")


def _form(context: RequestContext, number: int, values: dict[str, str], error: str = "") -> Response:
    regions = [row["region"] for row in context.rows("SELECT DISTINCT region FROM shop_addresses ORDER BY region")]
    default = bool(number) and customer_of(context)["address"] == number
    page = {"number": number, "values": values, "regions": regions, "is_default": default, "error": error}
    return context.page("address.html", 422 if error else 200, **page)


def _save(context: RequestContext, number: int) -> Response:
    account = context.require_login()
    values = {name: context.form.text(name, most=120) for name in _FIELDS}
    if not all(values.values()):
        return _form(context, number, values, "Please fill in all fields.")
    if number:
        context.update("shop_addresses", number, values)
    else:
        number = context.insert("shop_addresses", {"customer": account, **values})
    if context.form.is_checked("default"):
        _make_default(context, number)
    context.flash("You saved the address.")
    return Redirect("/account/addresses")


def _make_default(context: RequestContext, number: int) -> None:
    context.write("UPDATE shop_customers SET address = ? WHERE id = ?", number, context.account)


def _address(context: RequestContext, number: int) -> sqlite3.Row:
    """Return an address of the signed-in customer."""
    account = context.require_login()
    address = context.row("SELECT * FROM shop_addresses WHERE id = ? AND customer = ?", number, account)
    if address is None:
        raise NotFound("You have no such address.")
    return address

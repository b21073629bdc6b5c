"""The customer's addresses."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Missing, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.store import customer_of

routes = Routes()
_FIELDS = ("name", "street", "town", "region", "zip", "phone")


@routes.get("/account/addresses")
def addresses(visit: RequestContext) -> Response:
    """All of them."""
    customer = customer_of(visit)
    rows = visit.rows("SELECT * FROM shop_addresses WHERE customer = ? ORDER BY id", customer["id"])
    return visit.page("addresses.html", addresses=rows, default=customer["address"])


@routes.get("/account/addresses/new")
def new(visit: RequestContext) -> Response:
    """The form for another one."""
    customer = customer_of(visit)
    values = dict.fromkeys(_FIELDS, "") | {"name": f"{customer['first']} {customer['last']}"}
    return _form(visit, 0, values)


@routes.get("/account/addresses/{number:int}")
def edit(visit: RequestContext, number: int) -> Response:
    """The form for one that there is."""
    return _form(visit, number, dict(_address(visit, number)))


@routes.post("/account/addresses/new")
def add(visit: RequestContext) -> Response:
    """Another address."""
    return _save(visit, 0)


@routes.post("/account/addresses/{number:int}")
def save(visit: RequestContext, number: int) -> Response:
    """A changed address."""
    return _save(visit, _address(visit, number)["id"])


@routes.post("/account/addresses/{number:int}/default")
def make_default(visit: RequestContext, number: int) -> Response:
    """The address that parcels go to unless another is chosen."""
    _make_default(visit, _address(visit, number)["id"])
    visit.say("The default address was changed.")
    return Redirect("/account/addresses")


@routes.post("/account/addresses/{number:int}/delete")
def delete(visit: RequestContext, number: int) -> Response:
    """Delete one; the default one stays."""
    found = _address(visit, number)
    visit.must(found["id"] != customer_of(visit)["address"], "The default address cannot be deleted.")
    visit.write("DELETE FROM shop_addresses WHERE id = ?", found["id"])
    visit.say("You deleted the address.")
    return Redirect("/account/addresses")


def _form(visit: RequestContext, number: int, values: dict[str, str], wrong: str = "") -> Response:
    regions = [row["region"] for row in visit.rows("SELECT DISTINCT region FROM shop_addresses ORDER BY region")]
    default = bool(number) and customer_of(visit)["address"] == number
    page = {"number": number, "values": values, "regions": regions, "is_default": default, "wrong": wrong}
    return visit.page("address.html", 422 if wrong else 200, **page)


def _save(visit: RequestContext, number: int) -> Response:
    account = visit.must_be_signed_in()
    values = {name: visit.form.text(name, most=120) for name in _FIELDS}
    if not all(values.values()):
        return _form(visit, number, values, "Please fill in all fields.")
    if number:
        visit.update("shop_addresses", number, values)
    else:
        number = visit.insert("shop_addresses", {"customer": account, **values})
    if visit.form.ticked("default"):
        _make_default(visit, number)
    visit.say("You saved the address.")
    return Redirect("/account/addresses")


def _make_default(visit: RequestContext, number: int) -> None:
    visit.write("UPDATE shop_customers SET address = ? WHERE id = ?", number, visit.account)


def _address(visit: RequestContext, number: int) -> sqlite3.Row:
    """An address of who is signed in."""
    account = visit.must_be_signed_in()
    found = visit.row("SELECT * FROM shop_addresses WHERE id = ? AND customer = ?", number, account)
    if found is None:
        raise Missing("You have no such address.")
    return found

"""Cart price rules, with or without coupons."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.admin.forms import CheckedForm, choices, dollars
from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
from agentgym_envs.webarena.sites.admin.views_customers import GROUPS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
KINDS = (("percent", "Percent of the cart"), ("fixed", "Fixed amount for the whole cart"))
FIELDS = ("name", "description", "active", "customer_group", "coupon", "starts", "ends", "kind", "amount", "minimum")
_CODE = re.compile(r"[A-Za-z0-9_-]{2,30}")
_STATUSES = (("Active", "Active"), ("Inactive", "Inactive"))
_SOURCE = """
SELECT id, name, coupon, starts, ends, used, CASE active WHEN 1 THEN 'Active' ELSE 'Inactive' END AS status,
    CASE kind WHEN 'percent' THEN amount || '%' ELSE printf('$%.2f', amount / 100.0) END AS discount
FROM shop_rules
"""
RULES = Grid(
    title="Cart Price Rules",
    source=_SOURCE,
    columns=(
        GridColumn("id", "ID"),
        GridColumn("name", "Rule"),
        GridColumn("coupon", "Coupon Code"),
        GridColumn("discount", "Discount"),
        GridColumn("starts", "Start", "day"),
        GridColumn("ends", "End", "day"),
        GridColumn("used", "Uses", "number"),
        GridColumn("status", "Status", "status"),
    ),
    filters=(
        GridFilter("name", "Rule"),
        GridFilter("coupon", "Coupon code"),
        GridFilter("starts", "Start", "day"),
        GridFilter("ends", "End", "day"),
        GridFilter("status", "Status", "choice", _STATUSES),
    ),
    order="id",
    descending=False,
    path="/rules/{id}",
)


@routes.get("/rules")
def rules(context: RequestContext) -> Response:
    """List the rules."""
    return RULES.page(context, "grid.html", add=("Add New Rule", "/rules/new"))


@routes.get("/rules/new")
def new(context: RequestContext) -> Response:
    """Show an empty form."""
    return _form(context, None, {**dict.fromkeys(FIELDS, ""), "active": "1", "kind": "percent", "minimum": "0.00"}, [])


@routes.get("/rules/{id:int}")
def rule(context: RequestContext, id: int) -> Response:
    """Show the form of a rule."""
    row = context.one("SELECT * FROM shop_rules WHERE id = ?", id)
    values = {name: "" if row[name] is None else str(row[name]) for name in FIELDS}
    values["minimum"] = dollars(row["minimum"])
    if row["kind"] == "fixed":
        values["amount"] = dollars(row["amount"])
    return _form(context, row, values, [])


def _form(context: RequestContext, row: sqlite3.Row | None, values: dict[str, str], errors: list[str]) -> Response:
    status = 422 if errors else 200
    groups = [("", "All groups"), *choices(GROUPS)]
    return context.page("rule.html", status, rule=row, values=values, errors=errors, kinds=KINDS, groups=groups)


def _read(context: RequestContext, form: CheckedForm, id: int) -> dict[str, Any]:
    kind = form.choice("kind", "Apply", [key for key, _ in KINDS])
    starts, ends = form.day("starts", "From"), form.day("ends", "To")
    if starts and ends and ends < starts:
        form.refuse("To must not be before From.")
    return {
        "name": form.text("name", "Rule Name", most=120),
        "description": form.text("description", "Description", most=1_000, needed=False),
        "active": form.flag("active"),
        "customer_group": form.choice("customer_group", "Customer Group", ("", *GROUPS)),
        "coupon": _coupon(context, form, id),
        "starts": starts and starts.isoformat(),
        "ends": ends and ends.isoformat(),
        "kind": kind,
        "amount": _amount(form, kind),
        "minimum": form.amount("minimum", "Minimum Subtotal") if form.fields.text("minimum") else 0,
    }


def _amount(form: CheckedForm, kind: str) -> int:
    if kind == "percent":
        return form.percent("amount", "Discount Amount")
    amount = form.amount("amount", "Discount Amount")
    if amount == 0 and form.fields.money("amount") == 0:
        form.refuse("Discount Amount must be positive.")
    return amount


def _coupon(context: RequestContext, form: CheckedForm, id: int) -> str:
    code = form.fields.text("coupon")
    if code and not _CODE.fullmatch(code):
        form.refuse("Coupon Code must be 2 to 30 letters, digits, “-” or “_”.")
    if code and context.value("SELECT 1 FROM shop_rules WHERE coupon = ? COLLATE NOCASE AND id <> ?", code, id):
        form.refuse("A rule with this coupon code exists already.")
    return code


@routes.post("/rules/new")
def add(context: RequestContext) -> Response:
    """Add a rule."""
    form = CheckedForm(context)
    values = _read(context, form, 0)
    if form.errors:
        return _form(context, None, form.as_sent(*FIELDS), form.errors)
    context.insert("shop_rules", values)
    context.flash("You saved the rule.")
    return Redirect("/rules")


@routes.post("/rules/{id:int}")
def save(context: RequestContext, id: int) -> Response:
    """Save a rule."""
    row, form = context.one("SELECT * FROM shop_rules WHERE id = ?", id), CheckedForm(context)
    values = _read(context, form, id)
    if form.errors:
        return _form(context, row, form.as_sent(*FIELDS), form.errors)
    context.update("shop_rules", id, values)
    context.flash("You saved the rule.")
    return Redirect("/rules")


@routes.post("/rules/{id:int}/delete")
def delete(context: RequestContext, id: int) -> Response:
    """Delete a rule."""
    context.one("SELECT id FROM shop_rules WHERE id = ?", id)
    context.write("DELETE FROM shop_rules WHERE id = ?", id)
    context.flash("You deleted the rule.")
    return Redirect("/rules")

"""Cart price rules, with coupons or without."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.admin.forms import Checked, choices, dollars
from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
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
        Column("id", "ID"),
        Column("name", "Rule"),
        Column("coupon", "Coupon Code"),
        Column("discount", "Discount"),
        Column("starts", "Start", "day"),
        Column("ends", "End", "day"),
        Column("used", "Uses", "number"),
        Column("status", "Status", "status"),
    ),
    filters=(
        Filter("name", "Rule"),
        Filter("coupon", "Coupon code"),
        Filter("starts", "Start", "day"),
        Filter("ends", "End", "day"),
        Filter("status", "Status", "choice", _STATUSES),
    ),
    order="id",
    falling=False,
    path="/rules/{id}",
)


@routes.get("/rules")
def rules(visit: RequestContext) -> Response:
    """All rules."""
    return RULES.page(visit, "grid.html", add=("Add New Rule", "/rules/new"))


@routes.get("/rules/new")
def new(visit: RequestContext) -> Response:
    """An empty form."""
    return _form(visit, None, {**dict.fromkeys(FIELDS, ""), "active": "1", "kind": "percent", "minimum": "0.00"}, [])


@routes.get("/rules/{id:int}")
def rule(visit: RequestContext, id: int) -> Response:
    """The form with a rule in it."""
    row = visit.one("SELECT * FROM shop_rules WHERE id = ?", id)
    values = {name: "" if row[name] is None else str(row[name]) for name in FIELDS}
    values["minimum"] = dollars(row["minimum"])
    if row["kind"] == "fixed":
        values["amount"] = dollars(row["amount"])
    return _form(visit, row, values, [])


def _form(visit: RequestContext, row: sqlite3.Row | None, values: dict[str, str], wrong: list[str]) -> Response:
    status = 422 if wrong else 200
    groups = [("", "All groups"), *choices(GROUPS)]
    return visit.page("rule.html", status, rule=row, values=values, wrong=wrong, kinds=KINDS, groups=groups)


def _read(visit: RequestContext, sent: Checked, id: int) -> dict[str, Any]:
    kind = sent.choice("kind", "Apply", [key for key, _ in KINDS])
    starts, ends = sent.day("starts", "From"), sent.day("ends", "To")
    if starts and ends and ends < starts:
        sent.refuse("To must not be before From.")
    return {
        "name": sent.text("name", "Rule Name", most=120),
        "description": sent.text("description", "Description", most=1_000, needed=False),
        "active": sent.ticked("active"),
        "customer_group": sent.choice("customer_group", "Customer Group", ("", *GROUPS)),
        "coupon": _coupon(visit, sent, id),
        "starts": starts and starts.isoformat(),
        "ends": ends and ends.isoformat(),
        "kind": kind,
        "amount": _amount(sent, kind),
        "minimum": sent.amount("minimum", "Minimum Subtotal") if sent.form.text("minimum") else 0,
    }


def _amount(sent: Checked, kind: str) -> int:
    if kind == "percent":
        return sent.percent("amount", "Discount Amount")
    amount = sent.amount("amount", "Discount Amount")
    if amount == 0 and sent.form.money("amount") == 0:
        sent.refuse("Discount Amount must be positive.")
    return amount


def _coupon(visit: RequestContext, sent: Checked, id: int) -> str:
    code = sent.form.text("coupon")
    if code and not _CODE.fullmatch(code):
        sent.refuse("Coupon Code must be 2 to 30 letters, digits, “-” or “_”.")
    if code and visit.value("SELECT 1 FROM shop_rules WHERE coupon = ? COLLATE NOCASE AND id <> ?", code, id):
        sent.refuse("A rule with this coupon code exists already.")
    return code


@routes.post("/rules/new")
def add(visit: RequestContext) -> Response:
    """Add a rule."""
    sent = Checked(visit)
    values = _read(visit, sent, 0)
    if sent.wrong:
        return _form(visit, None, sent.as_sent(*FIELDS), sent.wrong)
    visit.insert("shop_rules", values)
    visit.say("You saved the rule.")
    return Redirect("/rules")


@routes.post("/rules/{id:int}")
def save(visit: RequestContext, id: int) -> Response:
    """Change a rule."""
    row, sent = visit.one("SELECT * FROM shop_rules WHERE id = ?", id), Checked(visit)
    values = _read(visit, sent, id)
    if sent.wrong:
        return _form(visit, row, sent.as_sent(*FIELDS), sent.wrong)
    visit.update("shop_rules", id, values)
    visit.say("You saved the rule.")
    return Redirect("/rules")


@routes.post("/rules/{id:int}/delete")
def delete(visit: RequestContext, id: int) -> Response:
    """Delete a rule."""
    visit.one("SELECT id FROM shop_rules WHERE id = ?", id)
    visit.write("DELETE FROM shop_rules WHERE id = ?", id)
    visit.say("You deleted the rule.")
    return Redirect("/rules")

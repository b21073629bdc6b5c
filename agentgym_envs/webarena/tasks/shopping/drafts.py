"""Drafts: forms that the agent fills in and does not submit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import kinds, queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import click, do
from agentgym_envs.webarena.tasks.template import Params

_REASONS = (
    "it broke after three days",
    "a part is missing",
    "it is the wrong colour",
    "it never worked",
    "it smells of glue",
)


def _drafted(fields: Mapping[str, object], *texts: object) -> Iterator[Evaluator]:
    """Return the evaluators of the contact form on the agent's last page: exact fields, and parts of the message."""
    yield EndsOn(f"{ORIGINS['shop']}/contact")
    for name, value in fields.items():
        yield PageHolds("last", f"document.getElementById('{name}').value", exact=str(value))
    yield PageHolds("last", "document.getElementById('text').value", includes=[str(text) for text in texts])


def _complete_lines(world: World) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the days and the products of complete orders, without kinds that were bought more than once."""
    lines = [
        (row, dict(line))
        for row in queries.orders(world)
        if row["status"] == "complete"
        for line in world.rows("SELECT * FROM shop_order_lines WHERE order_id = ?", row["id"])
    ]
    every = [kinds.kind(str(line["name"])) for _, line in lines]
    for row, line in lines:
        if every.count(kinds.kind(str(line["name"]))) == 1:
            yield row["moment"], {**line, "number": row["number"], "total": row["total"]}


def _bought(world: World, rng: Random) -> Iterator[Params]:
    for moment, line in _complete_lines(world):
        kind = kinds.kind(str(line["name"]))
        yield {"kind": kind, "month": queries.month(moment), "reason": rng.choice(_REASONS)}


def _line(world: World, kind: str) -> dict[str, object]:
    return next(line for _, line in _complete_lines(world) if kinds.kind(str(line["name"])) == kind)


def _find_line(page: PageReader, kind: str, month: str) -> Steps[tuple[str, str, str]]:
    """Open the orders of a month until one has such a product; return its number, the SKU and the subtotal."""
    numbers = []
    orders = yield from steps.all_orders(page, "Complete")
    numbers = [order.number for order in orders if steps.is_within(order.day, month)]
    for number in numbers:
        yield page.goto(f"{ORIGINS['shop']}/account/orders/{number}")
        for row in page.table():
            if f" {kind}" in row["Product Name"].lower():
                return number, row["SKU"], row["Subtotal"]
    raise AssertionError(f"no order of {month} has a {kind}")


def _fill(page: PageReader, subject: str, text: str, number: str = "") -> Iterator[str]:
    yield page.click("link", "Contact Us")
    yield page.choose("Subject", subject)
    if number:
        yield page.type(re.compile("Order Number.*"), number)
    yield page.type("What's on your mind?", text)


def _ask_refund(page: PageReader, kind: str, month: str, reason: str, submit: bool = False) -> Steps[None]:
    number, sku, _ = yield from _find_line(page, kind, month)
    yield from _fill(page, "Return or refund", f"My {kind} ({sku}): {reason}. Please refund it.", number)
    if submit:
        yield page.click("button", "Submit")


draft_refund = ShopTemplate(
    "shopping-draft-refund",
    "change",
    "hard",
    since=2,
    intents=(
        'Fill in the form "Contact Us" to ask for a refund of the {kind} that I bought in {month}, because {reason}. '
        "Choose the subject for refunds, enter the order's number in its field, and name the SKU and the reason in the "
        "message. Do not submit it yet, I will check.",
        "Prepare a message to the shop by its contact form, without sending it: subject Return or refund, the number "
        "of my order of {month} with the {kind}, and a text that gives the SKU of the product and says that {reason}.",
        "I want my money back for the {kind} from {month}: {reason}. Draft that in the contact form (refund as the "
        "subject, the number of the order, the SKU and the reason in the text), but leave the sending to me.",
    ),
    instances=_bought,
    expected=lambda world, kind, reason: _drafted(
        {"subject": "Return or refund", "order_number": _line(world, kind)["number"]}, _line(world, kind)["sku"], reason
    ),
    solution=_ask_refund,
    mistake=lambda page, kind, month, reason: _ask_refund(page, kind, month, reason, submit=True),
)


def _state_refund(page: PageReader, kind: str, month: str, reason: str, place: int = 2) -> Steps[None]:
    found = yield from _find_line(page, kind, month)
    yield from _fill(page, "Return or refund", f"Order {found[0]}: {reason}. Please send me {found[place]}.")


draft_refund_amount = ShopTemplate(
    "shopping-draft-refund-amount",
    "change",
    "hard",
    since=2,
    intents=(
        "Draft a refund message in the contact form for the {kind} that I bought in {month}: {reason}. The message "
        "itself must have the number of the order, the reason and the amount to refund, which is the subtotal of the "
        "product. Do not submit it.",
        "Write in the shop's contact form, but do not send it: for the {kind} of my order of {month} I ask for its "
        "subtotal back, since {reason}. State the order number, this reason and the amount in the text.",
        'In {month} I bought "{kind}", and {reason}. Prepare a message by the form Contact Us with the number of the '
        "order, the reason, and what the product cost there (its subtotal). I shall submit it myself.",
    ),
    instances=_bought,
    expected=lambda world, kind, reason: _drafted(
        {}, _line(world, kind)["number"], reason, money(int(str(_cents(_line(world, kind)))))
    ),
    solution=_state_refund,
    mistake=lambda page, kind, month, reason: _state_refund(page, kind, month, reason, place=1),
)


def _cents(line: Mapping[str, object]) -> int:
    return int(str(line["price"])) * int(str(line["quantity"]))


_OCCASIONS = (
    "I am a loyal customer",
    "my refund was to be replaced by a coupon",
    "my last parcel came late",
    "I am a student",
    "I plan a large order",
    "it is my birthday",
)

draft_coupon = ShopTemplate(
    "shopping-draft-coupon",
    "change",
    "medium",
    since=2,
    intents=(
        "Draft a message to the shop in its contact form that asks for a coupon, as {reason}. Do not send it.",
        'Fill in the form Contact Us, without submitting it: I would like a "coupon", because {reason}. Say both in '
        "the message.",
        "Prepare, but do not submit, a message to the shop by the contact form. It asks for a coupon and says that "
        "{reason}.",
    ),
    instances=lambda: [{"reason": reason} for reason in _OCCASIONS],
    expected=lambda reason: _drafted({}, "coupon", reason),
    solution=[do(_fill, "Something else", "Could I have a coupon? For {reason}.")],
    mistake=[do(_fill, "Something else", "Could I have a coupon? For {reason}."), click("button", "Submit")],
)

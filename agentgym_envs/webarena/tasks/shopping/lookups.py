"""Questions about the shop itself, and tasks that are impossible."""

from __future__ import annotations

import re
from random import Random

from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NOT_ACHIEVABLE, NotAchievable, Says, says
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import answer, click, do, given, not_offered
from agentgym_envs.webarena.tasks.template import Params

_FACTS = {
    "within how many days may I send something back": ("Returns and refunds", "return_days", r"within (\d+) days"),
    "what does Standard Shipping cost when it is not free": (
        "Shipping",
        "standard_rate",
        r"Standard Shipping: (\S+\d)",
    ),
    "what does Express Shipping cost": ("Shipping", "express_rate", r"Express Shipping: (\S+\d)"),
    "from which order value on is Standard Shipping free": ("Shipping", "free_shipping_from", r"free from (\S+\d)"),
    "in how many working days do standard parcels arrive": (
        "Shipping",
        "delivery_days",
        r"within (\d+ to \d+) working",
    ),
    "what is the telephone number of its customer service": ("Customer Service", "phone", r"Telephone: ([\d ]+\d)"),
    "what is the e-mail address of its customer service": ("Customer Service", "email", r"E-mail: (\S+@\S+\w)"),
    "at what times can its customer service be reached": ("Customer Service", "hours", r"here for you: (.+?)\.?$"),
}
"""For each question: the page with the answer, the setting that holds it, and the text around it."""


def _shop_fact_expected(world: World, question: str) -> Says:
    name = _FACTS[question][1]
    value = str(world.value("SELECT value FROM shop_settings WHERE name = ?", name))
    if name in ("standard_rate", "express_rate", "free_shipping_from"):
        return says(money(int(value)), limit=name == "free_shipping_from")
    if name == "delivery_days":
        return says(OR.join(value.replace(" to ", word) for word in (" to ", "-", " - ", " and ")))
    query = "SELECT value FROM shop_settings WHERE name IN ('phone', 'email', 'hours') AND name <> ? ORDER BY id"
    others = world.rows(query, name) if name in ("phone", "email", "hours") else ()
    parts = _hours(value) if name == "hours" else [value]
    return says(*parts, others=[row[0] for row in others])


shop_fact = ShopTemplate(
    "shopping-shop-fact",
    "information",
    "easy",
    intents=(
        "I have a question about the shop: {question}?",
        "Look it up on the shop's own pages: {question}?",
        "What does the shop say in its information for customers: {question}?",
    ),
    instances=lambda: [{"question": question} for question in _FACTS],
    expected=_shop_fact_expected,
    solution=[
        click("link", given(lambda question: _FACTS[question][0])),
        answer(lambda page, question: page.search(_FACTS[question][2])[0]),
    ],
)


def _hours(text: str) -> list[str]:
    """Return what an answer needs of "Monday to Friday, 8 AM to 5 PM": the days, in any spelling, and both times."""
    first, last, opening, closing = re.split(", | to ", text)
    words = (" to ", "-", " - ", " through ", " until ", " till ")
    days = [word.join(names) for word in words for names in ((first, last), (first[:3], last[:3]))]
    return [OR.join(days), opening, closing]


def _missing_product_instances(world: World, rng: Random) -> list[Params]:
    """Names of products combined with another brand, which match no product."""
    rows = world.rows("SELECT name, brand FROM shop_products WHERE enabled ORDER BY id")
    brands = sorted({row["brand"] for row in rows})
    made = [row["name"].replace(row["brand"], rng.choice(brands), 1) for row in rows]
    return [{"product": name} for name in made if not _matches(world, name)]


def _matches(world: World, name: str) -> bool:
    """Return whether a product's name has all words of this name."""
    words = [f"%{word}%" for word in name.split(",")[0].split()]
    where = " AND ".join(["name LIKE ?"] * len(words))
    return bool(world.rows(f"SELECT 1 FROM shop_products WHERE {where}", *words))


missing_product = ShopTemplate(
    "shopping-missing-product",
    "information",
    "easy",
    intents=(
        "How much does the {product} cost?",
        "Tell me the price of the {product}.",
        "I have heard of the {product}. What does the shop want for it?",
    ),
    instances=_missing_product_instances,
    expected=NotAchievable,
    solution=[do(steps.search, "{product}"), not_offered("link", "{product}")],
    mistake=[
        do(steps.search, given(lambda product: product.split()[0])),
        answer(lambda page: steps.listed_products(page)[0].price),
    ],
)


def _missing_colour_instances(world: World, rng: Random) -> list[Params]:
    """Colours of other products that this product does not come in."""
    rows = world.rows(
        "SELECT p.name AS product, GROUP_CONCAT(o.value, '|') AS colours "
        "FROM shop_products p JOIN shop_options o ON o.product = p.id AND o.name = 'Colour' "
        "WHERE p.enabled AND p.stock > 0 GROUP BY p.id ORDER BY p.id"
    )
    every = sorted({colour for row in rows for colour in row["colours"].split("|")})
    kept = (
        (
            row["product"],
            [one for one in every if not any(one in own or own in one for own in row["colours"].split("|"))],
        )
        for row in rows
    )
    return [{"product": product, "colour": rng.choice(others)} for product, others in kept]


def _report_missing(page: PageReader, colour: str) -> str:
    page.find("combobox", "Colour")
    return "" if page.has("option", re.compile(rf"{colour}.*")) else NOT_ACHIEVABLE


missing_colour = ShopTemplate(
    "shopping-missing-colour",
    "change",
    "easy",
    intents=(
        "Add the {product} in the colour {colour} to my cart.",
        "I want the {product} in {colour}, and in no other colour. Put one into my cart.",
        "Put one {product} into the shopping cart. Colour: {colour}.",
    ),
    instances=_missing_colour_instances,
    expected=NotAchievable,
    solution=[do(steps.open_product, "{product}"), answer(_report_missing)],
    mistake=[do(steps.open_product, "{product}"), answer("Done")],
)


def _report_complete(page: PageReader, found: steps.ListedOrder) -> str:
    cancelable = found.status != "Complete" or page.has("button", re.compile("Cancel.*"))
    return "" if cancelable else NOT_ACHIEVABLE


cancel_shipped = ShopTemplate(
    "shopping-cancel-shipped",
    "change",
    "medium",
    intents=(
        "Cancel the order that I placed on {day}.",
        "I no longer need what I ordered on {day}. Cancel that order.",
        "Please cancel my order of {day}.",
    ),
    instances=lambda world: [
        {"day": clock.day(row["moment"])} for row in queries.orders(world) if row["status"] == "complete"
    ],
    expected=NotAchievable,
    solution=[do(steps.open_order, steps.PLACED_ON_DAY), answer(_report_complete)],
    mistake=[do(steps.open_order, steps.PLACED_ON_DAY), click("button", "Reorder"), answer(NOT_ACHIEVABLE)],
)


def _invalid_coupon_instances(world: World) -> list[Params]:
    """Coupons that have expired, start later, or require another customer group or a larger cart."""
    worth = sum(line["price"] * line["quantity"] for line in queries.cart_lines(world))
    good = [rule["coupon"] for rule in queries.rules(world, worth)]
    rows = world.rows("SELECT coupon FROM shop_rules WHERE coupon <> '' ORDER BY id")
    return [{"coupon": row["coupon"]} for row in rows if row["coupon"] not in good]


invalid_coupon = ShopTemplate(
    "shopping-dead-coupon",
    "change",
    "easy",
    intents=(
        "Apply the coupon code {coupon} to my cart.",
        'I have a coupon, "{coupon}". Use it for what is in my cart now.',
        "Get me the discount for the code {coupon} on my shopping cart, without changing what is in it.",
    ),
    instances=_invalid_coupon_instances,
    expected=NotAchievable,
    solution=[
        do(steps.open_cart),
        do(steps.apply_coupon, "{coupon}"),
        answer(lambda page: NOT_ACHIEVABLE if page.has("alert", re.compile(".*")) else ""),
    ],
    mistake=answer("Done"),
)

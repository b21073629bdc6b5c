"""Questions about the shop itself, and tasks that are impossible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.strings import OR
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable, says
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.template import Params, TemplateClass

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


class ShopFact(TemplateClass):
    """Answer a question about the shop."""

    name, group, sites = "shopping-shop-fact", "shopping", ("shop",)
    kind, difficulty = "information", "easy"
    intents = (
        "I have a question about the shop: {question}?",
        "Look it up on the shop's own pages: {question}?",
        "What does the shop say in its information for customers: {question}?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"question": question} for question in _FACTS]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The value of the setting, and not the rest of the page."""
        name = _FACTS[params["question"]][1]
        value = str(world.value("SELECT value FROM shop_settings WHERE name = ?", name))
        if name in ("standard_rate", "express_rate", "free_shipping_from"):
            return [says(money(int(value)), limit=name == "free_shipping_from")]
        if name == "delivery_days":
            return [says(OR.join(value.replace(" to ", word) for word in (" to ", "-", " - ", " and ")))]
        query = "SELECT value FROM shop_settings WHERE name IN ('phone', 'email', 'hours') AND name <> ? ORDER BY id"
        others = world.rows(query, name) if name in ("phone", "email", "hours") else ()
        parts = _hours(value) if name == "hours" else [value]
        return [says(*parts, others=[row[0] for row in others])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        title, _, pattern = _FACTS[params["question"]]
        yield page.click("link", title)
        yield page.stop(page.search(pattern)[0])


def _hours(text: str) -> list[str]:
    """Return what an answer needs of "Monday to Friday, 8 AM to 5 PM": the days, in any spelling, and both times."""
    first, last, opening, closing = re.split(", | to ", text)
    words = (" to ", "-", " - ", " through ", " until ", " till ")
    days = [word.join(names) for word in words for names in ((first, last), (first[:3], last[:3]))]
    return [OR.join(days), opening, closing]


class MissingProduct(TemplateClass):
    """Name the price of a product that does not exist."""

    name, group, sites = "shopping-missing-product", "shopping", ("shop",)
    kind, difficulty = "information", "easy"
    intents = (
        "How much does the {product} cost?",
        "Tell me the price of the {product}.",
        "I have heard of the {product}. What does the shop want for it?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Names of products combined with another brand, which match no product."""
        rows = world.rows("SELECT name, brand FROM shop_products WHERE enabled ORDER BY id")
        brands = sorted({row["brand"] for row in rows})
        made = [row["name"].replace(row["brand"], rng.choice(brands), 1) for row in rows]
        return [{"product": name} for name in made if not self._matches(world, name)]

    def _matches(self, world: World, name: str) -> bool:
        """Return whether a product's name has all words of this name."""
        words = [f"%{word}%" for word in name.split(",")[0].split()]
        where = " AND ".join(["name LIKE ?"] * len(words))
        return bool(world.rows(f"SELECT 1 FROM shop_products WHERE {where}", *words))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.search(page, params["product"])
        if not page.has("link", params["product"]):
            yield page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the price of another product of the brand."""
        yield from steps.search(page, params["product"].split()[0])
        yield page.stop(steps.listed_products(page)[0].price)


class MissingColour(TemplateClass):
    """Add a product to the cart in a colour that does not exist."""

    name, group, sites = "shopping-missing-colour", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        "Add the {product} in the colour {colour} to my cart.",
        "I want the {product} in {colour}, and in no other colour. Put one into my cart.",
        "Put one {product} into the shopping cart. Colour: {colour}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
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

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_product(page, params["product"])
        page.find("combobox", "Colour")
        if not page.has("option", re.compile(rf"{params['colour']}.*")):
            yield page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Claim that it is done."""
        yield from steps.open_product(page, params["product"])
        yield page.stop("Done")


class CancelShipped(TemplateClass):
    """Cancel an order that has been shipped, which is impossible."""

    name, group, sites = "shopping-cancel-shipped", "shopping", ("shop",)
    kind, difficulty = "change", "medium"
    intents = (
        "Cancel the order that I placed on {day}.",
        "I no longer need what I ordered on {day}. Cancel that order.",
        "Please cancel my order of {day}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"day": day(row["moment"])} for row in queries.orders(world) if row["status"] == "complete"]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        order = yield from steps.open_order(page, lambda order: order.day == params["day"])
        if order.status == "Complete" and not page.has("button", re.compile("Cancel.*")):
            yield page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Reorder it instead, and claim that it is done."""
        yield from steps.open_order(page, lambda order: order.day == params["day"])
        yield page.click("button", "Reorder")
        yield page.stop("N/A")


class InvalidCoupon(TemplateClass):
    """Apply a coupon that is not valid."""

    name, group, sites = "shopping-dead-coupon", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        "Apply the coupon code {coupon} to my cart.",
        'I have a coupon, "{coupon}". Use it for what is in my cart now.',
        "Get me the discount for the code {coupon} on my shopping cart, without changing what is in it.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Coupons that have expired, start later, or require another customer group or a larger cart."""
        worth = sum(line["price"] * line["quantity"] for line in queries.cart_lines(world))
        good = [rule["coupon"] for rule in queries.rules(world, worth)]
        rows = world.rows("SELECT coupon FROM shop_rules WHERE coupon <> '' ORDER BY id")
        return [{"coupon": row["coupon"]} for row in rows if row["coupon"] not in good]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_cart(page)
        yield from steps.apply_coupon(page, params["coupon"])
        if page.has("alert", re.compile(".*")):
            yield page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Claim that it is done."""
        yield from steps.open_cart(page)
        yield from steps.apply_coupon(page, params["coupon"])
        yield page.stop("Done")


TEMPLATES = (ShopFact(), MissingProduct(), MissingColour(), CancelShipped(), InvalidCoupon())

"""Tasks in the customer's account: addresses, wish list, product comparison, messages to the shop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Removed, Updated
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed

_WISH_LIST = (
    "SELECT p.name AS product FROM shop_wishes w JOIN shop_products p ON p.id = w.product "
    f"WHERE w.customer = {queries.ME} AND p.enabled ORDER BY w.id"
)


class AddWish(TemplateClass):
    """Add a product to the wish list."""

    name, group, sites = "shopping-add-wish", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        "Add the {product} to my wish list.",
        "Put the {product} on my wish list.",
        "I want to remember the {product} for later. Save it to my wish list.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = f"SELECT name AS product FROM shop_products WHERE enabled AND name NOT IN ({_WISH_LIST})"
        return map(dict, world.rows(query))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"customer": queries.ME, "product": queries.product_id(world, params["product"])}
        return [changed(Added("shop_wishes", values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_product(page, params["product"])
        yield page.click("button", "Add to Wish List")
        yield page.stop()


class RemoveWish(TemplateClass):
    """Remove a product from the wish list."""

    name, group, sites = "shopping-remove-wish", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        "Remove the {product} from my wish list.",
        "I no longer want the {product}. Take it off my wish list.",
        "Delete the {product} from the wish list.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return map(dict, world.rows(_WISH_LIST))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        where = {"customer": queries.ME, "product": queries.product_id(world, params["product"])}
        return [changed(Removed("shop_wishes", where))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "My Wish List")
        yield page.click_in(params["product"], "button", "Remove Item")
        yield page.stop()


class CommentWish(TemplateClass):
    """Write a comment on an item of the wish list."""

    name, group, sites = "shopping-comment-wish", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        'On my wish list, write the comment "{comment}" beside the {product}.',
        'Set the comment of the {product} on my wish list to "{comment}".',
        'Note "{comment}" beside the {product} on my wish list, and save it.',
    )
    _COMMENTS = (
        "For Mother's birthday",
        "Wait for the summer sale",
        "Ask Ida which colour she likes",
        "Only if the old one breaks",
        "Present for the neighbours",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [
            {**row, "comment": text}
            for row in map(dict, world.rows(_WISH_LIST))
            for text in rng.sample(self._COMMENTS, 4)
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        where = {"customer": queries.ME, "product": queries.product_id(world, params["product"])}
        return [changed(Updated("shop_wishes", where, {"comment": params["comment"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "My Wish List")
        yield page.type("Comment", params["comment"], enter=True, after=params["product"])
        yield page.stop()


class AddAddress(TemplateClass):
    """Add an address to the address book."""

    name, group, sites = "shopping-add-address", "shopping", ("shop",)
    kind, difficulty = "change", "hard"
    intents = (
        "Add an address to my address book: {name}, {street}, {zip} {town}, {region}, telephone {phone}.",
        "I need parcels sent to {name} as well. Save this as a new address: {street}, {zip} {town}, region {region}, "
        "telephone {phone}.",
        "Save a new address in my account. Name: {name}; street: {street}; town: {town}; region: {region}; zip: {zip}; "
        "telephone: {phone}. Leave my default address as it is.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Use the addresses of other customers."""
        rows = world.rows(
            "SELECT name, street, town, region, zip, phone FROM shop_addresses WHERE customer <> ? ORDER BY id LIMIT ?",
            queries.ME,
            60,
        )
        return map(dict, rows)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Added("shop_addresses", {**params, "customer": queries.ME}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_addresses(page)
        yield from steps.add_address(page, params)
        yield page.stop()


class ChangePhone(TemplateClass):
    """Change the phone number of an address."""

    name, group, sites = "shopping-change-phone", "shopping", ("shop",)
    kind, difficulty = "change", "medium"
    intents = (
        "Change the telephone number of my address at {street} to {phone}.",
        "My address book holds an address at {street}. The telephone number there should be {phone}.",
        "Update my saved address ({street}): the new telephone number is {phone}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = world.rows("SELECT street FROM shop_addresses WHERE customer = ? ORDER BY id", queries.ME)
        return [
            {"street": row["street"], "phone": f"0{rng.randint(10, 99)} 555 {rng.randint(1000, 9999)}"}
            for row in rows
            for _ in range(8)
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        where = {"customer": queries.ME, "street": params["street"]}
        page = PageHolds(f"{ORIGINS['shop']}/account/addresses", "document.body.innerText", [params["phone"]])
        return [changed(Updated("shop_addresses", where, {"phone": params["phone"]})), page]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_addresses(page)
        yield page.click_in(params["street"], "link", "Edit Address")
        yield page.type("Phone Number", params["phone"], enter=True)
        yield page.stop()


class CompareProducts(TemplateClass):
    """Add two products to the comparison list."""

    name, group, sites = "shopping-compare", "shopping", ("shop",)
    kind, difficulty = "change", "medium"
    intents = (
        "Add the {one} and the {other} to my list of products to compare.",
        "I want to see the {one} beside the {other}. Put both into my comparison list.",
        "Put these two on the compare list: the {one}; the {other}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Pairs of products of a category that are not on the list."""
        return queries.uncompared_pairs(world)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(*queries.compared(world, params["one"], params["other"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        for name in ("one", "other"):
            yield from steps.open_product(page, params[name])
            yield page.click("button", "Add to Compare")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Add only one of them."""
        yield from steps.open_product(page, params["one"])
        yield page.click("button", "Add to Compare")
        yield page.stop()


class ContactShop(TemplateClass):
    """Write to the shop about an order."""

    name, group, sites = "shopping-contact", "shopping", ("shop",)
    kind, difficulty = "change", "hard"
    intents = (
        'Write to the shop by its contact form about the order that I placed on {day}. Subject: "{subject}". Message: '
        '"{text}" Give the number of the order in its field, and leave my name and e-mail address as they are.',
        "Use the form Contact us to tell the shop about my order of {day}; put the number of that order into the form. "
        'The subject is "{subject}", and the message is: "{text}"',
        'Send the shop a message with the subject "{subject}" and the text "{text}", for the order that I placed on '
        "{day} (fill in the order's number, too).",
    )
    _MESSAGES = (
        ("Complaint", "The parcel was open when it came, and a part is missing. Please send it."),
        ("Return or refund", "I would like to return everything and have my money back."),
        ("Complaint", "The box was crushed and the thing inside is broken. What shall I do?"),
        ("Question about an order", "Please send me a copy of the invoice, I have lost mine."),
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        messages = ((row, rng.choice(self._MESSAGES)) for row in queries.orders(world) if row["status"] == "complete")
        return [{"day": day(row["moment"]), "subject": subject, "text": text} for row, (subject, text) in messages]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = next(row["number"] for row in queries.orders(world) if day(row["moment"]) == params["day"])
        values = {"customer": queries.ME, "subject": params["subject"], "order_number": number, "text": params["text"]}
        person = world.rows("SELECT first || ' ' || last AS name, email FROM shop_customers WHERE id = ?", queries.ME)
        return [changed(Added("shop_enquiries", {**values, **dict(person[0])}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        order = yield from steps.find_order(page, lambda order: order.day == params["day"])
        yield page.click("link", "Contact Us")
        yield page.choose("Subject", params["subject"])
        yield page.type(re.compile("Order Number.*"), order.number)
        yield page.type("What's on your mind?", params["text"])
        yield page.click("button", "Submit")
        yield page.stop()


class SubscribeToNewsletter(TemplateClass):
    """Subscribe an e-mail address to the newsletter."""

    name, group, sites = "shopping-subscribe", "shopping", ("shop",)
    kind, difficulty = "change", "easy"
    intents = (
        "Subscribe the address {email} to the shop's newsletter.",
        "A friend would like to get the newsletter of the shop. The e-mail address is {email}.",
        "Sign {email} up for the newsletter.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Customers who never subscribed."""
        query = "SELECT email FROM shop_customers WHERE id <> ? AND email NOT IN (SELECT email FROM shop_subscribers)"
        return map(dict, world.rows(query, queries.ME))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Added("shop_subscribers", {"email": params["email"], "status": "subscribed"}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.type("Sign up for our newsletter", params["email"], enter=True)
        yield page.stop()


TEMPLATES = (
    AddWish(),
    RemoveWish(),
    CommentWish(),
    AddAddress(),
    ChangePhone(),
    CompareProducts(),
    ContactShop(),
    SubscribeToNewsletter(),
)

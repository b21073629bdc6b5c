"""Tasks in the customer's account: addresses, wish list, product comparison, messages to the shop."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Removed, Updated
from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.instances import rows
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import ALL_PARAMETERS, click, click_in, do, given, type_text
from agentgym_envs.webarena.tasks.template import Params

_WISH_LIST = (
    "SELECT p.name AS product FROM shop_wishes w JOIN shop_products p ON p.id = w.product "
    f"WHERE w.customer = {queries.ME} AND p.enabled ORDER BY w.id"
)

add_wish = ShopTemplate(
    "shopping-add-wish",
    "change",
    "easy",
    intents=(
        "Add the {product} to my wish list.",
        "Put the {product} on my wish list.",
        "I want to remember the {product} for later. Save it to my wish list.",
    ),
    instances=rows(f"SELECT name AS product FROM shop_products WHERE enabled AND name NOT IN ({_WISH_LIST})"),
    expected=lambda world, product: Added(
        "shop_wishes", {"customer": queries.ME, "product": queries.product_id(world, product)}
    ),
    solution=[do(steps.open_product, "{product}"), click("button", "Add to Wish List")],
)

remove_wish = ShopTemplate(
    "shopping-remove-wish",
    "change",
    "easy",
    intents=(
        "Remove the {product} from my wish list.",
        "I no longer want the {product}. Take it off my wish list.",
        "Delete the {product} from the wish list.",
    ),
    instances=rows(_WISH_LIST),
    expected=lambda world, product: Removed(
        "shop_wishes", {"customer": queries.ME, "product": queries.product_id(world, product)}
    ),
    solution=[click("link", "My Wish List"), click_in("{product}", "button", "Remove Item")],
)

_COMMENTS = (
    "For Mother's birthday",
    "Wait for the summer sale",
    "Ask Ida which colour she likes",
    "Only if the old one breaks",
    "Present for the neighbours",
)

comment_wish = ShopTemplate(
    "shopping-comment-wish",
    "change",
    "easy",
    intents=(
        'On my wish list, write the comment "{comment}" beside the {product}.',
        'Set the comment of the {product} on my wish list to "{comment}".',
        'Note "{comment}" beside the {product} on my wish list, and save it.',
    ),
    instances=lambda world, rng: [
        {**row, "comment": text} for row in map(dict, world.rows(_WISH_LIST)) for text in rng.sample(_COMMENTS, 4)
    ],
    expected=lambda world, comment, product: Updated(
        "shop_wishes", {"customer": queries.ME, "product": queries.product_id(world, product)}, {"comment": comment}
    ),
    solution=[click("link", "My Wish List"), type_text("Comment", "{comment}", enter=True, after="{product}")],
)

add_address = ShopTemplate(
    "shopping-add-address",
    "change",
    "hard",
    intents=(
        "Add an address to my address book: {name}, {street}, {zip} {town}, {region}, telephone {phone}.",
        "I need parcels sent to {name} as well. Save this as a new address: {street}, {zip} {town}, region {region}, "
        "telephone {phone}.",
        "Save a new address in my account. Name: {name}; street: {street}; town: {town}; region: {region}; zip: {zip}; "
        "telephone: {phone}. Leave my default address as it is.",
    ),
    instances=rows(
        "SELECT name, street, town, region, zip, phone FROM shop_addresses WHERE customer <> ? ORDER BY id LIMIT ?",
        queries.ME,
        60,
    ),
    expected=lambda params: Added("shop_addresses", {**params, "customer": queries.ME}),
    solution=[do(steps.open_addresses), do(steps.add_address, ALL_PARAMETERS)],
)


def _new_phones(world: World, rng: Random) -> list[Params]:
    rows = world.rows("SELECT street FROM shop_addresses WHERE customer = ? ORDER BY id", queries.ME)
    return [
        {"street": row["street"], "phone": f"0{rng.randint(10, 99)} 555 {rng.randint(1000, 9999)}"}
        for row in rows
        for _ in range(8)
    ]


change_phone = ShopTemplate(
    "shopping-change-phone",
    "change",
    "medium",
    intents=(
        "Change the telephone number of my address at {street} to {phone}.",
        "My address book holds an address at {street}. The telephone number there should be {phone}.",
        "Update my saved address ({street}): the new telephone number is {phone}.",
    ),
    instances=_new_phones,
    expected=lambda street, phone: [
        Updated("shop_addresses", {"customer": queries.ME, "street": street}, {"phone": phone}),
        PageHolds(f"{ORIGINS['shop']}/account/addresses", "document.body.innerText", [phone]),
    ],
    solution=[
        do(steps.open_addresses),
        click_in("{street}", "link", "Edit Address"),
        type_text("Phone Number", "{phone}", enter=True),
    ],
)

compare_products = ShopTemplate(
    "shopping-compare",
    "change",
    "medium",
    intents=(
        "Add the {one} and the {other} to my list of products to compare.",
        "I want to see the {one} beside the {other}. Put both into my comparison list.",
        "Put these two on the compare list: the {one}; the {other}.",
    ),
    instances=queries.uncompared_pairs,
    expected=lambda world, one, other: queries.compared(world, one, other),
    solution=[do(steps.compare, "{one}"), do(steps.compare, "{other}")],
    mistake=[do(steps.compare, "{one}")],
)

_MESSAGES = (
    ("Complaint", "The parcel was open when it came, and a part is missing. Please send it."),
    ("Return or refund", "I would like to return everything and have my money back."),
    ("Complaint", "The box was crushed and the thing inside is broken. What shall I do?"),
    ("Question about an order", "Please send me a copy of the invoice, I have lost mine."),
)


def _contact_shop_instances(world: World, rng: Random) -> list[Params]:
    messages = ((row, rng.choice(_MESSAGES)) for row in queries.orders(world) if row["status"] == "complete")
    return [{"day": clock.day(row["moment"]), "subject": subject, "text": text} for row, (subject, text) in messages]


def _enquiry(world: World, day: str, subject: str, text: str) -> Added:
    number = next(row["number"] for row in queries.orders(world) if clock.day(row["moment"]) == day)
    query = "SELECT first || ' ' || last AS name, email FROM shop_customers WHERE id = ?"
    values = {"customer": queries.ME, "subject": subject, "order_number": number, "text": text}
    return Added("shop_enquiries", {**values, **dict(world.rows(query, queries.ME)[0])})


def fill_in_enquiry(page: PageReader, number: str, subject: str, text: str) -> Iterator[str]:
    """Write to the shop about an order."""
    yield page.click("link", "Contact Us")
    yield page.choose("Subject", subject)
    yield page.type(re.compile("Order Number.*"), number)
    yield page.type("What's on your mind?", text)
    yield page.click("button", "Submit")


contact_shop = ShopTemplate(
    "shopping-contact",
    "change",
    "hard",
    intents=(
        'Write to the shop by its contact form about the order that I placed on {day}. Subject: "{subject}". Message: '
        '"{text}" Give the number of the order in its field, and leave my name and e-mail address as they are.',
        "Use the form Contact us to tell the shop about my order of {day}; put the number of that order into the form. "
        'The subject is "{subject}", and the message is: "{text}"',
        'Send the shop a message with the subject "{subject}" and the text "{text}", for the order that I placed on '
        "{day} (fill in the order's number, too).",
    ),
    instances=_contact_shop_instances,
    expected=_enquiry,
    solution=[
        do(steps.find_order, steps.PLACED_ON_DAY),
        do(fill_in_enquiry, given(lambda found: found.number), "{subject}", "{text}"),
    ],
)

subscribe_to_newsletter = ShopTemplate(
    "shopping-subscribe",
    "change",
    "easy",
    intents=(
        "Subscribe the address {email} to the shop's newsletter.",
        "A friend would like to get the newsletter of the shop. The e-mail address is {email}.",
        "Sign {email} up for the newsletter.",
    ),
    instances=rows(
        "SELECT email FROM shop_customers WHERE id <> ? AND email NOT IN (SELECT email FROM shop_subscribers)",
        queries.ME,
    ),
    expected=lambda email: Added("shop_subscribers", {"email": email, "status": "subscribed"}),
    solution=[type_text("Sign up for our newsletter", "{email}", enter=True)],
)

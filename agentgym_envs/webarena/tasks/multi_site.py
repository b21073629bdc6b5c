"""Tasks on several sites: each uses information of one site on another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import rows
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, click, do, given, goto, type_text
from agentgym_envs.webarena.tasks.template import Params, Template

_UNIQUE_NAME = "name IN (SELECT name FROM shop_products GROUP BY name HAVING COUNT(*) = 1)"
_PLAIN = f"enabled = 1 AND {_UNIQUE_NAME} AND id NOT IN (SELECT product FROM shop_options)"
_TITLES = ("Worth a look?", "Has anybody tried this?", "Found this in the shop", "Is this any good?", "On my list now")


def open_product(page: PageReader, name: str) -> Iterator[str]:
    """Open a product's page from the shop's home page."""
    yield page.type("Search", name, enter=True)
    yield page.click("link", name)


def open_on_map(page: PageReader, name: str) -> Iterator[str]:
    """Open the map's page of a town or place."""
    yield page.goto(f"{ORIGINS['maps']}/")
    yield page.type("Search the map", name, enter=True)
    if not page.has("heading", name):
        yield page.click("link", name)


def _column(query: str) -> Callable[[World], list[Any]]:
    """Return the values that a query finds in a world."""
    return lambda world: [row[0] for row in world.rows(query)]


def _product_shared(world: World, product: str, board: str, title: str) -> Added:
    slug = world.value("SELECT slug FROM shop_products WHERE name = ?", product)
    number = world.value("SELECT id FROM forum_boards WHERE name = ?", board)
    url = f"{ORIGINS['shop']}/product/{slug}"
    return Added("forum_posts", {"author": 1, "board": number, "title": title, "url": url})


def _share(page: PageReader, product: str, board: str, title: str) -> Steps[None]:
    yield from open_product(page, product)
    yield from share_here(page, board, title)


def share_here(page: PageReader, board: str, title: str) -> Steps[None]:
    """Post a link to the page in the forum."""
    address = page.url
    yield page.goto(f"{ORIGINS['forum']}/")
    yield page.click("link", "Submit")
    yield page.choose("Board", board)
    yield page.type("Title", title)
    yield page.type("URL", address)
    yield page.click("button", "Post")


share_product = Template(
    "code-and-forum",
    ("shop", "forum"),
    "across-share-product",
    "change",
    "medium",
    intents=(
        'Post a link to the shop\'s page of "{product}" on the board {board} of the forum, with the title "{title}".',
        'Share the shop\'s product "{product}" in the forum: a link post on {board} that is called "{title}".',
        'On the forum board {board}, submit the address of "{product}" in the shop as a post titled "{title}".',
    ),
    instances=rows(
        f"SELECT name AS product FROM shop_products WHERE enabled = 1 AND {_UNIQUE_NAME}",
        sample=40,
        board=_column("SELECT name FROM forum_boards ORDER BY id"),
        title=_TITLES,
    ),
    expected=_product_shared,
    solution=_share,
)


def _total_sent(world: World, number: str, user: str) -> list[Expected]:
    partner = world.value("SELECT id FROM forum_users WHERE name = ?", user)
    total = world.value("SELECT total FROM shop_orders WHERE number = ?", number)
    conversation = {"opener": 1, "partner": partner, "subject": f"Order {number}"}
    return [Added("forum_conversations", conversation), Added("forum_messages", {"author": 1, "body": money(total)})]


def _send_total(page: PageReader, number: str, user: str) -> Steps[None]:
    yield page.click("link", "My Orders")
    while not page.says(number):
        yield page.click("link", "Next")
    total = next(e.name for e in page.line(number) if e.name.startswith("$"))
    yield from send_message(page, user, f"Order {number}", total)


def send_message(page: PageReader, user: str, subject: str, text: str) -> Iterator[str]:
    """Send a private message in the forum, from any site."""
    yield page.goto(f"{ORIGINS['forum']}/messages/new")
    yield page.type("To", user)
    yield page.type("Subject", subject)
    yield page.type("Message", text)
    yield page.click("button", "Send")


order_total_message = Template(
    "shopping",
    ("shop", "forum"),
    "across-order-total-message",
    "change",
    "medium",
    intents=(
        'Send the forum user {user} a message with the subject "Order {number}" that says only the total of that order '
        "of mine in the shop, such as $12.34.",
        "Look up what my order {number} in the shop came to, and send just that amount (like $12.34) to {user} in a "
        'private message on the forum, with the subject "Order {number}".',
        'Write a private message to {user} on the forum. Subject: "Order {number}". Text: the total of my shop order '
        "{number}, and nothing else (in the form $12.34).",
    ),
    instances=rows(
        "SELECT number FROM shop_orders WHERE customer = 1",
        user=_column("SELECT name FROM forum_users WHERE id > 1 ORDER BY id"),
    ),
    expected=_total_sent,
    solution=_send_total,
)


def _population(world: World, number: str) -> Says:
    query = (
        "SELECT t.population FROM map_towns t JOIN shop_order_addresses a ON a.town = t.name "
        "JOIN shop_orders o ON o.id = a.order_id WHERE a.kind = 'shipping' AND o.number = ?"
    )
    return says(f"{world.value(query, number):,}")


def _look_up_population(page: PageReader, number: str) -> Steps[str]:
    yield page.type("Search", number, enter=True)
    yield page.click("link", f"#{number}")
    return (yield from look_up_population_here(page))


def look_up_population_here(page: PageReader) -> Steps[str]:
    """Read the population of the town that the order on the page is shipped to."""
    lines = page.texts(after="Shipping Address")
    town = next(line.partition(" ")[2] for line in lines if line[:5].isdigit())
    yield from open_on_map(page, town)
    return page.value("Population")


town_of_order = Template(
    "cms",
    ("admin", "maps"),
    "across-town-of-order",
    "information",
    "medium",
    intents=(
        "How many people live in the town that order {number} is shipped to?",
        "Order {number} goes to some town. What is that town's population, according to the map?",
        "What population does the map give for the shipping town of order {number}?",
    ),
    instances=rows("SELECT number FROM shop_orders"),
    expected=_population,
    solution=_look_up_population,
    mistake=[answer("12,345")],
)


def _restock_and_buy_instances(world: World, rng: Random) -> Iterator[Params]:
    """Products without options that are not in the cart."""
    query = f"SELECT name FROM shop_products WHERE {_PLAIN} AND id NOT IN (SELECT product FROM shop_cart_lines)"
    for row in world.rows(query):
        yield {"product": row["name"], "stock": rng.randint(300, 900), "quantity": rng.randint(2, 6)}


def _restocked(world: World, product: str, stock: int, quantity: int) -> list[Expected]:
    number = world.value("SELECT id FROM shop_products WHERE name = ?", product)
    line = {"product": number, "quantity": quantity}
    return [Updated("shop_products", {"id": number}, {"stock": stock}), Added("shop_cart_lines", line)]


restock_and_buy = Template(
    "cms",
    ("admin", "shop"),
    "across-restock-and-buy",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Set the stock of "{product}" to {stock} in the administration, and then put {quantity} of it into my cart in '
        "the shop.",
        'We have counted: there are {stock} of "{product}". Correct that in the administration, and add {quantity} of '
        "them to my cart in the shop.",
        'I want {quantity} of "{product}" in my shopping cart, but first bring its stock to {stock} in the '
        "administration.",
    ),
    instances=_restock_and_buy_instances,
    expected=_restocked,
    solution=[
        type_text("Search", "{product}", enter=True),
        click("link", "{product}"),
        type_text("Quantity", "{stock}"),
        click("button", "Save"),
        goto(f"{ORIGINS['shop']}/"),
        do(open_product, "{product}"),
        type_text("Qty", "{quantity}"),
        click("button", "Add to Cart"),
    ],
)

hometown = Template(
    "code-and-forum",
    ("forum", "maps"),
    "across-hometown",
    "information",
    "medium",
    intents=(
        "What is the postcode of the town in which the forum user {user} lives?",
        "Which postcode does the map give for the home town of {user} of the forum?",
        "The profile of the forum user {user} names a town. Tell me that town's postcode.",
    ),
    instances=rows("SELECT u.name AS user FROM forum_users u JOIN map_towns t ON t.name = u.location WHERE u.id > 1"),
    expected=lambda world, user: says(
        world.value("SELECT t.zip FROM map_towns t JOIN forum_users u ON t.name = u.location WHERE u.name = ?", user),
        others=[r["zip"] for r in world.rows("SELECT * FROM map_towns")],
    ),
    solution=[
        goto(f"{ORIGINS['forum']}/u/{{user}}"),
        do(open_on_map, given(lambda page: page.value("Location"))),
        answer(lambda page: page.value("Postcode")),
    ],
    mistake=[answer("00000")],
)


def _phone_written(world: World, place: str, title: str) -> Added:
    post = world.value("SELECT id FROM forum_posts WHERE title = ?", title)
    phone = world.value("SELECT phone FROM map_places WHERE name = ?", place)
    return Added("forum_comments", {"post": post, "parent": None, "author": 1, "body": phone})


def _write_phone(page: PageReader, place: str, title: str) -> Steps[None]:
    yield from open_on_map(page, place)
    yield from write_phone_here(page, title)


def write_phone_here(page: PageReader, title: str) -> Steps[None]:
    """Write the phone number of the place on the page below a post of the forum."""
    phone = page.value("Phone")
    yield page.goto(f"{ORIGINS['forum']}/")
    yield page.type("Search the forum", title, enter=True)
    yield page.click("link", title)
    yield page.type("Your comment", phone)
    yield page.click("button", "Comment")


phone_in_comment = Template(
    "maps",
    ("maps", "forum"),
    "across-phone-in-comment",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Comment on the forum post "{title}" with the phone number of {place} in {town}, and nothing else.',
        'Somebody needs the phone number of {place} in {town}. Write only that, as a comment below "{title}" in the '
        "forum.",
        'Look up the phone number of {place} in {town}, and leave just the number as a comment on the post "{title}".',
    ),
    instances=rows(
        "SELECT p.name AS place, t.name AS town FROM map_places p JOIN map_towns t ON t.id = p.town "
        "WHERE p.phone IS NOT NULL AND p.name IN (SELECT name FROM map_places GROUP BY name HAVING COUNT(*) = 1)",
        sample=60,
        title=_column(
            "SELECT title FROM forum_posts WHERE locked = 0 AND removed = 0 AND deleted = 0 AND author > 1 "
            "GROUP BY title HAVING COUNT(*) = 1"
        ),
    ),
    expected=_phone_written,
    free=("forum_notifications",),
    solution=_write_phone,
)

_ISSUES = ("Support this model", "Test with this device", "Wrong label for a product", "Add to the catalogue")
_MY_PROJECTS = (
    "FROM code_projects p JOIN code_namespaces n ON n.id = p.namespace JOIN code_accounts a "
    "ON a.user = n.path WHERE a.id = 1"
)


def _issue_opened(world: World, project: str, title: str, product: str) -> Added:
    number = world.value(f"SELECT p.id {_MY_PROJECTS} AND p.name = ?", project)
    sku = world.value("SELECT sku FROM shop_products WHERE name = ?", product)
    values = {"project": number, "title": title, "body": sku, "author": 1}
    return Added("code_issues", {**values, "assignee": None, "milestone": None, "confidential": 0, "state": "open"})


def _open_issue(page: PageReader, product: str, project: str, title: str) -> Steps[None]:
    yield from open_product(page, product)
    yield from open_issue_here(page, project, title)


def open_issue_here(page: PageReader, project: str, title: str) -> Steps[None]:
    """Open an issue with the SKU of the product on the page."""
    (sku,) = page.search(r"SKU: (\S+)")
    name = re.compile(rf"[^/]+ / {re.escape(project)}")
    yield page.goto(f"{ORIGINS['code']}/")
    if not page.has("link", name):  # it is on another page of the list
        yield page.type("Filter by name", project, enter=True)
    yield page.click("link", name)
    yield page.click("link", re.compile(r"Issues \(\d+\)"))
    yield page.click("link", "New issue")
    yield page.type("Title", title)
    yield page.type("Description", sku)
    yield page.click("button", "Create issue")


issue_about_product = Template(
    "code-and-forum",
    ("shop", "code"),
    "across-issue-about-product",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Open an issue in my project {project} with the title "{title}" and, as its description, just the SKU that the '
        'shop gives for "{product}".',
        'My project {project} needs an issue called "{title}". Its description is the SKU of the shop\'s product '
        '"{product}", and nothing more.',
        'File an issue titled "{title}" in my project {project}. Put only the SKU of "{product}" (see the shop) into '
        "the description.",
    ),
    instances=rows(
        f"SELECT name AS product FROM shop_products WHERE enabled = 1 AND {_UNIQUE_NAME}",
        sample=30,
        project=_column(f"SELECT p.name {_MY_PROJECTS} AND p.archived = 0"),
        title=_ISSUES,
    ),
    expected=_issue_opened,
    solution=_open_issue,
)

_CUSTOMERS = "shop_orders o JOIN shop_customers c ON c.id = o.customer JOIN code_accounts a ON a.email = c.email"


def _find_developer(page: PageReader, number: str) -> Steps[str]:
    yield page.type("Search", number, enter=True)
    yield page.click("link", f"#{number}")
    return (yield from find_developer_here(page))


def find_developer_here(page: PageReader) -> Steps[str]:
    """Read since when the customer of the order on the page has been a member of code hosting."""
    name = page.value("Customer Name")
    yield page.goto(f"{ORIGINS['code']}/")
    yield page.type("Search Hammerfold", name, enter=True)
    if not page.has("link", name):
        yield page.click("link", re.compile(r"(People|Users)\b.*"))
    yield page.click("link", name)
    return page.search(r"member since (.*)")[0]


developer_customer = Template(
    "cms",
    ("admin", "code"),
    "across-developer-customer",
    "information",
    "hard",
    intents=(
        "The customer who placed order {number} also has an account on the code hosting site. Since which day?",
        "On which day did the customer of order {number} become a member of the code hosting site?",
        "Find whoever placed order {number} on the code hosting site. When did that person join it?",
    ),
    instances=rows(f"SELECT o.number FROM {_CUSTOMERS} WHERE a.id > 1 AND a.name = c.first || ' ' || c.last"),
    expected=lambda world, number: says(
        day(world.value(f"SELECT a.joined FROM {_CUSTOMERS} WHERE o.number = ?", number))
    ),
    solution=_find_developer,
    mistake=[answer("Mar 16, 2026")],
)

TEMPLATES = (
    share_product,
    order_total_message,
    town_of_order,
    restock_and_buy,
    hometown,
    phone_in_comment,
    issue_about_product,
    developer_customer,
)

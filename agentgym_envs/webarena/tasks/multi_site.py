"""Tasks on several sites: each uses information of one site on another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed

_UNIQUE_NAME = "name IN (SELECT name FROM shop_products GROUP BY name HAVING COUNT(*) = 1)"
_PLAIN = f"enabled = 1 AND {_UNIQUE_NAME} AND id NOT IN (SELECT product FROM shop_options)"
_TITLES = ("Worth a look?", "Has anybody tried this?", "Found this in the shop", "Is this any good?", "On my list now")


def _open_product(page: PageReader, name: str) -> Iterator[str]:
    """Open a product's page from the shop's home page."""
    yield page.type("Search", name, enter=True)
    yield page.click("link", name)


def _open_on_map(page: PageReader, name: str) -> Iterator[str]:
    """Open the map's page of a town or place."""
    yield page.goto(f"{ORIGINS['maps']}/")
    yield page.type("Search the map", name, enter=True)
    if not page.has("heading", name):
        yield page.click("link", name)


class ShareProduct(TemplateClass):
    """Post the URL of a product in the forum."""

    name, group, sites = "across-share-product", "code-and-forum", ("shop", "forum")
    kind, difficulty = "change", "medium"
    intents = (
        'Post a link to the shop\'s page of "{product}" on the board {board} of the forum, with the title "{title}".',
        'Share the shop\'s product "{product}" in the forum: a link post on {board} that is called "{title}".',
        'On the forum board {board}, submit the address of "{product}" in the shop as a post titled "{title}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        products = [
            row["name"] for row in world.rows(f"SELECT name FROM shop_products WHERE enabled = 1 AND {_UNIQUE_NAME}")
        ]
        boards = [row["name"] for row in world.rows("SELECT name FROM forum_boards ORDER BY id")]
        for product in rng.sample(products, 40):
            yield {"product": product, "board": rng.choice(boards), "title": rng.choice(_TITLES)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        slug = world.value("SELECT slug FROM shop_products WHERE name = ?", params["product"])
        board = world.value("SELECT id FROM forum_boards WHERE name = ?", params["board"])
        url = f"{ORIGINS['shop']}/product/{slug}"
        return [changed(Added("forum_posts", {"author": 1, "board": board, "title": params["title"], "url": url}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _open_product(page, params["product"])
        address = page.url
        yield page.goto(f"{ORIGINS['forum']}/")
        yield page.click("link", "Submit")
        yield page.choose("Board", params["board"])
        yield page.type("Title", params["title"])
        yield page.type("URL", address)
        yield page.click("button", "Post")
        yield page.stop()


class OrderTotalMessage(TemplateClass):
    """Send a forum user the total of an order."""

    name, group, sites = "across-order-total-message", "shopping", ("shop", "forum")
    kind, difficulty = "change", "medium"
    intents = (
        'Send the forum user {user} a message with the subject "Order {number}" that says only the total of that order '
        "of mine in the shop, such as $12.34.",
        "Look up what my order {number} in the shop came to, and send just that amount (like $12.34) to {user} in a "
        'private message on the forum, with the subject "Order {number}".',
        'Write a private message to {user} on the forum. Subject: "Order {number}". Text: the total of my shop order '
        "{number}, and nothing else (in the form $12.34).",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        orders = [row["number"] for row in world.rows("SELECT number FROM shop_orders WHERE customer = 1")]
        users = [row["name"] for row in world.rows("SELECT name FROM forum_users WHERE id > 1 ORDER BY id")]
        return [{"number": number, "user": rng.choice(users)} for number in orders]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        partner = world.value("SELECT id FROM forum_users WHERE name = ?", params["user"])
        total = world.value("SELECT total FROM shop_orders WHERE number = ?", params["number"])
        conversation = {"opener": 1, "partner": partner, "subject": f"Order {params['number']}"}
        message = {"author": 1, "body": money(total)}
        return [changed(Added("forum_conversations", conversation), Added("forum_messages", message))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "My Orders")
        while not page.says(params["number"]):
            yield page.click("link", "Next")
        total = next(e.name for e in page.line(params["number"]) if e.name.startswith("$"))
        yield page.goto(f"{ORIGINS['forum']}/messages/new")
        yield page.type("To", params["user"])
        yield page.type("Subject", f"Order {params['number']}")
        yield page.type("Message", total)
        yield page.click("button", "Send")
        yield page.stop()


class TownOfOrder(TemplateClass):
    """Name the population of the town that an order was shipped to."""

    name, group, sites = "across-town-of-order", "cms", ("admin", "maps")
    kind, difficulty = "information", "medium"
    intents = (
        "How many people live in the town that order {number} is shipped to?",
        "Order {number} goes to some town. What is that town's population, according to the map?",
        "What population does the map give for the shipping town of order {number}?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"number": row["number"]} for row in world.rows("SELECT number FROM shop_orders")]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = (
            "SELECT t.population FROM map_towns t JOIN shop_order_addresses a ON a.town = t.name "
            "JOIN shop_orders o ON o.id = a.order_id WHERE a.kind = 'shipping' AND o.number = ?"
        )
        return [says(f"{world.value(query, params['number']):,}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.type("Search", params["number"], enter=True)
        yield page.click("link", f"#{params['number']}")
        lines = page.texts(after="Shipping Address")
        town = next(line.partition(" ")[2] for line in lines if line[:5].isdigit())
        yield from _open_on_map(page, town)
        yield page.stop(page.value("Population"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with a guess."""
        yield page.stop("12,345")


class RestockAndBuy(TemplateClass):
    """Change a product's stock in the administration, and add it to the cart in the shop."""

    name, group, sites = "across-restock-and-buy", "cms", ("admin", "shop")
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        'Set the stock of "{product}" to {stock} in the administration, and then put {quantity} of it into my cart in '
        "the shop.",
        'We have counted: there are {stock} of "{product}". Correct that in the administration, and add {quantity} of '
        "them to my cart in the shop.",
        'I want {quantity} of "{product}" in my shopping cart, but first bring its stock to {stock} in the '
        "administration.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products without options that are not in the cart."""
        query = f"SELECT name FROM shop_products WHERE {_PLAIN} AND id NOT IN (SELECT product FROM shop_cart_lines)"
        for row in world.rows(query):
            yield {"product": row["name"], "stock": rng.randint(300, 900), "quantity": rng.randint(2, 6)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        product = world.value("SELECT id FROM shop_products WHERE name = ?", params["product"])
        line = {"product": product, "quantity": params["quantity"]}
        return [
            changed(
                Updated("shop_products", {"id": product}, {"stock": params["stock"]}), Added("shop_cart_lines", line)
            )
        ]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.type("Search", params["product"], enter=True)
        yield page.click("link", params["product"])
        yield page.type("Quantity", str(params["stock"]))
        yield page.click("button", "Save")
        yield page.goto(f"{ORIGINS['shop']}/")
        yield from _open_product(page, params["product"])
        yield page.type("Qty", str(params["quantity"]))
        yield page.click("button", "Add to Cart")
        yield page.stop()


class Hometown(TemplateClass):
    """Name the postcode of a forum user's town."""

    name, group, sites = "across-hometown", "code-and-forum", ("forum", "maps")
    kind, difficulty = "information", "medium"
    intents = (
        "What is the postcode of the town in which the forum user {user} lives?",
        "Which postcode does the map give for the home town of {user} of the forum?",
        "The profile of the forum user {user} names a town. Tell me that town's postcode.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Users whose profile names a town."""
        query = "SELECT u.name AS user FROM forum_users u JOIN map_towns t ON t.name = u.location WHERE u.id > 1"
        return [dict(row) for row in world.rows(query)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT t.zip FROM map_towns t JOIN forum_users u ON t.name = u.location WHERE u.name = ?"
        return [
            says(world.value(query, params["user"]), others=[r["zip"] for r in world.rows("SELECT * FROM map_towns")])
        ]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.goto(f"{ORIGINS['forum']}/u/{params['user']}")
        town = page.value("Location")
        yield from _open_on_map(page, town)
        yield page.stop(page.value("Postcode"))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer without a postcode."""
        yield page.stop("00000")


class PhoneInComment(TemplateClass):
    """Comment on a forum post with a place's phone number."""

    name, group, sites = "across-phone-in-comment", "maps", ("maps", "forum")
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        'Comment on the forum post "{title}" with the phone number of {place} in {town}, and nothing else.',
        'Somebody needs the phone number of {place} in {town}. Write only that, as a comment below "{title}" in the '
        "forum.",
        'Look up the phone number of {place} in {town}, and leave just the number as a comment on the post "{title}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Places with a phone number, and posts that are open for comments."""
        places = world.rows(
            "SELECT p.name AS place, t.name AS town FROM map_places p JOIN map_towns t ON t.id = p.town "
            "WHERE p.phone IS NOT NULL AND p.name IN (SELECT name FROM map_places GROUP BY name HAVING COUNT(*) = 1)"
        )
        titles = world.rows(
            "SELECT title FROM forum_posts WHERE locked = 0 AND removed = 0 AND deleted = 0 AND author > 1 "
            "GROUP BY title HAVING COUNT(*) = 1"
        )
        for place in rng.sample(places, 60):
            yield {**dict(place), "title": rng.choice(titles)["title"]}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        phone = world.value("SELECT phone FROM map_places WHERE name = ?", params["place"])
        post = world.value("SELECT id FROM forum_posts WHERE title = ?", params["title"])
        comment = {"post": post, "parent": None, "author": 1, "body": phone}
        return [changed(Added("forum_comments", comment), free=("forum_notifications",))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _open_on_map(page, params["place"])
        phone = page.value("Phone")
        yield page.goto(f"{ORIGINS['forum']}/")
        yield page.type("Search the forum", params["title"], enter=True)
        yield page.click("link", params["title"])
        yield page.type("Your comment", phone)
        yield page.click("button", "Comment")
        yield page.stop()


class IssueAboutProduct(TemplateClass):
    """Open an issue with the SKU of a product."""

    name, group, sites = "across-issue-about-product", "code-and-forum", ("shop", "code")
    kind, difficulty, held_out = "change", "hard", True
    intents = (
        'Open an issue in my project {project} with the title "{title}" and, as its description, just the SKU that the '
        'shop gives for "{product}".',
        'My project {project} needs an issue called "{title}". Its description is the SKU of the shop\'s product '
        '"{product}", and nothing more.',
        'File an issue titled "{title}" in my project {project}. Put only the SKU of "{product}" (see the shop) into '
        "the description.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        projects = world.rows(
            "SELECT p.name FROM code_projects p JOIN code_namespaces n ON n.id = p.namespace JOIN code_accounts a "
            "ON a.user = n.path WHERE a.id = 1 AND p.archived = 0"
        )
        products = world.rows(f"SELECT name FROM shop_products WHERE enabled = 1 AND {_UNIQUE_NAME}")
        titles = ("Support this model", "Test with this device", "Wrong label for a product", "Add to the catalogue")
        for product in rng.sample(products, 30):
            project = rng.choice(projects)["name"]
            yield {"project": project, "title": rng.choice(titles), "product": product["name"]}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = (
            "SELECT p.id FROM code_projects p JOIN code_namespaces n ON n.id = p.namespace JOIN code_accounts a "
            "ON a.user = n.path WHERE a.id = 1 AND p.name = ?"
        )
        sku = world.value("SELECT sku FROM shop_products WHERE name = ?", params["product"])
        issue = {"project": world.value(query, params["project"]), "title": params["title"], "body": sku, "author": 1}
        plain = {"assignee": None, "milestone": None, "confidential": 0, "state": "open"}
        return [changed(Added("code_issues", {**issue, **plain}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _open_product(page, params["product"])
        (sku,) = page.search(r"SKU: (\S+)")
        yield page.goto(f"{ORIGINS['code']}/")
        yield page.click("link", re.compile(rf"[^/]+ / {re.escape(params['project'])}"))
        yield page.click("link", re.compile(r"Issues \(\d+\)"))
        yield page.click("link", "New issue")
        yield page.type("Title", params["title"])
        yield page.type("Description", sku)
        yield page.click("button", "Create issue")
        yield page.stop()


class DeveloperCustomer(TemplateClass):
    """Find a customer's account in code hosting by an order, and name the day on which they joined."""

    name, group, sites = "across-developer-customer", "cms", ("admin", "code")
    kind, difficulty = "information", "hard"
    intents = (
        "The customer who placed order {number} also has an account on the code hosting site. Since which day?",
        "On which day did the customer of order {number} become a member of the code hosting site?",
        "Find whoever placed order {number} on the code hosting site. When did that person join it?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Orders of customers with such an account."""
        query = (
            "SELECT o.number FROM shop_orders o JOIN shop_customers c ON c.id = o.customer JOIN code_accounts a "
            "ON a.email = c.email WHERE a.id > 1 AND a.name = c.first || ' ' || c.last"
        )
        return [dict(row) for row in world.rows(query)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = (
            "SELECT a.joined FROM shop_orders o JOIN shop_customers c ON c.id = o.customer JOIN code_accounts a "
            "ON a.email = c.email WHERE o.number = ?"
        )
        return [says(day(world.value(query, params["number"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.type("Search", params["number"], enter=True)
        yield page.click("link", f"#{params['number']}")
        name = page.value("Customer Name")
        yield page.goto(f"{ORIGINS['code']}/")
        yield page.type("Search Hammerfold", name, enter=True)
        if not page.has("link", name):
            yield page.click("link", re.compile(r"(People|Users)\b.*"))
        yield page.click("link", name)
        yield page.stop(page.search(r"member since (.*)")[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with today, when no one joined."""
        yield page.stop("Mar 16, 2026")


TEMPLATES: tuple[TemplateClass, ...] = (
    ShareProduct(),
    OrderTotalMessage(),
    TownOfOrder(),
    RestockAndBuy(),
    Hometown(),
    PhoneInComment(),
    IssueAboutProduct(),
    DeveloperCustomer(),
)

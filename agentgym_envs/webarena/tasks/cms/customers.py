"""Questions about customers, and changes to their accounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable, says
from agentgym_envs.webarena.tasks.cms.queries import AdminTemplate, one_per_answer, sample_some
from agentgym_envs.webarena.tasks.cms.steps import (
    field_value,
    filter_grid,
    open_customer,
    open_from_menu,
    open_order,
    table_with,
)
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_NAME = "first || ' ' || last"
_IS_NAME = "first || ' ' || last = ?"


class CustomerEmail(AdminTemplate):
    """Name a customer's e-mail address."""

    name, kind, difficulty = "cms-customer-email", "information", "easy"
    intents = (
        "What is the e-mail address of the customer {customer}?",
        "Tell me the e-mail address under which {customer} is registered.",
        "I need to write to {customer}. What is the e-mail address of the account?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return sample_some(
            map(dict, world.rows("SELECT first || ' ' || last AS customer FROM shop_customers ORDER BY id")), rng
        )

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        email = world.value(f"SELECT email FROM shop_customers WHERE {_IS_NAME}", params["customer"])
        others = world.rows("SELECT email FROM shop_customers WHERE email <> ? ORDER BY id", email)
        return [says(email, others=[row[0] for row in others])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_customer(page, params["customer"])
        yield page.stop(field_value(page, "E-mail"))


class CustomerByPhone(AdminTemplate):
    """Name the customer with a phone number."""

    name, kind, difficulty = "cms-whose-number", "information", "medium"
    intents = (
        "Somebody called from {phone}. Which customer is that?",
        "Find the customer whose phone number is {phone}, and tell me the name.",
        "What is the name of the customer with the phone number {phone}?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Phone numbers of default addresses that belong to a single customer."""
        query = """SELECT a.phone FROM shop_customers c JOIN shop_addresses a ON a.id = c.address
            GROUP BY a.phone HAVING COUNT(*) = 1 ORDER BY c.id"""
        return sample_some(map(dict, world.rows(query)), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT c.first || ' ' || c.last FROM shop_customers c JOIN shop_addresses a ON a.id = c.address
            WHERE a.phone = ?"""
        name = world.value(query, params["phone"])
        others = [row[0] for row in world.rows("SELECT first || ' ' || last FROM shop_customers")]
        return [says(name, others=[other for other in others if other != name])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Customers", "All Customers")
        yield from filter_grid(page, {"Phone": params["phone"]})
        yield page.stop(page.table()[0]["Name"])


class LifetimeSales(AdminTemplate):
    """Name the sum that a customer has spent."""

    name, kind, difficulty = "cms-lifetime-sales", "information", "easy"
    intents = (
        "How much has {customer} spent in our shop so far? Leave canceled orders out.",
        "What are the lifetime sales of the customer {customer}?",
        "Tell me the lifetime sales of {customer}, which leave canceled orders out.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Customers who spent different sums."""
        query = """SELECT c.first || ' ' || c.last AS customer, SUM(o.total) AS total FROM shop_orders o
            JOIN shop_customers c ON c.id = o.customer WHERE o.status <> 'canceled' GROUP BY c.id ORDER BY c.id"""
        rows = world.rows(query)
        return sample_some(one_per_answer((row["total"], {"customer": row["customer"]}) for row in rows), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = f"""SELECT SUM(o.total) FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
            WHERE o.status <> 'canceled' AND {_IS_NAME}"""
        return [says(money(world.value(query, params["customer"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_customer(page, params["customer"])
        yield page.stop(page.value("Lifetime Sales"))


class EnquiryOrder(AdminTemplate):
    """Name the grand total of the order that a customer has written about."""

    name, kind, difficulty = "cms-order-of-enquiry", "information", "medium"
    held_out = True
    intents = (
        '{customer} has written to us about an order ("{subject}"). What is its grand total?',
        'Look up the enquiry "{subject}" of {customer}. How much did the order that it is about come to?',
        'What is the grand total of the order that {customer} mentions in the enquiry with the subject "{subject}"?',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Enquiries that name an order, one for each person."""
        query = """SELECT e.name AS customer, e.subject, o.total FROM shop_enquiries e
            JOIN shop_orders o ON o.number = e.order_number GROUP BY e.name HAVING COUNT(*) = 1 ORDER BY e.name"""
        return one_per_answer((row["total"], {"customer": row[0], "subject": row[1]}) for row in world.rows(query))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT o.total FROM shop_enquiries e JOIN shop_orders o ON o.number = e.order_number
            WHERE e.name = ? AND e.subject = ?"""
        return [says(money(world.value(query, params["customer"], params["subject"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Customers", "Enquiries")
        yield page.click_in(params["customer"], "link", params["subject"])
        yield from open_order(page, page.search(r"\b(\d{9})\b")[0])
        yield page.stop(page.value("Grand Total"))


class ChangeGroup(AdminTemplate):
    """Move a customer to another group."""

    name, kind, difficulty = "cms-change-group", "change", "medium"
    intents = (
        "Move the customer {customer} to the group {target}.",
        "{customer} is a {target} customer now. Change the group of the account accordingly.",
        "Set the customer group of {customer} to {target}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = "SELECT first || ' ' || last AS customer, customer_group FROM shop_customers ORDER BY id"
        for row in sample_some(world.rows(query), rng):
            others = [group for group in ("General", "Wholesale", "Retailer") if group != row["customer_group"]]
            yield {"customer": row["customer"], "target": rng.choice(others)}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        id = world.value(f"SELECT id FROM shop_customers WHERE {_IS_NAME}", params["customer"])
        return [changed(Updated("shop_customers", {"id": id}, {"customer_group": params["target"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_customer(page, params["customer"])
        yield page.choose("Group", params["target"])
        yield page.click("button", "Save Customer")
        yield page.stop()


class ChangeEmail(AdminTemplate):
    """Change the e-mail address of a customer."""

    name, kind, difficulty = "cms-change-email", "change", "medium"
    intents = (
        "The customer {customer} has a new e-mail address: {email}. Enter it in the account.",
        "Change the e-mail address of {customer}'s account to {email}.",
        "Update the customer {customer}: the e-mail address is {email} from now on.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for first, last in sample_some(
            map(tuple, world.rows("SELECT first, last FROM shop_customers ORDER BY id")), rng
        ):
            host = rng.choice(("post", "inbox", "letters", "home"))
            plain = last.lower().replace("ö", "o")
            yield {"customer": f"{first} {last}", "email": f"{first.lower()}.{plain}@{host}.test"}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        id = world.value(f"SELECT id FROM shop_customers WHERE {_IS_NAME}", params["customer"])
        return [changed(Updated("shop_customers", {"id": id}, {"email": params["email"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_customer(page, params["customer"])
        yield page.type("E-mail", params["email"])
        yield page.click("button", "Save Customer")
        yield page.stop()


class UnsubscribeCustomer(AdminTemplate):
    """Unsubscribe a customer from the newsletter."""

    name, kind, difficulty = "cms-unsubscribe", "change", "easy"
    intents = (
        "Unsubscribe the customer {customer} from the newsletter.",
        "{customer} does not want our newsletter any longer. End the subscription without deleting it.",
        "Set the newsletter subscription of {customer} to unsubscribed.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = """SELECT c.first || ' ' || c.last AS customer FROM shop_subscribers s
            JOIN shop_customers c ON c.id = s.customer WHERE s.status = 'subscribed'
            GROUP BY c.id HAVING COUNT(*) = 1 ORDER BY c.id"""
        return sample_some(map(dict, world.rows(query)), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        id = world.value(f"SELECT id FROM shop_customers WHERE {_IS_NAME}", params["customer"])
        return [changed(Updated("shop_subscribers", {"customer": id}, {"status": "unsubscribed"}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_customer(page, params["customer"])
        yield page.click("button", "Unsubscribe from Newsletter")
        yield page.stop()


class CustomerSince(AdminTemplate):
    """Name the day on which a customer joined."""

    name, kind, difficulty = "cms-customer-since", "information", "easy"
    intents = (
        "Since when has {customer} been a customer? Give the date.",
        "On which day did {customer} become a customer of ours?",
        "What is the date since which {customer} has had an account in the shop?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Customers who joined on different days."""
        rows = sample_some(world.rows(f"SELECT {_NAME} AS customer, joined FROM shop_customers ORDER BY id"), rng, 150)
        return sample_some(one_per_answer((row["joined"][:10], {"customer": row["customer"]}) for row in rows), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(day(world.value(f"SELECT joined FROM shop_customers WHERE {_IS_NAME}", params["customer"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_customer(page, params["customer"])
        yield page.stop(page.value("Customer Since"))


class LastReview(AdminTemplate):
    """Name the product that a customer reviewed last."""

    name, kind, difficulty = "cms-last-review", "information", "easy"
    intents = (
        "Which product did {customer} review most recently?",
        "Which product is the newest review about that was written from {customer}'s account?",
        "Look up the customer {customer}. Which product is their latest review about?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Customers who have reviewed several products."""
        rows = world.rows("SELECT DISTINCT customer FROM shop_reviews WHERE customer IS NOT NULL ORDER BY customer")
        found = [(self._products(world, row["customer"]), row["customer"]) for row in rows]
        chosen = [(products[0], id) for products, id in found if products[0] not in products[1:]]
        names = {row["id"]: row["name"] for row in world.rows(f"SELECT id, {_NAME} AS name FROM shop_customers")}
        return sample_some(one_per_answer((product, {"customer": names[id]}) for product, id in chosen), rng)

    def _products(self, world: World, customer: int) -> list[str]:
        query = """SELECT p.name FROM shop_reviews r JOIN shop_products p ON p.id = r.product
            WHERE r.customer = ? ORDER BY r.moment DESC, r.id DESC"""
        return [row["name"] for row in world.rows(query, customer)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        id = world.value(f"SELECT id FROM shop_customers WHERE {_IS_NAME}", params["customer"])
        first, *others = self._products(world, id)
        query = """SELECT DISTINCT p.name FROM shop_reviews r JOIN shop_products p ON p.id = r.product
            WHERE p.name <> ? ORDER BY p.id LIMIT 150"""
        return [says(first, others=[*others, *(row["name"] for row in world.rows(query, first))])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_customer(page, params["customer"])
        yield page.stop(table_with(page, "Rating")[0]["Product"])


class UnknownCustomer(AdminTemplate):
    """Name the e-mail address of a person who is not a customer, which is impossible."""

    name, kind, difficulty = "cms-unknown-customer", "information", "easy"
    intents = CustomerEmail.intents

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Combine first and last names of different customers."""
        rows = world.rows("SELECT first, last FROM shop_customers ORDER BY id")
        known = {(row["first"], row["last"]) for row in rows}
        pairs = [(one["first"], other["last"]) for one, other in zip(rows, reversed(rows), strict=True)]
        return [{"customer": f"{first} {last}"} for first, last in pairs if (first, last) not in known]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.type("Search", params["customer"], enter=True)
        known = page.has("link", params["customer"])
        yield page.stop("See above") if known else page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with an invented address."""
        yield page.stop(f"{params['customer'].replace(' ', '.').lower()}@mail.test")


class SubscribeCustomer(AdminTemplate):
    """Subscribe a customer to the newsletter."""

    name, kind, difficulty = "cms-subscribe", "change", "easy"
    intents = (
        "Subscribe the customer {customer} to the newsletter.",
        "{customer} wants to get our newsletter. Enter the subscription for this customer.",
        "Set the customer {customer} to be subscribed to the newsletter.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = f"""SELECT {_NAME} AS customer FROM shop_customers c WHERE NOT EXISTS (SELECT 1 FROM shop_subscribers s
            WHERE s.customer = c.id AND s.status = 'subscribed' OR s.customer IS NULL AND s.email = c.email)
            ORDER BY id"""
        return sample_some(map(dict, world.rows(query)), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """A new subscription, or an old one that is active again."""
        id = world.value(f"SELECT id FROM shop_customers WHERE {_IS_NAME}", params["customer"])
        if world.value("SELECT 1 FROM shop_subscribers WHERE customer = ?", id):
            again = Updated("shop_subscribers", {"customer": id}, {"status": "subscribed"})
            return [changed(again, free=("shop_subscribers.moment",))]
        return [changed(Added("shop_subscribers", {"customer": id, "status": "subscribed"}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_customer(page, params["customer"])
        yield page.click("button", "Subscribe to Newsletter")
        yield page.stop()


TEMPLATES = (
    CustomerEmail(),
    CustomerByPhone(),
    LifetimeSales(),
    EnquiryOrder(),
    ChangeGroup(),
    ChangeEmail(),
    UnsubscribeCustomer(),
    CustomerSince(),
    LastReview(),
    UnknownCustomer(),
    SubscribeCustomer(),
)

"""Questions about customers, and changes to their accounts."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.framework.rendering import money
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable, Says, says
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import ENOUGH, AdminTemplate
from agentgym_envs.webarena.tasks.instances import choose, rows
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, click_in, do, given, not_offered, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params, changed

_NAME = "first || ' ' || last"
_IS_NAME = "first || ' ' || last = ?"


def _id(world: World, customer: str) -> int:
    return int(world.value(f"SELECT id FROM shop_customers WHERE {_IS_NAME}", customer))


def _customer_email_expected(world: World, customer: str) -> Says:
    email = world.value(f"SELECT email FROM shop_customers WHERE {_IS_NAME}", customer)
    others = world.rows("SELECT email FROM shop_customers WHERE email <> ? ORDER BY id", email)
    return says(email, others=[row[0] for row in others])


customer_email = AdminTemplate(
    "cms-customer-email",
    "information",
    "easy",
    intents=(
        "What is the e-mail address of the customer {customer}?",
        "Tell me the e-mail address under which {customer} is registered.",
        "I need to write to {customer}. What is the e-mail address of the account?",
    ),
    instances=rows("SELECT first || ' ' || last AS customer FROM shop_customers ORDER BY id", sample=ENOUGH),
    expected=_customer_email_expected,
    solution=[do(steps.open_customer, "{customer}"), answer(lambda page: steps.field_value(page, "E-mail"))],
)


def _customer_by_phone_expected(world: World, phone: str) -> Says:
    query = """SELECT c.first || ' ' || c.last FROM shop_customers c JOIN shop_addresses a ON a.id = c.address
        WHERE a.phone = ?"""
    name = world.value(query, phone)
    others = [row[0] for row in world.rows("SELECT first || ' ' || last FROM shop_customers")]
    return says(name, others=[other for other in others if other != name])


customer_by_phone = AdminTemplate(
    "cms-whose-number",
    "information",
    "medium",
    intents=(
        "Somebody called from {phone}. Which customer is that?",
        "Find the customer whose phone number is {phone}, and tell me the name.",
        "What is the name of the customer with the phone number {phone}?",
    ),
    instances=rows(
        """SELECT a.phone FROM shop_customers c JOIN shop_addresses a ON a.id = c.address
            GROUP BY a.phone HAVING COUNT(*) = 1 ORDER BY c.id""",
        sample=ENOUGH,
    ),
    expected=_customer_by_phone_expected,
    solution=[
        do(steps.open_from_menu, "Customers", "All Customers"),
        do(steps.filter_grid, {"Phone": "{phone}"}),
        answer(lambda page: page.table()[0]["Name"]),
    ],
)


def _sales(world: World, customer: str) -> Says:
    query = f"""SELECT SUM(o.total) FROM shop_orders o JOIN shop_customers c ON c.id = o.customer
        WHERE o.status <> 'canceled' AND {_IS_NAME}"""
    return says(money(world.value(query, customer)))


lifetime_sales = AdminTemplate(
    "cms-lifetime-sales",
    "information",
    "easy",
    intents=(
        "How much has {customer} spent in our shop so far? Leave canceled orders out.",
        "What are the lifetime sales of the customer {customer}?",
        "Tell me the lifetime sales of {customer}, which leave canceled orders out.",
    ),
    instances=queries.one_row_per_answer("""SELECT SUM(o.total), c.first || ' ' || c.last AS customer FROM shop_orders o
        JOIN shop_customers c ON c.id = o.customer WHERE o.status <> 'canceled' GROUP BY c.id ORDER BY c.id"""),
    expected=_sales,
    solution=[do(steps.open_customer, "{customer}"), answer(lambda page: page.value("Lifetime Sales"))],
)


def _enquiry_total(world: World, customer: str, subject: str) -> Says:
    query = """SELECT o.total FROM shop_enquiries e JOIN shop_orders o ON o.number = e.order_number
        WHERE e.name = ? AND e.subject = ?"""
    return says(money(world.value(query, customer, subject)))


enquiry_order = AdminTemplate(
    "cms-order-of-enquiry",
    "information",
    "medium",
    held_out=True,
    intents=(
        '{customer} has written to us about an order ("{subject}"). What is its grand total?',
        'Look up the enquiry "{subject}" of {customer}. How much did the order that it is about come to?',
        'What is the grand total of the order that {customer} mentions in the enquiry with the subject "{subject}"?',
    ),
    instances=queries.one_row_per_answer(
        """SELECT o.total, e.name AS customer, e.subject FROM shop_enquiries e
        JOIN shop_orders o ON o.number = e.order_number GROUP BY e.name HAVING COUNT(*) = 1 ORDER BY e.name""",
        sample=0,
    ),
    expected=_enquiry_total,
    solution=[
        do(steps.open_from_menu, "Customers", "Enquiries"),
        click_in("{customer}", "link", "{subject}"),
        do(steps.open_order, given(lambda page: page.search(r"\b(\d{9})\b")[0])),
        answer(lambda page: page.value("Grand Total")),
    ],
)


def _change_group_instances(world: World, rng: Random) -> Iterator[Params]:
    query = "SELECT first || ' ' || last AS customer, customer_group FROM shop_customers ORDER BY id"
    for row in queries.sample_some(world.rows(query), rng):
        others = [group for group in ("General", "Wholesale", "Retailer") if group != row["customer_group"]]
        yield {"customer": row["customer"], "target": rng.choice(others)}


change_group = AdminTemplate(
    "cms-change-group",
    "change",
    "medium",
    intents=(
        "Move the customer {customer} to the group {target}.",
        "{customer} is a {target} customer now. Change the group of the account accordingly.",
        "Set the customer group of {customer} to {target}.",
    ),
    instances=_change_group_instances,
    expected=lambda world, customer, target: Updated(
        "shop_customers", {"id": _id(world, customer)}, {"customer_group": target}
    ),
    solution=[
        do(steps.open_customer, "{customer}"),
        choose_option("Group", "{target}"),
        click("button", "Save Customer"),
    ],
)


def _change_email_instances(world: World, rng: Random) -> Iterator[Params]:
    for first, last in queries.sample_some(
        map(tuple, world.rows("SELECT first, last FROM shop_customers ORDER BY id")), rng
    ):
        host = rng.choice(("post", "inbox", "letters", "home"))
        plain = last.lower().replace("ö", "o")
        yield {"customer": f"{first} {last}", "email": f"{first.lower()}.{plain}@{host}.test"}


change_email = AdminTemplate(
    "cms-change-email",
    "change",
    "medium",
    intents=(
        "The customer {customer} has a new e-mail address: {email}. Enter it in the account.",
        "Change the e-mail address of {customer}'s account to {email}.",
        "Update the customer {customer}: the e-mail address is {email} from now on.",
    ),
    instances=_change_email_instances,
    expected=lambda world, customer, email: Updated("shop_customers", {"id": _id(world, customer)}, {"email": email}),
    solution=[do(steps.open_customer, "{customer}"), type_text("E-mail", "{email}"), click("button", "Save Customer")],
)

unsubscribe_customer = AdminTemplate(
    "cms-unsubscribe",
    "change",
    "easy",
    intents=(
        "Unsubscribe the customer {customer} from the newsletter.",
        "{customer} does not want our newsletter any longer. End the subscription without deleting it.",
        "Set the newsletter subscription of {customer} to unsubscribed.",
    ),
    instances=rows(
        """SELECT c.first || ' ' || c.last AS customer FROM shop_subscribers s
            JOIN shop_customers c ON c.id = s.customer WHERE s.status = 'subscribed'
            GROUP BY c.id HAVING COUNT(*) = 1 ORDER BY c.id""",
        sample=ENOUGH,
    ),
    expected=lambda world, customer: Updated(
        "shop_subscribers", {"customer": _id(world, customer)}, {"status": "unsubscribed"}
    ),
    solution=[do(steps.open_customer, "{customer}"), click("button", "Unsubscribe from Newsletter")],
)


def _joined(world: World, rng: Random) -> list[Params]:
    """Return customers who joined on different days."""
    query = f"SELECT {_NAME} AS customer, joined FROM shop_customers ORDER BY id"
    rows = queries.sample_some(world.rows(query), rng, 150)
    return queries.one_per_answer((row["joined"][:10], {"customer": row["customer"]}) for row in rows)


customer_since = AdminTemplate(
    "cms-customer-since",
    "information",
    "easy",
    intents=(
        "Since when has {customer} been a customer? Give the date.",
        "On which day did {customer} become a customer of ours?",
        "What is the date since which {customer} has had an account in the shop?",
    ),
    instances=choose(_joined, sample=ENOUGH),
    expected=lambda world, customer: says(
        day(world.value(f"SELECT joined FROM shop_customers WHERE {_IS_NAME}", customer))
    ),
    solution=[do(steps.open_customer, "{customer}"), answer(lambda page: page.value("Customer Since"))],
)


def _reviewers(world: World) -> list[Params]:
    """Return customers who have reviewed several products."""
    rows = world.rows("SELECT DISTINCT customer FROM shop_reviews WHERE customer IS NOT NULL ORDER BY customer")
    found = [(_products(world, row["customer"]), row["customer"]) for row in rows]
    chosen = [(products[0], id) for products, id in found if products[0] not in products[1:]]
    names = {row["id"]: row["name"] for row in world.rows(f"SELECT id, {_NAME} AS name FROM shop_customers")}
    return queries.one_per_answer((product, {"customer": names[id]}) for product, id in chosen)


def _last_reviewed(world: World, customer: str) -> Says:
    id = _id(world, customer)
    first, *others = _products(world, id)
    query = """SELECT DISTINCT p.name FROM shop_reviews r JOIN shop_products p ON p.id = r.product
        WHERE p.name <> ? ORDER BY p.id LIMIT 150"""
    return says(first, others=[*others, *(row["name"] for row in world.rows(query, first))])


def _products(world: World, customer: int) -> list[str]:
    query = """SELECT p.name FROM shop_reviews r JOIN shop_products p ON p.id = r.product
        WHERE r.customer = ? ORDER BY r.moment DESC, r.id DESC"""
    return [row["name"] for row in world.rows(query, customer)]


last_review = AdminTemplate(
    "cms-last-review",
    "information",
    "easy",
    intents=(
        "Which product did {customer} review most recently?",
        "Which product is the newest review about that was written from {customer}'s account?",
        "Look up the customer {customer}. Which product is their latest review about?",
    ),
    instances=choose(_reviewers, sample=ENOUGH),
    expected=_last_reviewed,
    solution=[
        do(steps.open_customer, "{customer}"),
        answer(lambda page: steps.table_with(page, "Rating")[0]["Product"]),
    ],
)


def _unknown_customer_instances(world: World) -> list[Params]:
    """Combine first and last names of different customers."""
    rows = world.rows("SELECT first, last FROM shop_customers ORDER BY id")
    known = {(row["first"], row["last"]) for row in rows}
    pairs = [(one["first"], other["last"]) for one, other in zip(rows, reversed(rows), strict=True)]
    return [{"customer": f"{first} {last}"} for first, last in pairs if (first, last) not in known]


unknown_customer = AdminTemplate(
    "cms-unknown-customer",
    "information",
    "easy",
    intents=customer_email.intents,
    instances=_unknown_customer_instances,
    expected=NotAchievable,
    solution=[type_text("Search", "{customer}", enter=True), not_offered("link", "{customer}")],
    mistake=[answer(lambda customer: f"{customer.replace(' ', '.').lower()}@mail.test")],
)


def _subscribed(world: World, customer: str) -> ExpectedResult:
    id = _id(world, customer)
    if world.value("SELECT 1 FROM shop_subscribers WHERE customer = ?", id):
        again = Updated("shop_subscribers", {"customer": id}, {"status": "subscribed"})
        return [changed(again, free=("shop_subscribers.moment",))]
    return Added("shop_subscribers", {"customer": id, "status": "subscribed"})


subscribe_customer = AdminTemplate(
    "cms-subscribe",
    "change",
    "easy",
    intents=(
        "Subscribe the customer {customer} to the newsletter.",
        "{customer} wants to get our newsletter. Enter the subscription for this customer.",
        "Set the customer {customer} to be subscribed to the newsletter.",
    ),
    instances=rows(
        f"""SELECT {_NAME} AS customer FROM shop_customers c WHERE NOT EXISTS (SELECT 1 FROM shop_subscribers s
            WHERE s.customer = c.id AND s.status = 'subscribed' OR s.customer IS NULL AND s.email = c.email)
            ORDER BY id""",
        sample=ENOUGH,
    ),
    expected=_subscribed,
    solution=[do(steps.open_customer, "{customer}"), click("button", "Subscribe to Newsletter")],
)

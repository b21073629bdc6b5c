"""Tasks about the words and ratings of reviews that need several of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from sqlite3 import Row

from agentgym_envs.webarena.evaluators.state import Removed, Updated
from agentgym_envs.webarena.evaluators.strings import AnswerIncludes
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, MONTHS, AdminTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import kinds
from agentgym_envs.webarena.tasks.steps import answer, click, do
from agentgym_envs.webarena.tasks.template import Params

_REVIEWS = "SELECT r.* FROM shop_reviews r JOIN shop_products p ON p.id = r.product WHERE p.name = ? ORDER BY r.id"


def _reviews(world: World, product: str, *, bad: bool) -> list[Row]:
    """Return the reviews of a product with one or two stars, or those with four or five."""
    return [row for row in world.rows(_REVIEWS, product) if (row["rating"] < 3 if bad else row["rating"] > 3)]


def _products(world: World, least: int, most: int) -> Iterator[str]:
    """Yield products whose names no other name contains, with a convenient number of reviews."""
    query = (
        "SELECT p.name FROM shop_products p JOIN shop_reviews r ON r.product = p.id GROUP BY p.id "
        "HAVING COUNT(*) BETWEEN ? AND ? ORDER BY p.id"
    )
    names = [row[0] for row in world.rows("SELECT name FROM shop_products ORDER BY id")]
    every = "\n".join(names).lower()
    yield from (r[0] for r in world.rows(query, least, most) if every.count(r[0].lower()) == 1 and kinds.known(r[0]))


def _clauses(product: str, rows: Sequence[Row], *, bad: bool) -> list[str]:
    words = " / ".join(f"{row['title']} {row['text']}".lower() for row in rows)
    known = kinds.complaints(product) if bad else kinds.praise(product)
    return [clause for clause in known if clause.lower() in words]


def _quoted(world: World, product: str, *, bad: bool) -> AnswerIncludes:
    wanted = _clauses(product, _reviews(world, product, bad=bad), bad=bad)
    others = _clauses(product, _reviews(world, product, bad=not bad), bad=not bad)
    return AnswerIncludes(wanted, [one for one in others if one not in wanted])


def _read(page: PageReader, product: str, fits: Sequence[int]) -> Steps[list[str]]:
    """Open the reviews of a product that have one of these ratings, and return their titles and texts."""
    yield from steps.open_from_menu(page, "Marketing", "All Reviews")
    yield from steps.filter_grid(page, {"Product": product})
    numbers = [row["ID"] for row in page.table() if int(row["Rating"]) in fits]
    texts = []
    for number in numbers:
        yield page.goto(f"{ADMIN}/reviews/{number}")
        texts.append(f"{steps.field_value(page, 'Summary of Review')} {steps.field_value(page, 'Review')}")
    return texts


def _quotes(page: PageReader, product: str, *, bad: bool) -> Steps[str]:
    texts = yield from _read(page, product, (1, 2) if bad else (4, 5))
    known = kinds.complaints(product) if bad else kinds.praise(product)
    return "; ".join(clause for clause in known if any(clause.lower() in text.lower() for text in texts))


def _quotable(world: World, *, bad: bool) -> Iterator[Params]:
    """Yield products with two to five such reviews, and reviews of the other kind."""
    for product in _products(world, 4, 12):
        rows = _reviews(world, product, bad=bad)
        if 1 < len(rows) < 6 and len(_clauses(product, rows, bad=bad)) > 1 and _reviews(world, product, bad=not bad):
            yield {"product": product}


criticisms = AdminTemplate(
    "cms-criticisms",
    "information",
    "medium",
    since=2,
    intents=(
        "What don't customers like about {product}? Quote each complaint from its reviews with one or two stars, of "
        "any status.",
        "Read all reviews of {product} with at most two stars, whatever their status, and quote every point that they "
        "criticise.",
        "Which key aspects of {product} do unhappy reviewers (one or two stars, any status) complain about? Answer in "
        "their words, and leave nothing out.",
    ),
    instances=lambda world: _quotable(world, bad=True),
    expected=lambda world, product: _quoted(world, product, bad=True),
    solution=lambda page, product: _quotes(page, product, bad=True),
    mistake=lambda page, product: _quotes(page, product, bad=False),
)

praise = AdminTemplate(
    "cms-praise",
    "information",
    "medium",
    since=2,
    intents=(
        "Tell me the reasons why customers like {product}: quote each from its reviews with four or five stars, of any "
        "status.",
        "Read all reviews of {product} with at least four stars, whatever their status. What do they praise? Quote "
        "every point.",
        "What do happy reviewers (four or five stars, any status) say in favour of {product}? Give all their reasons "
        "in their words.",
    ),
    instances=lambda world: _quotable(world, bad=False),
    expected=lambda world, product: _quoted(world, product, bad=False),
    solution=lambda page, product: _quotes(page, product, bad=False),
    mistake=lambda page, product: _quotes(page, product, bad=True),
)


def _best(world: World, product: str) -> list[Row]:
    return [row for row in world.rows(_REVIEWS, product) if row["rating"] == 5]


def _with_best(world: World) -> Iterator[Params]:
    for product in _products(world, 2, 12):
        if 1 <= len(_best(world, product)) <= 4:
            yield {"product": product}


def _described(world: World, product: str) -> Updated:
    """Return the change of a description that includes the texts of the best reviews, in any order."""
    parts = "".join(rf"(?=.*{re.escape(row['text'])})" for row in _best(world, product))
    return Updated("shop_products", {"name": product}, {"description": re.compile(f"{parts}.*", re.DOTALL)})


def _quote_best(page: PageReader, product: str, stars: int) -> Steps[None]:
    yield from steps.open_from_menu(page, "Marketing", "All Reviews")
    yield from steps.filter_grid(page, {"Product": product})
    numbers = [row["ID"] for row in page.table() if int(row["Rating"]) == stars]
    texts = []
    for number in numbers:
        yield page.goto(f"{ADMIN}/reviews/{number}")
        texts.append(steps.field_value(page, "Review"))
    yield from steps.open_product(page, product)
    yield page.type("Description", "\n\n".join(["Our customers say:", *texts]))
    yield page.click("button", "Save")


quote_in_description = AdminTemplate(
    "cms-quote-in-description",
    "change",
    "hard",
    since=2,
    intents=(
        "Update the description of {product} so that it quotes the full text of each of its five-star reviews, "
        "whatever their status.",
        "Let the description of {product} show how much it is liked: it has to contain the texts of all its reviews "
        "with five stars (of every status), word for word.",
        "Rewrite the description of {product}. Quote in it the whole text of every review that gives it five stars, "
        "also of those that are not approved.",
    ),
    instances=_with_best,
    expected=_described,
    solution=lambda page, product: _quote_best(page, product, 5),
    mistake=lambda page, product: _quote_best(page, product, 1),
)

_FACTS = {"name": "first || ' ' || last", "e-mail address": "email"}


def _unhappiest(world: World, product: str) -> Row | None:
    """Return the only worst review of a product if a registered customer wrote it."""
    rows = sorted(world.rows(_REVIEWS, product), key=lambda row: row["rating"])
    alone = rows[0]["rating"] < rows[1]["rating"] and rows[0]["customer"]
    return rows[0] if alone else None


def _unhappy(world: World) -> Iterator[Params]:
    for product in _products(world, 2, 12):
        if _unhappiest(world, product):
            yield from ({"product": product, "fact": fact} for fact in _FACTS)


def _fact_of_unhappiest(world: World, product: str, fact: str) -> Says:
    review = _unhappiest(world, product)
    assert review
    value = world.value(f"SELECT {_FACTS[fact]} FROM shop_customers WHERE id = ?", review["customer"])
    others = world.rows(f"SELECT {_FACTS[fact]} FROM shop_customers WHERE id <> ?", review["customer"])
    return says(value, others=[row[0] for row in others])


def _find_unhappiest(page: PageReader, product: str, fact: str) -> Steps[str]:
    yield from steps.open_from_menu(page, "Marketing", "All Reviews")
    yield from steps.filter_grid(page, {"Product": product})
    worst = min(page.table(), key=lambda row: int(row["Rating"]))
    yield page.goto(f"{ADMIN}/reviews/{worst['ID']}")
    name = page.value("Author").removeprefix("Customer ")
    if fact == "name":
        return name
    yield from steps.open_customer(page, name)
    return steps.field_value(page, "E-mail")


unhappiest_customer = AdminTemplate(
    "cms-unhappiest-customer",
    "information",
    "medium",
    since=2,
    intents=(
        "What is the {fact} of the customer who is the most unhappy with {product}, by the stars of the reviews?",
        "A registered customer gave {product} its lowest rating. Tell me the {fact} of that customer.",
        "Find the customer who rated {product} worst, and give me the {fact}.",
    ),
    instances=_unhappy,
    expected=_fact_of_unhappiest,
    solution=_find_unhappiest,
    mistake=[answer("Rita Nobody, nobody@mail.test")],
)


def _dissatisfied(world: World, product: str) -> Says:
    low = [row["nickname"] for row in _reviews(world, product, bad=True)]
    return says(*low, others=[row["nickname"] for row in world.rows(_REVIEWS, product) if row["nickname"] not in low])


def _distinct(world: World) -> Iterator[Params]:
    """Yield products with one to four bad reviews, and nicknames that do not contain each other."""
    for product in _products(world, 4, 12):
        names = [row["nickname"].lower() for row in world.rows(_REVIEWS, product)]
        alone = not any(one in two for n, one in enumerate(names) for two in names[:n] + names[n + 1 :])
        if alone and 1 <= len(_reviews(world, product, bad=True)) <= 4:
            yield {"product": product}


def _filtered(page: PageReader, product: str) -> Iterator[str]:
    yield from steps.open_from_menu(page, "Marketing", "All Reviews")
    yield from steps.filter_grid(page, {"Product": product})


dissatisfied = AdminTemplate(
    "cms-dissatisfied",
    "information",
    "medium",
    since=2,
    intents=(
        "Who has expressed dissatisfaction with {product}, that is, given it one or two stars? List the nicknames, "
        "whatever the status of the review.",
        "Show me the nicknames of all reviewers who were unhappy with {product} (at most two stars, any status).",
        "List everybody whose review of {product} has fewer than three stars, of every status. Nicknames will do.",
    ),
    instances=_distinct,
    expected=_dissatisfied,
    solution=[
        do(_filtered, "{product}"),
        answer(lambda page: ", ".join(row["Nickname"] for row in page.table() if int(row["Rating"]) < 3)),
    ],
    mistake=answer(lambda page: ", ".join(row["Nickname"] for row in page.table())),
)


def _select_bad(page: PageReader, *, every: bool = False) -> Iterator[str]:
    """Select the bad reviews of the grid, or all, and delete them."""
    for number, row in enumerate(page.table()):
        if every or int(row["Rating"]) < 3:
            yield page.click("checkbox", re.compile("Select .*"), nth=number + 1)
    yield page.choose("Actions", "Delete")
    yield page.click("button", "Submit")


def _deleted(world: World, product: str) -> list[Removed]:
    return [Removed("shop_reviews", {"id": row["id"]}) for row in _reviews(world, product, bad=True)]


delete_negative = AdminTemplate(
    "cms-delete-negative",
    "change",
    "medium",
    since=2,
    intents=(
        "Delete all negative reviews of {product}: those with one or two stars, whatever their status.",
        "Remove every review of {product} that gives it fewer than three stars, and no others.",
        "The bad reviews of {product} (one or two stars, of any status) are fake. Delete them all.",
    ),
    instances=lambda world: [
        {"product": name}
        for name in _products(world, 4, 12)
        if 1 <= len(_reviews(world, name, bad=True)) <= 5 and _reviews(world, name, bad=False)
    ],
    expected=_deleted,
    solution=[do(_filtered, "{product}"), do(_select_bad)],
    mistake=[do(_filtered, "{product}"), do(_select_bad, every=True)],
)

_STATUSES = ("approved", "pending", "rejected")


def _counts(world: World) -> Iterator[Params]:
    for status in (*_STATUSES, "any"):
        yield from ({"status": status, "month": month} for month in MONTHS)


def _count(world: World, status: str, month: str) -> int:
    where = "" if status == "any" else f"AND status = '{status}'"
    query = f"SELECT COUNT(*) FROM shop_reviews WHERE substr(moment, 1, 7) = ? {where}"
    return int(world.value(query, MONTHS[month]))


def _filter_counted(page: PageReader, status: str, month: str) -> Iterator[str]:
    yield from steps.open_from_menu(page, "Marketing", "All Reviews")
    dates = queries.month_range(month)
    choices = {} if status == "any" else {"Status": status.capitalize()}
    yield from steps.filter_grid(page, {"Created from": dates["From"], "Created to": dates["To"]}, **choices)


count_reviews = AdminTemplate(
    "cms-count-reviews",
    "information",
    "medium",
    since=2,
    intents=(
        'How many reviews with the status "{status}" did our shop receive in {month}? ("any" means all of them.)',
        'Count the reviews that were created in {month}, with the status "{status}"; "any" stands for every status.',
        'What is the number of reviews of {month} whose status is "{status}" (with "any": of all)?',
    ),
    instances=lambda world: queries.one_per_answer((_count(world, **params), params) for params in _counts(world)),
    expected=lambda world, status, month: says(_count(world, status, month)),
    solution=[do(_filter_counted, "{status}", "{month}"), answer(steps.count_found)],
    mistake=[do(steps.open_from_menu, "Marketing", "All Reviews"), answer(steps.count_found)],
)

_LISTS = {
    "all customers": ("Customers", "All Customers", "customers"),
    "all invoices": ("Sales", "Invoices", "invoices"),
    "all shipments": ("Sales", "Shipments", "shipments"),
    "all reviews that wait for approval": ("Marketing", "Pending Reviews", "reviews/pending"),
}


def _open_list(page: PageReader, what: str) -> Iterator[str]:
    yield from steps.open_from_menu(page, *_LISTS[what][:2])


show_list = AdminTemplate(
    "cms-show-list",
    "navigation",
    "easy",
    since=2,
    intents=("Show {what}.", "Open the list of {what}.", "Bring me to the page with {what}, unfiltered."),
    instances=lambda: [{"what": what} for what in _LISTS],
    expected=lambda what: EndsOn(f"{ADMIN}/{_LISTS[what][2]}"),
    solution=[do(_open_list, "{what}")],
    mistake=[do(steps.open_from_menu, "Sales", "Orders"), click("link", "Order #")],
)

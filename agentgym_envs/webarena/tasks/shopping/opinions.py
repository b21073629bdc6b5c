"""Questions about the words of reviews: complaints, praise, and who wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from agentgym_envs.webarena.evaluators.state import Added
from agentgym_envs.webarena.evaluators.strings import AnswerIncludes
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps, texts_of
from agentgym_envs.webarena.tasks.shopping import kinds, queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import answer, do, given
from agentgym_envs.webarena.tasks.template import Params

REVIEWS = "FROM shop_reviews r JOIN shop_products p ON p.id = r.product WHERE r.status = 'approved' AND p.enabled"


class Opinion(NamedTuple):
    """A review: who wrote it, the stars, and its words in lower case."""

    nickname: str
    stars: int
    words: str


def _opinions(world: World, product: str) -> list[Opinion]:
    rows = world.rows(
        f"SELECT r.nickname, r.rating, r.title || ' ' || r.text AS words {REVIEWS} AND p.name = ?", product
    )
    return [Opinion(row["nickname"], row["rating"], row["words"].lower()) for row in rows]


def _reviewed(world: World, least: int = 4, most: int = 20) -> list[str]:
    """Return the names of products with a convenient number of reviews."""
    query = f"SELECT p.name {REVIEWS} GROUP BY p.id HAVING COUNT(*) BETWEEN ? AND ? ORDER BY p.id"
    return [row[0] for row in world.rows(query, least, most) if kinds.known(row[0])]


def clauses(product: str, opinions: list[Opinion], *, bad: bool) -> list[str]:
    """Return the complaints of reviews with one or two stars, or the praise of those with four or five."""
    known = kinds.complaints(product) if bad else kinds.praise(product)
    words = " / ".join(one.words for one in opinions if (one.stars < 3 if bad else one.stars > 3))
    return [clause for clause in known if clause.lower() in words]


def quoted(product: str, opinions: list[Opinion], *, bad: bool) -> AnswerIncludes:
    """Return an evaluator for an answer with these clauses and none of the opposite ones."""
    wanted = clauses(product, opinions, bad=bad)
    others = [clause for clause in clauses(product, opinions, bad=not bad) if clause not in wanted]
    return AnswerIncludes(wanted, others)


def _read(page: PageReader, product: str) -> Steps[list[Opinion]]:
    """Read all reviews of a product."""
    yield from steps.open_reviews(page, product)
    found = _shown(page)
    while page.has("link", "Next"):
        yield page.click("link", "Next")
        found += _shown(page)
    return found


def _shown(page: PageReader) -> list[Opinion]:
    found = []
    for line in page.lines("article"):
        texts = texts_of(line)
        nickname = texts[2].removeprefix("by ").rsplit(", ", 2)[0]
        stars = int(texts[1].removeprefix("Rating: ")[0])
        found.append(Opinion(nickname, stars, " ".join([texts[0], *texts[3:]]).lower()))
    return found


def _with_complaints(world: World) -> Iterator[Params]:
    for product in _reviewed(world):
        opinions = _opinions(world, product)
        if 1 < len(clauses(product, opinions, bad=True)) < 7 and clauses(product, opinions, bad=False):
            yield {"product": product}


criticisms = ShopTemplate(
    "shopping-criticisms",
    "information",
    "medium",
    since=2,
    intents=(
        "What are the main criticisms of the {product}? Extract the relevant sentences from the reviews with one or "
        "two stars, and nothing that praises it.",
        "What do customers with one or two stars say against the {product}? Quote every complaint of theirs in their "
        "own words.",
        "Read the reviews of the {product} and quote all that those who gave it fewer than three stars have to "
        "criticise, word for word.",
    ),
    instances=_with_complaints,
    expected=lambda world, product: quoted(product, _opinions(world, product), bad=True),
    solution=[
        do(_read, "{product}"),
        answer(lambda found, product: "; ".join(clauses(product, found, bad=True))),
    ],
    mistake=answer(lambda found: "; ".join(one.words for one in found)),
)

customers_say = ShopTemplate(
    "shopping-customers-say",
    "information",
    "medium",
    since=2,
    intents=(
        "What do customers like about the {product}? Quote every point of praise from the reviews with four or five "
        "stars, and none of the complaints.",
        "Which good points of the {product} do its reviews with at least four stars mention? Give them all in the "
        "words of the reviewers.",
        "Summarise what happy customers (four stars or more) say in favour of the {product}, by quoting each of their "
        "reasons.",
    ),
    instances=lambda world: [
        {"product": name}
        for name in _reviewed(world, 3, 12)
        if 1 < len(clauses(name, _opinions(world, name), bad=False)) < 8
        and clauses(name, _opinions(world, name), bad=True)
    ],
    expected=lambda world, product: quoted(product, _opinions(world, product), bad=False),
    solution=[
        do(_read, "{product}"),
        answer(lambda found, product: "; ".join(clauses(product, found, bad=False))),
    ],
    mistake=answer(lambda found: "; ".join(one.words for one in found)),
)


def _who(clause: str, opinions: list[Opinion]) -> list[str]:
    return [one.nickname for one in opinions if clause.lower() in one.words]


def _mentioned(world: World) -> Iterator[Params]:
    """Yield complaints of one to four reviewers among others, with distinct nicknames."""
    for product in _reviewed(world):
        opinions = _opinions(world, product)
        names = [one.nickname.lower() for one in opinions]
        if any(one in other for index, one in enumerate(names) for other in names[:index] + names[index + 1 :]):
            continue
        for clause in kinds.complaints(product):
            if 1 <= len(_who(clause, opinions)) <= min(4, len(opinions) - 1):
                yield {"product": product, "words": clause}


def _mentioning(world: World, product: str, words: str) -> Says:
    opinions = _opinions(world, product)
    wanted = _who(words, opinions)
    return says(*wanted, others=[one.nickname for one in opinions if one.nickname not in wanted])


reviewers_mentioning = ShopTemplate(
    "shopping-reviewers-mentioning",
    "information",
    "medium",
    since=2,
    intents=(
        'List the reviewers of the {product} who complain that "{words}" (or so). Give their nicknames.',
        'Who mentions in a review of the {product} that "{words}"? Name every one of them by nickname.',
        'In the reviews of the {product}, find everybody who writes that "{words}", and tell me the nicknames.',
    ),
    instances=_mentioned,
    expected=_mentioning,
    solution=[
        do(_read, "{product}"),
        answer(lambda found, words: ", ".join(_who(words, found))),
    ],
    mistake=answer(lambda found: ", ".join(one.nickname for one in found)),
)


def _rated(world: World) -> list[Params]:
    """Return products with an average rating that is clearly nearer to one whole number."""
    query = f"SELECT p.name, AVG(r.rating) AS average {REVIEWS} GROUP BY p.id HAVING COUNT(*) BETWEEN 2 AND 40"
    rows = [row for row in world.rows(f"{query} ORDER BY p.id") if abs(row["average"] % 1 - 0.5) > 0.06]
    return [{"product": row["name"]} for row in rows if row["average"] % 1]


rounded_rating = ShopTemplate(
    "shopping-rounded-rating",
    "information",
    "easy",
    since=2,
    intents=(
        "What is the rating of the {product}, rounded to the nearest whole number of stars?",
        "How many stars does the {product} have on average? Round to a whole number.",
        "Give me the average rating of the {product} as a whole number of stars.",
    ),
    instances=_rated,
    expected=lambda world, product: says(round(world.value(f"SELECT AVG(r.rating) {REVIEWS} AND p.name = ?", product))),
    solution=[
        do(steps.open_product, "{product}"),
        answer(lambda page: str(round(float(page.search(r"Rating: ([\d.]+) out of 5")[0])))),
    ],
    mistake=answer(lambda page: str(6 - round(float(page.search(r"Rating: ([\d.]+) out of 5")[0])) % 6 + 7)),
)

_NICKNAMES = ("SimpleEmma", "Emma Lopez", "GardenGnome", "no sugar please")


def _unreviewed(world: World) -> list[str]:
    """Return products of complete orders that the customer has not reviewed, each the only one of its kind."""
    rows = world.rows(
        "SELECT DISTINCT l.name, p.enabled, EXISTS (SELECT 1 FROM shop_reviews r WHERE r.product = p.id AND "
        "r.customer = o.customer) AS reviewed FROM shop_orders o JOIN shop_order_lines l ON l.order_id = o.id "
        f"JOIN shop_products p ON p.id = l.product WHERE o.customer = {queries.ME} ORDER BY o.id"
    )
    every = [kinds.kind(row["name"]) for row in rows]
    return [r["name"] for r in rows if r["enabled"] and not r["reviewed"] and every.count(kinds.kind(r["name"])) == 1]


def _find_bought(page: PageReader, kind: str) -> Iterator[str]:
    """Open the orders, the newest first, until one has this kind of product, and open its page."""
    orders = yield from steps.all_orders(page)
    yield page.click("link", "My Orders")
    for number in [order.number for order in orders]:
        yield from steps.open_order(page, partial(_has_number, number))
        names = [one.name for one in page.all("link", after="Items Ordered")]
        chosen = [name for name in names if kinds.known(name) and kinds.kind(name) == kind]
        if chosen:
            yield page.click("link", chosen[0])
            return


def _has_number(number: str, order: steps.ListedOrder) -> bool:
    return order.number == number


def _review_vague(world: World, kind: str, stars: int, nickname: str) -> Added:
    product = next(name for name in _unreviewed(world) if kinds.kind(name) == kind)
    values = {"product": queries.product_id(world, product), "customer": queries.ME}
    return Added("shop_reviews", {**values, "rating": stars, "nickname": nickname})


def _recent(world: World) -> list[Params]:
    """Return the kinds of unreviewed products in the last five orders."""
    numbers = [row["id"] for row in queries.orders(world)[:5]]
    marks = ", ".join(map(str, numbers))
    recent = {row["name"] for row in world.rows(f"SELECT name FROM shop_order_lines WHERE order_id IN ({marks})")}
    return [{"kind": kinds.kind(name)} for name in _unreviewed(world) if name in recent]


rate_purchase = ShopTemplate(
    "shopping-rate-purchase",
    "change",
    "hard",
    since=2,
    intents=(
        'Rate my recent purchase of "{kind}" with {stars} stars, using the nickname {nickname}. Find words of your '
        "own.",
        "Review the {kind} that I bought lately: {stars} stars, signed as {nickname}. Summary and text are up to you.",
        'I have to review "{kind}" from one of my last orders. Give it {stars} stars under the nickname {nickname}, '
        "and make up the words.",
    ),
    instances=choose(_recent, times=3, stars=(2, 3, 4, 5), nickname=_NICKNAMES),
    expected=_review_vague,
    solution=[
        do(_find_bought, "{kind}"),
        do(
            steps.write_review,
            given(lambda params: {**params, "title": "My opinion", "text": "I have used it for a while now."}),
        ),
    ],
    mistake=[
        do(_find_bought, "{kind}"),
        do(
            steps.write_review,
            given(lambda params: {**params, "nickname": "Me", "title": "My opinion", "text": "I have used it."}),
        ),
    ],
)

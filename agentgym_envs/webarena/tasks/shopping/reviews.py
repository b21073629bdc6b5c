"""Tasks about product reviews."""

from __future__ import annotations

from itertools import pairwise, permutations
from random import Random
from typing import Any

from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.shopping.queries import ShopTemplate
from agentgym_envs.webarena.tasks.steps import ALL_PARAMETERS, answer, do
from agentgym_envs.webarena.tasks.template import Params

_REVIEWS = "FROM shop_reviews r JOIN shop_products p ON p.id = r.product WHERE r.status = 'approved' AND p.enabled"
_REVIEW_TEXTS = (
    (2, "Not for me", "It broke on the second day."),
    (2, "Rather disappointed", "I had hoped for more, to be honest."),
    (3, "Neither good nor bad", "It does what it says, nothing else."),
    (3, "It will have to do", "The picture looked nicer than the thing itself."),
    (4, "Well worth the money", "I use it more often than I thought I would."),
    (5, "Exactly what I needed", "I would buy it again without a second thought."),
)


def _count_stars_instances(world: World) -> list[Params]:
    """Products with several ratings."""
    rows = world.rows(
        f"SELECT p.name AS product, r.rating AS stars, COUNT(*) AS found {_REVIEWS} AND r.rating > 1 "
        "GROUP BY p.id, r.rating HAVING found BETWEEN 2 AND 9"
    )
    every = dict(map(tuple, world.rows(f"SELECT p.name, COUNT(*) {_REVIEWS} GROUP BY p.id")))
    kept = [row for row in rows if row["found"] < every[row["product"]] <= 24]
    return [{"product": row["product"], "stars": row["stars"]} for row in kept]


count_stars = ShopTemplate(
    "shopping-count-stars",
    "information",
    "medium",
    intents=(
        "How many {stars}-star reviews does the {product} have? Answer with the number alone.",
        "How many customers gave the {product} exactly {stars} stars? Give just the number.",
        "Count the reviews of the {product} with a rating of {stars}. One number will do.",
    ),
    instances=_count_stars_instances,
    expected=lambda world, stars, product: says(
        world.value(f"SELECT COUNT(*) {_REVIEWS} AND p.name = ? AND r.rating = ?", product, stars)
    ),
    solution=[
        do(steps.all_reviews, "{product}"),
        answer(lambda found, stars: sum(review.stars == stars for review in found)),
    ],
    mistake=answer(lambda found: len(found)),
)


def _unhappy_reviewers_instances(world: World) -> list[Params]:
    """Products with one to five such reviews among others, by reviewers with different nicknames."""
    found: list[Params] = []
    for (product,) in world.rows(f"SELECT p.name {_REVIEWS} GROUP BY p.id HAVING COUNT(*) BETWEEN 5 AND 24"):
        reviews = world.rows(f"SELECT r.nickname, r.rating {_REVIEWS} AND p.name = ?", product)
        names = [row["nickname"] for row in reviews]
        if any(_within(one, other) for one, other in permutations(names, 2)):
            continue
        for stars in (2, 3):
            low = sum(row["rating"] <= stars for row in reviews)
            if 1 <= low <= 5 and low < len(names):
                found.append({"product": product, "stars": stars})
    return found


def _unhappy_reviewers_expected(world: World, product: str, stars: int) -> Says:
    rows = world.rows(f"SELECT r.nickname, r.rating {_REVIEWS} AND p.name = ?", product)
    low = [row["nickname"] for row in rows if row["rating"] <= stars]
    return says(*low, others=[row["nickname"] for row in rows])


unhappy_reviewers = ShopTemplate(
    "shopping-discontent",
    "information",
    "medium",
    intents=(
        "Who gave the {product} {stars} stars or fewer? List the nicknames of the reviewers.",
        "List the reviewers (by nickname) who rated the {product} at most {stars} stars.",
        "I want to know who was unhappy with the {product}: name everybody whose review has {stars} stars or fewer.",
    ),
    instances=_unhappy_reviewers_instances,
    expected=_unhappy_reviewers_expected,
    solution=[
        do(steps.all_reviews, "{product}"),
        answer(lambda found, stars: ", ".join(review.nickname for review in found if review.stars <= stars)),
    ],
    mistake=answer(lambda found: ", ".join(review.nickname for review in found)),
)


def _review_title_instances(world: World) -> list[Params]:
    """Reviews whose title and nickname are not part of another one of the product."""
    found: list[Params] = []
    for (product,) in world.rows(f"SELECT p.name {_REVIEWS} GROUP BY p.id HAVING COUNT(*) BETWEEN 3 AND 24"):
        rows = world.rows(f"SELECT r.nickname, r.title {_REVIEWS} AND p.name = ?", product)
        for index, row in enumerate(rows):
            others = [other for number, other in enumerate(rows) if number != index]
            if not any(row["nickname"] == one["nickname"] or _within(row["title"], one["title"]) for one in others):
                found.append({"product": product, "nickname": row["nickname"]})
    return found


def _review_title_expected(world: World, product: str, nickname: str) -> Says:
    rows = world.rows(f"SELECT r.title, r.nickname {_REVIEWS} AND p.name = ?", product)
    wanted = next(row["title"] for row in rows if row["nickname"] == nickname)
    return says(wanted, others=[row["title"] for row in rows])


review_title = ShopTemplate(
    "shopping-review-title",
    "information",
    "medium",
    intents=(
        'What is the title of the review that "{nickname}" wrote about the {product}?',
        '"{nickname}" has reviewed the {product}. Under which heading?',
        'Find the review of the {product} by "{nickname}" and tell me its title.',
    ),
    instances=_review_title_instances,
    expected=_review_title_expected,
    solution=[
        do(steps.all_reviews, "{product}"),
        answer(lambda found, nickname: next(review.title for review in found if review.nickname == nickname)),
    ],
    mistake=answer(lambda found, nickname: next(review.title for review in found if review.nickname != nickname)),
)


def _more_reviews_instances(world: World) -> list[Params]:
    """Pairs of adjacent products in the catalogue with different numbers of reviews."""
    rows = world.rows(f"SELECT p.name, COUNT(*) AS count {_REVIEWS} GROUP BY p.id ORDER BY p.category, p.id")
    pairs = [(a, b) for a, b in pairwise(rows) if a["count"] != b["count"]]
    return [{"one": a["name"], "other": b["name"]} for a, b in pairs]


def _more_reviews_expected(world: World, one: str, other: str) -> Says:
    query = f"SELECT p.name {_REVIEWS} AND p.name IN (?, ?) GROUP BY p.id ORDER BY COUNT(*) DESC"
    more, fewer = (row[0] for row in world.rows(query, one, other))
    return says(more, others=[fewer])


def _counts(page: PageReader, one: str, other: str) -> Steps[list[tuple[int, str]]]:
    counts = []
    for name in (one, other):
        yield from steps.open_product(page, name)
        counts.append((steps.review_count(page), name))
    return counts


more_reviews = ShopTemplate(
    "shopping-more-reviews-of-two",
    "information",
    "medium",
    held_out=True,
    intents=(
        "Which has more customer reviews, the {one} or the {other}?",
        "Between the {one} and the {other}, which one has been reviewed by more people?",
        "Compare how many reviews the {one} and the {other} have; answer with the name of the one with more.",
    ),
    instances=_more_reviews_instances,
    expected=_more_reviews_expected,
    solution=[do(_counts, "{one}", "{other}"), answer(lambda found: max(found)[1])],
    mistake=answer(lambda found: min(found)[1]),
)


def _write_review_instances(world: World, rng: Random) -> list[Params]:
    rows = world.rows(
        "SELECT name FROM shop_products WHERE enabled AND id NOT IN "
        "(SELECT product FROM shop_reviews WHERE customer = ?) ORDER BY id",
        queries.ME,
    )
    return [{"product": row[0], **something_said(rng)} for row in rows]


write_review = ShopTemplate(
    "shopping-write-review",
    "change",
    "hard",
    intents=(
        'Write a review of the {product}: {stars} stars, nickname "{nickname}", title "{title}", text "{text}"',
        'Review the {product} for me with {stars} stars. Sign as "{nickname}", call it "{title}", and write: "{text}"',
        'Give the {product} {stars} stars. The nickname is "{nickname}", the summary "{title}" and the review "{text}"',
    ),
    instances=_write_review_instances,
    expected=lambda world, params, product: queries.review_added(queries.product_id(world, product), params),
    solution=[do(steps.open_product, "{product}"), do(steps.write_review, ALL_PARAMETERS)],
)


def _within(text: str, other: str) -> bool:
    return text.casefold() in other.casefold()


def something_said(rng: Random) -> dict[str, Any]:
    """Return a random text of a review."""
    stars, title, text = rng.choice(_REVIEW_TEXTS)
    nickname = rng.choice(("plain_jane", "Sunday Shopper", "honest_owl", "Ms. Thrift", "no7"))
    return {"stars": stars, "nickname": nickname, "title": title, "text": text}

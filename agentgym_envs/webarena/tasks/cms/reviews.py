"""Questions about product reviews, and their moderation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Expected, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says, says_first
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import ENOUGH, AdminTemplate
from agentgym_envs.webarena.tasks.cms.steps import SELECT_ALL
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, given
from agentgym_envs.webarena.tasks.template import Params

_TITLE_AND_TEXT = "title || ' ' || text"
_PENDING = "SELECT * FROM shop_reviews WHERE status = 'pending' ORDER BY id"


def _unique_names(world: World) -> frozenset[str]:
    """Return product names that are not part of another name, so that a filter finds a single product."""
    names = [str(row["name"]) for row in world.rows("SELECT name FROM shop_products ORDER BY id")]
    every = "\n".join(names).lower()
    return frozenset(name for name in names if every.count(name.lower()) == 1)


def _clear_worst(world: World) -> list[Params]:
    """Return products with a single worst review, and few enough reviews for one page."""
    query = """SELECT p.id, p.name FROM shop_products p JOIN shop_reviews r ON r.product = p.id
        GROUP BY p.id HAVING COUNT(*) BETWEEN 3 AND 12 ORDER BY p.id"""
    alone = _unique_names(world)
    rows = [row for row in world.rows(query) if row["name"] in alone]
    ranked = [(row["name"], _ranked(world, row["id"])) for row in rows]
    chosen = [(found[0]["nickname"], {"product": name}) for name, found in ranked if _clear(found)]
    return queries.one_per_answer(chosen)


def _ranked(world: World, product: int) -> list[dict[str, object]]:
    query = "SELECT nickname, rating FROM shop_reviews WHERE product = ? ORDER BY rating, id"
    return [dict(row) for row in world.rows(query, product)]


def _clear(rows: list[dict[str, object]]) -> bool:
    return queries.has_single_leader(rows, "rating") and rows[0]["nickname"] not in [
        row["nickname"] for row in rows[1:]
    ]


unhappiest_reviewer = AdminTemplate(
    "cms-unhappiest",
    "information",
    "medium",
    intents=(
        "Which reviewer gave {product} the lowest rating? Tell me the nickname.",
        "Who is the least happy with {product}, by the stars in the reviews? Give the nickname.",
        "What is the nickname of whoever rated {product} worst?",
    ),
    instances=choose(_clear_worst, sample=ENOUGH),
    expected=lambda world, product: says_first(
        row["nickname"] for row in _ranked(world, queries.product_value(world, "id", product))
    ),
    solution=[
        do(steps.open_from_menu, "Marketing", "All Reviews"),
        do(steps.filter_grid, {"Product": "{product}"}),
        answer(lambda page: min(page.table(), key=lambda row: int(row["Rating"]))["Nickname"]),
    ],
)


def _count_mentions_instances(world: World, rng: Random) -> list[Params]:
    """Words that are never part of another word, and appear in some of the reviews."""
    texts = [str(row[0]).lower() for row in world.rows(f"SELECT {_TITLE_AND_TEXT} FROM shop_reviews ORDER BY id")]
    holds = [frozenset(re.findall(r"[a-z]+", text)) for text in texts]
    counts = Counter(word for words in holds for word in sorted(words) if len(word) > 4)
    chosen = [word for word, count in sorted(counts.items()) if 2 < count < 60]
    chosen = [word for word in queries.sample_some(chosen, rng) if sum(word in text for text in texts) == counts[word]]
    return queries.one_per_answer((counts[word], {"word": word}) for word in chosen)


count_mentions = AdminTemplate(
    "cms-reviews-mention",
    "information",
    "medium",
    intents=(
        'How many reviews mention the word "{word}" in their title or text? Count those of every status.',
        'In how many reviews, whatever their status and product, does the word "{word}" occur in title or text?',
        'Count all reviews in the shop, of any status, whose title or text has the word "{word}" in it.',
    ),
    instances=_count_mentions_instances,
    expected=lambda world, word: says(
        world.value(f"SELECT COUNT(*) FROM shop_reviews WHERE instr(lower({_TITLE_AND_TEXT}), ?)", word)
    ),
    solution=[
        do(steps.open_from_menu, "Marketing", "All Reviews"),
        do(steps.filter_grid, {"Text": "{word}"}),
        answer(steps.count_found),
    ],
)


def _average_rating_instances(world: World, rng: Random) -> list[Params]:
    """Products with different averages."""
    query = """SELECT p.name, ROUND(AVG(r.rating), 2) AS average FROM shop_products p
        JOIN shop_reviews r ON r.product = p.id GROUP BY p.id HAVING COUNT(*) > 2 ORDER BY p.id"""
    alone = _unique_names(world)
    rows = queries.sample_some((row for row in world.rows(query) if row["name"] in alone), rng, 200)
    return queries.one_per_answer((row["average"], {"product": row["name"]}) for row in rows)


average_rating = AdminTemplate(
    "cms-average-rating",
    "information",
    "medium",
    intents=(
        "What is the average rating of {product} in the product reviews report?",
        "Look at the report on product reviews. Which average rating does {product} have?",
        "According to the report on product reviews, what do reviewers rate {product} on average?",
    ),
    instances=_average_rating_instances,
    expected=lambda world, product: says(
        world.value(
            """SELECT ROUND(AVG(r.rating), 2) FROM shop_reviews r JOIN shop_products p ON p.id = r.product
            WHERE p.name = ?""",
            product,
        )
    ),
    solution=[
        do(steps.open_from_menu, "Reports", "Product Reviews Report"),
        do(steps.filter_grid, {"Product": "{product}"}),
        answer(lambda page: page.table()[0]["Average Rating"]),
    ],
)


def _moderate_review_instances(world: World, rng: Random) -> Iterator[Params]:
    """Pending reviews that product and nickname identify."""
    query = """SELECT p.name AS product, r.nickname, r.rating FROM shop_reviews r
        JOIN shop_products p ON p.id = r.product WHERE r.status = 'pending'
        GROUP BY p.id, r.nickname HAVING COUNT(*) = 1 ORDER BY MIN(r.id)"""
    alone = _unique_names(world)
    rows = [tuple(row) for row in world.rows(query) if row["product"] in alone]
    for product, nickname, rating in queries.sample_some(rows, rng):
        yield {"product": product, "nickname": nickname, "status": "approved" if rating > 2 else "rejected"}


def pending_review(world: World, product: str, nickname: str) -> int:
    """Return the id of the pending review of a product under a nickname."""
    query = """SELECT r.id FROM shop_reviews r JOIN shop_products p ON p.id = r.product
        WHERE p.name = ? AND r.nickname = ? AND r.status = 'pending'"""
    return int(world.value(query, product, nickname))


def _moderated(world: World, product: str, nickname: str, status: str) -> Updated:
    return Updated("shop_reviews", {"id": pending_review(world, product, nickname)}, {"status": status})


moderate_review = AdminTemplate(
    "cms-moderate-review",
    "change",
    "medium",
    intents=(
        'Set the pending review of {product} by "{nickname}" to {status}.',
        '"{nickname}" has written a review of {product} that is still pending. It is to be {status}.',
        'Change the status of the pending review that "{nickname}" wrote about {product} to {status}.',
    ),
    instances=_moderate_review_instances,
    expected=_moderated,
    solution=[
        do(steps.open_from_menu, "Marketing", "Pending Reviews"),
        do(steps.filter_grid, {"Product": "{product}"}),
        do(steps.open_from_grid, "{nickname}", "Title"),
        choose_option("Status", steps.STATUS),
        click("button", "Save Review"),
    ],
)


def _delete_pending_reviews_instances(world: World) -> Iterator[Params]:
    """Nicknames that are not part of another one."""
    names = Counter(str(row["nickname"]) for row in world.rows(_PENDING))
    for nickname, count in sorted(names.items()):
        if count <= 12 and not any(nickname.lower() in other.lower() for other in names if other != nickname):
            yield {"nickname": nickname}


delete_pending_reviews = AdminTemplate(
    "cms-delete-pending-reviews",
    "change",
    "medium",
    intents=(
        'Delete all pending reviews by "{nickname}".',
        'The reviews of "{nickname}" that wait for approval are spam. Delete every one of them, but no other review.',
        'Remove every review with the status pending that was written under the nickname "{nickname}".',
    ),
    instances=_delete_pending_reviews_instances,
    expected=lambda world, nickname: Removed(
        "shop_reviews",
        {"nickname": nickname, "status": "pending"},
        world.value("SELECT COUNT(*) FROM shop_reviews WHERE nickname = ? AND status = 'pending'", nickname),
    ),
    solution=[
        do(steps.open_from_menu, "Marketing", "Pending Reviews"),
        do(steps.filter_grid, {"Nickname": "{nickname}"}),
        do(steps.apply_to_rows, "Delete", [SELECT_ALL]),
    ],
)


def _moderate_reviews_instances(world: World, rng: Random) -> Iterator[Params]:
    """Groups of reviews that fit on one page."""
    dates = sorted({str(row["moment"])[:10] for row in world.rows(_PENDING)})
    chosen = [(rating, start) for rating in (1, 2, 3, 4, 5) for start in queries.sample_some(dates, rng, 30)]
    counted = [((rating, _count(world, rating, start)), start) for rating, start in chosen]
    for rating, start in queries.one_per_answer((key, (key[0], start)) for key, start in counted if 2 <= key[1] <= 12):
        yield {"rating": rating, "start": start, "status": "approved" if rating > 2 else "rejected"}


def _all_moderated(world: World, rating: int, start: str, status: str) -> list[Expected]:
    query = "SELECT id FROM shop_reviews WHERE status = 'pending' AND rating = ? AND moment >= ? ORDER BY id"
    rows = world.rows(query, rating, start)
    return [Updated("shop_reviews", {"id": row["id"]}, {"status": status}) for row in rows]


def _count(world: World, rating: int, start: str) -> int:
    query = "SELECT COUNT(*) FROM shop_reviews WHERE status = 'pending' AND rating = ? AND moment >= ?"
    return int(world.value(query, rating, start))


moderate_reviews = AdminTemplate(
    "cms-moderate-reviews",
    "change",
    "hard",
    held_out=True,
    intents=(
        "Set all pending {rating}-star reviews that were created since {start} (that day included) to {status}.",
        "Go through the pending reviews created on or after {start}: those with {rating} stars are to be {status}.",
        "Every pending review of {start} or later that gives {rating} stars must be {status}. Leave all others.",
    ),
    instances=_moderate_reviews_instances,
    expected=_all_moderated,
    solution=[
        do(steps.open_from_menu, "Marketing", "Pending Reviews"),
        do(
            steps.filter_grid,
            {"Created from": "{start}"},
            Rating=given(lambda rating: f"{rating} star{'s' if rating > 1 else ''}"),
        ),
        do(steps.apply_to_rows, "Set to {status}", [SELECT_ALL]),
    ],
    mistake=[
        do(steps.open_from_menu, "Marketing", "Pending Reviews"),
        do(steps.apply_to_rows, "Set to {status}", [SELECT_ALL]),
    ],
)

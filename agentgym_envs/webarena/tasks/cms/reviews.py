"""Questions about product reviews, and their moderation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.cms.queries import AdminTemplate, has_single_leader, one_per_answer, sample_some
from agentgym_envs.webarena.tasks.cms.steps import SELECT_ALL, apply_to_rows, count_found, filter_grid, open_from_menu
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_TITLE_AND_TEXT = "title || ' ' || text"
_PENDING = "SELECT * FROM shop_reviews WHERE status = 'pending' ORDER BY id"


def _unique_names(world: World) -> frozenset[str]:
    """Return product names that are not part of another name, so that a filter finds a single product."""
    names = [str(row["name"]) for row in world.rows("SELECT name FROM shop_products ORDER BY id")]
    every = "\n".join(names).lower()
    return frozenset(name for name in names if every.count(name.lower()) == 1)


class UnhappiestReviewer(AdminTemplate):
    """Name the reviewer who gave a product the lowest rating."""

    name, kind, difficulty = "cms-unhappiest", "information", "medium"
    intents = (
        "Which reviewer gave {product} the lowest rating? Tell me the nickname.",
        "Who is the least happy with {product}, by the stars in the reviews? Give the nickname.",
        "What is the nickname of whoever rated {product} worst?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products with a single worst review, and few enough reviews for one page."""
        query = """SELECT p.id, p.name FROM shop_products p JOIN shop_reviews r ON r.product = p.id
            GROUP BY p.id HAVING COUNT(*) BETWEEN 3 AND 12 ORDER BY p.id"""
        alone = _unique_names(world)
        rows = [row for row in world.rows(query) if row["name"] in alone]
        ranked = [(row["name"], self._ranked(world, row["id"])) for row in rows]
        chosen = [(found[0]["nickname"], {"product": name}) for name, found in ranked if self._clear(found)]
        return sample_some(one_per_answer(chosen), rng)

    def _ranked(self, world: World, product: int) -> list[dict[str, object]]:
        query = "SELECT nickname, rating FROM shop_reviews WHERE product = ? ORDER BY rating, id"
        return [dict(row) for row in world.rows(query, product)]

    def _clear(self, rows: list[dict[str, object]]) -> bool:
        return has_single_leader(rows, "rating") and rows[0]["nickname"] not in [row["nickname"] for row in rows[1:]]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        product = world.value("SELECT id FROM shop_products WHERE name = ?", params["product"])
        first, *others = [str(row["nickname"]) for row in self._ranked(world, product)]
        return [says(first, others=others)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Marketing", "All Reviews")
        yield from filter_grid(page, {"Product": params["product"]})
        yield page.stop(min(page.table(), key=lambda row: int(row["Rating"]))["Nickname"])


class CountMentions(AdminTemplate):
    """Count the reviews that contain a word."""

    name, kind, difficulty = "cms-reviews-mention", "information", "medium"
    intents = (
        'How many reviews mention the word "{word}" in their title or text? Count those of every status.',
        'In how many reviews, whatever their status and product, does the word "{word}" occur in title or text?',
        'Count all reviews in the shop, of any status, whose title or text has the word "{word}" in it.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Words that are never part of another word, and appear in some of the reviews."""
        texts = [str(row[0]).lower() for row in world.rows(f"SELECT {_TITLE_AND_TEXT} FROM shop_reviews ORDER BY id")]
        holds = [frozenset(re.findall(r"[a-z]+", text)) for text in texts]
        counts = Counter(word for words in holds for word in sorted(words) if len(word) > 4)
        chosen = [word for word, count in sorted(counts.items()) if 2 < count < 60]
        chosen = [word for word in sample_some(chosen, rng) if sum(word in text for text in texts) == counts[word]]
        return one_per_answer((counts[word], {"word": word}) for word in chosen)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = f"SELECT COUNT(*) FROM shop_reviews WHERE instr(lower({_TITLE_AND_TEXT}), ?)"
        return [says(world.value(query, params["word"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Marketing", "All Reviews")
        yield from filter_grid(page, {"Text": params["word"]})
        yield page.stop(count_found(page))


class AverageRating(AdminTemplate):
    """Name the average rating of a product."""

    name, kind, difficulty = "cms-average-rating", "information", "medium"
    intents = (
        "What is the average rating of {product} in the product reviews report?",
        "Look at the report on product reviews. Which average rating does {product} have?",
        "According to the report on product reviews, what do reviewers rate {product} on average?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products with different averages."""
        query = """SELECT p.name, ROUND(AVG(r.rating), 2) AS average FROM shop_products p
            JOIN shop_reviews r ON r.product = p.id GROUP BY p.id HAVING COUNT(*) > 2 ORDER BY p.id"""
        alone = _unique_names(world)
        rows = sample_some((row for row in world.rows(query) if row["name"] in alone), rng, 200)
        return one_per_answer((row["average"], {"product": row["name"]}) for row in rows)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT ROUND(AVG(r.rating), 2) FROM shop_reviews r JOIN shop_products p ON p.id = r.product
            WHERE p.name = ?"""
        return [says(world.value(query, params["product"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Reports", "Product Reviews Report")
        yield from filter_grid(page, {"Product": params["product"]})
        yield page.stop(page.table()[0]["Average Rating"])


class ModerateReview(AdminTemplate):
    """Approve or reject a review."""

    name, kind, difficulty = "cms-moderate-review", "change", "medium"
    intents = (
        'Set the pending review of {product} by "{nickname}" to {status}.',
        '"{nickname}" has written a review of {product} that is still pending. It is to be {status}.',
        'Change the status of the pending review that "{nickname}" wrote about {product} to {status}.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Pending reviews that product and nickname identify."""
        query = """SELECT p.name AS product, r.nickname, r.rating FROM shop_reviews r
            JOIN shop_products p ON p.id = r.product WHERE r.status = 'pending'
            GROUP BY p.id, r.nickname HAVING COUNT(*) = 1 ORDER BY MIN(r.id)"""
        alone = _unique_names(world)
        rows = [tuple(row) for row in world.rows(query) if row["product"] in alone]
        for product, nickname, rating in sample_some(rows, rng):
            yield {"product": product, "nickname": nickname, "status": "approved" if rating > 2 else "rejected"}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT r.id FROM shop_reviews r JOIN shop_products p ON p.id = r.product
            WHERE p.name = ? AND r.nickname = ? AND r.status = 'pending'"""
        id = world.value(query, params["product"], params["nickname"])
        return [changed(Updated("shop_reviews", {"id": id}, {"status": params["status"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Marketing", "Pending Reviews")
        yield from filter_grid(page, {"Product": params["product"]})
        title = next(row["Title"] for row in page.table() if row["Nickname"] == params["nickname"])
        yield page.click_in(params["nickname"], "link", title)
        yield page.choose("Status", params["status"].capitalize())
        yield page.click("button", "Save Review")
        yield page.stop()


class DeletePendingReviews(AdminTemplate):
    """Delete all pending reviews of a reviewer."""

    name, kind, difficulty = "cms-delete-pending-reviews", "change", "medium"
    intents = (
        'Delete all pending reviews by "{nickname}".',
        'The reviews of "{nickname}" that wait for approval are spam. Delete every one of them, but no other review.',
        'Remove every review with the status pending that was written under the nickname "{nickname}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Nicknames that are not part of another one."""
        names = Counter(str(row["nickname"]) for row in world.rows(_PENDING))
        for nickname, count in sorted(names.items()):
            if count <= 12 and not any(nickname.lower() in other.lower() for other in names if other != nickname):
                yield {"nickname": nickname}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        where = {"nickname": params["nickname"], "status": "pending"}
        query = "SELECT COUNT(*) FROM shop_reviews WHERE nickname = ? AND status = 'pending'"
        return [changed(Removed("shop_reviews", where, world.value(query, params["nickname"])))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Marketing", "Pending Reviews")
        yield from filter_grid(page, {"Nickname": params["nickname"]})
        yield from apply_to_rows(page, "Delete", [SELECT_ALL])
        yield page.stop()


class ModerateReviews(AdminTemplate):
    """Approve or reject all new reviews with a rating."""

    name, kind, difficulty = "cms-moderate-reviews", "change", "hard"
    held_out = True
    intents = (
        "Set all pending {rating}-star reviews that were created since {start} (that day included) to {status}.",
        "Go through the pending reviews created on or after {start}: those with {rating} stars are to be {status}.",
        "Every pending review of {start} or later that gives {rating} stars must be {status}. Leave all others.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Groups of reviews that fit on one page."""
        dates = sorted({str(row["moment"])[:10] for row in world.rows(_PENDING)})
        chosen = [(rating, start) for rating in (1, 2, 3, 4, 5) for start in sample_some(dates, rng, 30)]
        counted = [((rating, self._count(world, rating, start)), start) for rating, start in chosen]
        for rating, start in one_per_answer((key, (key[0], start)) for key, start in counted if 2 <= key[1] <= 12):
            yield {"rating": rating, "start": start, "status": "approved" if rating > 2 else "rejected"}

    def _count(self, world: World, rating: int, start: str) -> int:
        query = "SELECT COUNT(*) FROM shop_reviews WHERE status = 'pending' AND rating = ? AND moment >= ?"
        return int(world.value(query, rating, start))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT id FROM shop_reviews WHERE status = 'pending' AND rating = ? AND moment >= ? ORDER BY id"""
        rows = world.rows(query, params["rating"], params["start"])
        return [changed(*(Updated("shop_reviews", {"id": row["id"]}, {"status": params["status"]}) for row in rows))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        stars = f"{params['rating']} star{'s' if params['rating'] > 1 else ''}"
        yield from open_from_menu(page, "Marketing", "Pending Reviews")
        yield from filter_grid(page, {"Created from": params["start"]}, Rating=stars)
        yield from apply_to_rows(page, f"Set to {params['status']}", [SELECT_ALL])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Change all reviews on the first page, with any rating."""
        yield from open_from_menu(page, "Marketing", "Pending Reviews")
        yield from apply_to_rows(page, f"Set to {params['status']}", [SELECT_ALL])
        yield page.stop()


TEMPLATES = (
    UnhappiestReviewer(),
    CountMentions(),
    AverageRating(),
    ModerateReview(),
    DeletePendingReviews(),
    ModerateReviews(),
)

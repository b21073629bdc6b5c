"""Tasks about product reviews."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, permutations
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import queries, steps
from agentgym_envs.webarena.tasks.template import Params, TemplateClass, changed

_REVIEWS = "FROM shop_reviews r JOIN shop_products p ON p.id = r.product WHERE r.status = 'approved' AND p.enabled"

_REVIEW_TEXTS = (
    (2, "Not for me", "It broke on the second day."),
    (2, "Rather disappointed", "I had hoped for more, to be honest."),
    (3, "Neither good nor bad", "It does what it says, nothing else."),
    (3, "It will have to do", "The picture looked nicer than the thing itself."),
    (4, "Well worth the money", "I use it more often than I thought I would."),
    (5, "Exactly what I needed", "I would buy it again without a second thought."),
)


class CountStars(TemplateClass):
    """Count the reviews of a product with a number of stars."""

    name, group, sites = "shopping-count-stars", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        "How many {stars}-star reviews does the {product} have? Answer with the number alone.",
        "How many customers gave the {product} exactly {stars} stars? Give just the number.",
        "Count the reviews of the {product} with a rating of {stars}. One number will do.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products with several ratings."""
        rows = world.rows(
            f"SELECT p.name AS product, r.rating AS stars, COUNT(*) AS found {_REVIEWS} AND r.rating > 1 "
            "GROUP BY p.id, r.rating HAVING found BETWEEN 2 AND 9"
        )
        every = dict(map(tuple, world.rows(f"SELECT p.name, COUNT(*) {_REVIEWS} GROUP BY p.id")))
        kept = [row for row in rows if row["found"] < every[row["product"]] <= 24]
        return [{"product": row["product"], "stars": row["stars"]} for row in kept]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = f"SELECT COUNT(*) {_REVIEWS} AND p.name = ? AND r.rating = ?"
        return [says(world.value(query, params["product"], params["stars"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        found = yield from steps.all_reviews(page, params["product"])
        yield page.stop(sum(review.stars == params["stars"] for review in found))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Count all reviews."""
        found = yield from steps.all_reviews(page, params["product"])
        yield page.stop(len(found))


class UnhappyReviewers(TemplateClass):
    """Name the reviewers who gave a product few stars."""

    name, group, sites = "shopping-discontent", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        "Who gave the {product} {stars} stars or fewer? List the nicknames of the reviewers.",
        "List the reviewers (by nickname) who rated the {product} at most {stars} stars.",
        "I want to know who was unhappy with the {product}: name everybody whose review has {stars} stars or fewer.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Products with one to five such reviews among others, by reviewers with different nicknames."""
        found = []
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

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        rows = world.rows(f"SELECT r.nickname, r.rating {_REVIEWS} AND p.name = ?", params["product"])
        low = [row["nickname"] for row in rows if row["rating"] <= params["stars"]]
        return [says(*low, others=[row["nickname"] for row in rows])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        found = yield from steps.all_reviews(page, params["product"])
        yield page.stop(", ".join(review.nickname for review in found if review.stars <= params["stars"]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Name all reviewers."""
        found = yield from steps.all_reviews(page, params["product"])
        yield page.stop(", ".join(review.nickname for review in found))


class ReviewTitle(TemplateClass):
    """Name the title of a reviewer's review."""

    name, group, sites = "shopping-review-title", "shopping", ("shop",)
    kind, difficulty = "information", "medium"
    intents = (
        'What is the title of the review that "{nickname}" wrote about the {product}?',
        '"{nickname}" has reviewed the {product}. Under which heading?',
        'Find the review of the {product} by "{nickname}" and tell me its title.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Reviews whose title and nickname are not part of another one of the product."""
        found = []
        for (product,) in world.rows(f"SELECT p.name {_REVIEWS} GROUP BY p.id HAVING COUNT(*) BETWEEN 3 AND 24"):
            rows = world.rows(f"SELECT r.nickname, r.title {_REVIEWS} AND p.name = ?", product)
            for index, row in enumerate(rows):
                others = [other for number, other in enumerate(rows) if number != index]
                if not any(row["nickname"] == one["nickname"] or _within(row["title"], one["title"]) for one in others):
                    found.append({"product": product, "nickname": row["nickname"]})
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        rows = world.rows(f"SELECT r.title, r.nickname {_REVIEWS} AND p.name = ?", params["product"])
        wanted = next(row["title"] for row in rows if row["nickname"] == params["nickname"])
        return [says(wanted, others=[row["title"] for row in rows])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        found = yield from steps.all_reviews(page, params["product"])
        yield page.stop(next(review.title for review in found if review.nickname == params["nickname"]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the title of another review."""
        found = yield from steps.all_reviews(page, params["product"])
        yield page.stop(next(review.title for review in found if review.nickname != params["nickname"]))


class MoreReviews(TemplateClass):
    """Name the product of two with more reviews."""

    name, group, sites = "shopping-more-reviews-of-two", "shopping", ("shop",)
    kind, difficulty, held_out = "information", "medium", True
    intents = (
        "Which has more customer reviews, the {one} or the {other}?",
        "Between the {one} and the {other}, which one has been reviewed by more people?",
        "Compare how many reviews the {one} and the {other} have; answer with the name of the one with more.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Pairs of adjacent products in the catalogue with different numbers of reviews."""
        rows = world.rows(f"SELECT p.name, COUNT(*) AS count {_REVIEWS} GROUP BY p.id ORDER BY p.category, p.id")
        pairs = [(a, b) for a, b in pairwise(rows) if a["count"] != b["count"]]
        return [{"one": a["name"], "other": b["name"]} for a, b in pairs]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = f"SELECT p.name {_REVIEWS} AND p.name IN (?, ?) GROUP BY p.id ORDER BY COUNT(*) DESC"
        wanted, other = (row[0] for row in world.rows(query, params["one"], params["other"]))
        return [says(wanted, others=[other])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.stop(max((yield from self._counts(page, params)))[1])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the other product."""
        yield page.stop(min((yield from self._counts(page, params)))[1])

    def _counts(self, page: PageReader, params: Params) -> Steps[list[tuple[int, str]]]:
        counts = []
        for name in (params["one"], params["other"]):
            yield from steps.open_product(page, name)
            counts.append((steps.review_count(page), name))
        return counts


class WriteReview(TemplateClass):
    """Review a product."""

    name, group, sites = "shopping-write-review", "shopping", ("shop",)
    kind, difficulty = "change", "hard"
    intents = (
        'Write a review of the {product}: {stars} stars, nickname "{nickname}", title "{title}", text "{text}"',
        'Review the {product} for me with {stars} stars. Sign as "{nickname}", call it "{title}", and write: "{text}"',
        'Give the {product} {stars} stars. The nickname is "{nickname}", the summary "{title}" and the review "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        rows = world.rows(
            "SELECT name FROM shop_products WHERE enabled AND id NOT IN "
            "(SELECT product FROM shop_reviews WHERE customer = ?) ORDER BY id",
            queries.ME,
        )
        return [{"product": row[0], **something_said(rng)} for row in rows]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(queries.review_added(queries.product_id(world, params["product"]), params))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_product(page, params["product"])
        yield from steps.write_review(page, params)
        yield page.stop()


def _within(text: str, other: str) -> bool:
    return text.casefold() in other.casefold()


def something_said(rng: Random) -> dict[str, Any]:
    """Return a random text of a review."""
    stars, title, text = rng.choice(_REVIEW_TEXTS)
    nickname = rng.choice(("plain_jane", "Sunday Shopper", "honest_owl", "Ms. Thrift", "no7"))
    return {"stars": stars, "nickname": nickname, "title": title, "text": text}


TEMPLATES = (CountStars(), UnhappyReviewers(), ReviewTitle(), MoreReviews(), WriteReview())

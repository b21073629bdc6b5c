"""Product reviews by customers and guests."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from agentgym_envs.webarena.sites.clock import NOW, later, stamp
from agentgym_envs.webarena.sites.shop.goods import pick_some, texts_for
from agentgym_envs.webarena.sites.shop.seed_orders import ShopOrder
from agentgym_envs.webarena.sites.shop.seed_people import Customer
from agentgym_envs.webarena.sites.shop.seed_products import Item
from agentgym_envs.webarena.sites.words import lines

_TITLES = {
    5: lines("""
        Could not be happier
        Exactly what I was looking for
        Perfect
        Worth every cent
        A joy to use
        Best purchase of the year
        Love it
        Five stars are not enough
        Everything as described
        Now I want a second one
        A small miracle
    """),
    4: lines("""
        Very good, with one small flaw
        Good value
        Nearly perfect
        Pleased on the whole
        Solid choice
        Does its job well
        Good, but not flawless
        Happy with it
    """),
    3: lines("""
        All right for the price
        Neither good nor bad
        Mixed feelings
        It will do
        Expected a little more
        Average
        Good idea, so-so in practice
    """),
    2: lines("""
        Not what I had hoped for
        Disappointed
        Would not buy again
        Looks better than it is
        Let down
        There are better ones
    """),
    1: lines("""
        Waste of money
        Went straight back
        Broken within days
        Very disappointed
        Avoid
        Never again
        Do not buy
    """),
}
_TIMES = ("two weeks", "a month", "three months", "half a year", "a few days", "almost a year")
_RELATIVES = ("sister", "father", "husband", "wife", "neighbour", "best friend", "son", "mother", "colleague")
_GLAD = lines("""
    I bought this for {use}, and it is perfect for that.
    I have had it for {time} now.
    A present for my {relative}, who is delighted.
    After {time} of use I can say that it was the right choice.
    I was unsure at first, but not any more.
    I have bought from {brand} before, and they have not let me down.
    My {relative} has the same one, that is how I came to it.
    Ordered on Monday, here on Wednesday.
    It takes the place of something that I had for many years.
""")
_EVEN = lines("""
    It is for {use}, and for that it is enough.
    I have used it for {time}.
    I do not know quite what to think of it.
    My {relative} likes it better than I do.
    The parcel took longer than promised.
    I had read the other reviews and expected more.
""")
_SAD = lines("""
    I wanted to like it, I really did.
    I expected more from {brand}.
    After {time} I have given up.
    I bought it for {use}, and it is no good for that.
    The picture promised more.
    A present for my {relative}; it was embarrassing.
    It began well enough.
""")
_GLAD_ENDS = lines("""
    I would buy it again.
    Highly recommended.
    Thank you for the quick delivery!
    Well worth the price.
    My {relative} has ordered one, too.
    Keep it in your range, please.
""")
_EVEN_ENDS = lines("""
    For the price it is all right.
    I shall keep it, but I would not buy it twice.
    Perhaps I was unlucky.
    Decide for yourselves.
""")
_SAD_ENDS = lines("""
    It went back the next day.
    I want my money back.
    Save your money.
    The customer service was kind, at least.
    I am very disappointed.
    My {relative} had warned me.
""")
_HANDLES = lines("""
    teapot_lover
    Night Owl
    grandma_rosa
    happycamper
    The Tinkerer
    city_cyclist
    bookworm
    Mr. Picky
    small_kitchen
    weekend_baker
    left-handed
    two_cats
    first_flat
    honest_tom
    Sunny
    slowcoach
    MrsGreen
    paper_tiger
    early bird
    long_legs
    A Customer
    northerner
    dad_of_four
    sceptic
    window_seat
""")


class _Review(NamedTuple):
    item: Item
    customer: Customer | None
    nickname: str
    rating: int
    moment: str


def write_reviews(
    database: sqlite3.Connection,
    rng: random.Random,
    orders: Sequence[ShopOrder],
    items: Sequence[Item],
    names: list[str],
    count: int,
) -> None:
    """Write `count` reviews. `names` are first names for guests."""
    reviews = _of_customers(rng, orders)
    weights = list(accumulate(item.popularity**0.85 for item in items))
    reviewed = {(review.item.id, review.nickname) for review in reviews}
    while len(reviews) < count:
        item = rng.choices(items, cum_weights=weights)[0]
        moment = later(item.created, rng, most_days=900)
        nickname = rng.choice(_HANDLES) if rng.random() < 0.4 else rng.choice(names)
        if (item.id, nickname) not in reviewed:
            reviewed.add((item.id, nickname))
            reviews.append(_Review(item, None, nickname, _rating(rng, item), moment))
    reviews.sort(key=lambda review: (review.moment, review.item.id))
    database.executemany(
        "INSERT INTO shop_reviews (product, customer, nickname, rating, title, text, moment, status) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (_row(rng, review) for review in reviews),
    )


def _of_customers(rng: random.Random, orders: Sequence[ShopOrder]) -> list[_Review]:
    """Return reviews of shipped products, one per customer and product. The agent's account wrote up to six."""
    reviews: dict[tuple[int, int], _Review] = {}
    own = 0
    for order in orders:
        for line in order.lines:
            if order.shipped is None or rng.random() > 0.45:
                continue
            own += order.customer.id == 1
            if order.customer.id == 1 and own > 6:
                continue
            moment = order.shipped + datetime.timedelta(days=rng.uniform(2, 40))
            if moment < NOW:
                person, rating = order.customer.person, _rating(rng, line.item)
                nickname = rng.choice((person.first, f"{person.first} {person.last[0]}.", person.name, person.user))
                review = _Review(line.item, order.customer, nickname, rating, stamp(moment))
                reviews.setdefault((order.customer.id, line.item.id), review)
    return list(reviews.values())


def _rating(rng: random.Random, item: Item) -> int:
    return min(max(round(rng.gauss(item.quality + 0.3, 1.35)), 1), 5)


def _row(rng: random.Random, review: _Review) -> tuple[object, ...]:
    title, text = _texts(rng, review.item, review.rating)
    customer = review.customer.id if review.customer else None
    status = _status(rng, review)
    return review.item.id, customer, review.nickname, review.rating, title, text, review.moment, status


def _status(rng: random.Random, review: _Review) -> str:
    """Draw the status. Recent reviews are often pending; those of the agent's account are approved."""
    if review.customer is not None and review.customer.id == 1:
        return "approved"
    waiting = 0.55 if (NOW - datetime.datetime.fromisoformat(review.moment)).days < 30 else 0.01
    return rng.choices(("pending", "rejected", "approved"), (waiting, 0.03, 0.97 - waiting))[0]


def _texts(rng: random.Random, item: Item, rating: int) -> tuple[str, str]:
    """Return title and text."""
    good, bad = texts_for(item.shelf.good, item.thing), texts_for(item.shelf.bad, item.thing)
    openings, ends = ((_SAD, _SAD_ENDS), (_EVEN, _EVEN_ENDS), (_GLAD, _GLAD_ENDS))[max(0, min(rating - 2, 2))]
    body = _body(rng, rating, good, bad)
    title = rng.choice(_TITLES[rating])
    if rating != 3 and rng.random() < 0.12:
        title = _capital(rng.choice(good if rating > 3 else bad))
    parts = [body]
    if rng.random() < 0.7:
        parts.insert(0, rng.choice(openings))
    if rng.random() < 0.45:
        parts.append(rng.choice(ends))
    values = {
        "use": rng.choice(texts_for(item.shelf.uses, item.thing)),
        "time": rng.choice(_TIMES),
        "relative": rng.choice(_RELATIVES),
        "brand": item.brand,
    }
    return title, " ".join(parts).format(**values)


def _body(rng: random.Random, rating: int, good: list[str], bad: list[str]) -> str:
    """Return the praise and the complaints as sentences."""
    if rating == 5:
        praise = pick_some(rng, good, rng.choice((1, 2, 2, 3)))
        return _sentences(rng, praise)
    if rating == 4:
        praise, flaw = pick_some(rng, good, rng.choice((1, 2))), rng.choice(bad)
        return _sentences(rng, praise) + (f" Only {flaw}." if rng.random() < 0.35 else "")
    if rating == 3:
        one, other = rng.choice(good), rng.choice(bad)
        return rng.choice((f"{_capital(one)}, but {other}.", f"{_capital(other)}. Then again, {one}."))
    flaws = pick_some(rng, bad, rng.choice((1, 2)) if rating == 2 else rng.choice((1, 2, 3)))
    relief = f" To be fair, {rng.choice(good)}." if rating == 2 and rng.random() < 0.35 else ""
    return _sentences(rng, flaws) + relief


def _sentences(rng: random.Random, clauses: list[str]) -> str:
    """Join clauses to sentences such as "It pours without a drip, and the handle stays cool."."""
    if len(clauses) == 2 and rng.random() < 0.6:
        return f"{_capital(clauses[0])}, and {clauses[1]}."
    return " ".join(f"{_capital(clause)}." for clause in clauses)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]

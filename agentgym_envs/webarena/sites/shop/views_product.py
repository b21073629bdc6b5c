"""A product and its reviews."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.store import cards, options_of

routes = Routes()
_RECENT, _RELATED = 3, 3
_ORDERS = {
    "newest": ("Newest first", "moment DESC, id DESC"),
    "oldest": ("Oldest first", "moment, id"),
    "highest": ("Highest rating", "rating DESC, moment DESC, id DESC"),
    "lowest": ("Lowest rating", "rating, moment DESC, id DESC"),
}


@routes.get("/product/{slug}")
def product(context: RequestContext, slug: str) -> Response:
    """Show a product."""
    shown, details = _product(context, slug)
    recent = context.rows(
        "SELECT * FROM shop_reviews WHERE product = ? AND status = 'approved' "
        f"ORDER BY moment DESC, id DESC LIMIT {_RECENT}",
        shown["id"],
    )
    related = cards(
        context, f"c.id = ? AND p.id <> ? ORDER BY abs(p.id - ?), p.id LIMIT {_RELATED}", *_near(details, shown["id"])
    )
    return context.page(
        "product.html",
        product=shown,
        details=details,
        above=_above(context, details["category"]),
        attributes=context.rows("SELECT name, value FROM shop_attributes WHERE product = ? ORDER BY id", shown["id"]),
        options=options_of(context, shown["id"]),
        recent=recent,
        related=related,
    )


@routes.get("/product/{slug}/reviews")
def reviews(context: RequestContext, slug: str) -> Response:
    """List the approved reviews of a product, optionally with one rating."""
    shown, _ = _product(context, slug)
    stars = context.query.number("stars", 0, least=1, most=5)
    where = "product = ? AND status = 'approved' AND (? = 0 OR rating = ?)"
    arguments = (shown["id"], stars, stars)
    paging = Paging.of(context.query, context.value(f"SELECT COUNT(*) FROM shop_reviews WHERE {where}", *arguments), 10)
    order = context.query.choice("order", tuple(_ORDERS), "newest")
    return context.page(
        "reviews.html",
        product=shown,
        stars=stars,
        order=order,
        orders=[(name, text) for name, (text, _) in _ORDERS.items()],
        paging=paging,
        counts=_counts(context, shown["id"]),
        reviews=context.rows(
            f"SELECT * FROM shop_reviews WHERE {where} ORDER BY {_ORDERS[order][1]} LIMIT {paging.size} OFFSET ?",
            *arguments,
            paging.skipped,
        ),
    )


@routes.get("/product/{slug}/write-review")
def write_review(context: RequestContext, slug: str) -> Response:
    """Show the form for a review."""
    return _form(context, slug, Fields())


@routes.post("/product/{slug}/write-review")
def send_review(context: RequestContext, slug: str) -> Response:
    """Save a review, which is pending until it is approved."""
    shown, _ = _product(context, slug)
    form = context.form
    rating = form.number("rating", 0, least=1, most=5)
    nickname, title, text = form.text("nickname", most=60), form.text("title", most=120), form.text("text", most=3000)
    if not rating:
        return _form(context, slug, form, "Please choose how many stars you give.")
    if not (nickname and title and text):
        return _form(context, slug, form, "Please fill in nickname, summary and review.")
    context.write(
        "INSERT INTO shop_reviews (product, customer, nickname, rating, title, text, moment, status) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, 'pending')",
        shown["id"],
        context.account or None,
        nickname,
        rating,
        title,
        text,
        stamp(),
    )
    context.flash("You submitted your review for moderation.")
    return Redirect(f"/product/{slug}")


def _form(context: RequestContext, slug: str, form: Fields, error: str = "") -> Response:
    shown, _ = _product(context, slug)
    first = context.value("SELECT first FROM shop_customers WHERE id = ?", context.account) or ""
    return context.page(
        "write_review.html",
        422 if error else 200,
        product=shown,
        error=error,
        nickname=form.text("nickname", first),
        rating=form.number("rating", 0, least=1, most=5),
        title=form.text("title"),
        text=form.text("text"),
    )


def _product(context: RequestContext, slug: str) -> tuple[sqlite3.Row, sqlite3.Row]:
    """Return the product with the columns of lists, and its row with all columns."""
    rows = cards(context, "p.slug = ?", slug)
    if not rows:
        raise NotFound("This product is no longer sold here.")
    return rows[0], context.one("SELECT * FROM shop_products WHERE id = ?", rows[0]["id"])


def _above(context: RequestContext, category: int) -> list[tuple[str, str]]:
    """Return the department and shelf of a product with their URLs."""
    rows = context.rows(
        "SELECT * FROM shop_categories WHERE id = ?1 OR id = (SELECT parent FROM shop_categories WHERE id = ?1) "
        "ORDER BY parent IS NOT NULL",
        category,
    )
    return [(row["name"], f"/category/{row['slug']}") for row in rows]


def _near(details: sqlite3.Row, number: int) -> tuple[int, int, int]:
    return details["category"], number, number


def _counts(context: RequestContext, number: int) -> list[tuple[int, int]]:
    """Return the number of reviews by rating, from five stars to one."""
    query = "SELECT rating, COUNT(*) FROM shop_reviews WHERE product = ? AND status = 'approved' GROUP BY rating"
    counts = {row[0]: row[1] for row in context.rows(query, number)}
    return [(stars, counts.get(stars, 0)) for stars in (5, 4, 3, 2, 1)]

"""Reviews of products, which somebody has to approve."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.admin.forms import Checked
from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.rendering import plural
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
STATUSES = ("approved", "pending", "rejected")
STATUS_CHOICES = tuple((status, status.capitalize()) for status in STATUSES)
RATINGS = tuple((str(stars), f"{stars} star{'s' if stars > 1 else ''}") for stars in range(1, 6))
FIELDS = ("nickname", "title", "text", "rating", "status")
_SOURCE = """
SELECT r.id, r.moment, r.status, r.title, r.nickname, r.title || ' ' || r.text AS text, r.rating,
    p.name AS product_name, p.sku
FROM shop_reviews r JOIN shop_products p ON p.id = r.product
"""
REVIEWS = Grid(
    title="Reviews",
    source=_SOURCE,
    columns=(
        Column("id", "ID"),
        Column("moment", "Created", "day"),
        Column("status", "Status", "status"),
        Column("title", "Title"),
        Column("nickname", "Nickname"),
        Column("rating", "Rating", "number"),
        Column("product_name", "Product"),
    ),
    filters=(
        Filter("product_name", "Product"),
        Filter("sku", "SKU"),
        Filter("nickname", "Nickname"),
        Filter("text", "Text"),
        Filter("rating", "Rating", "choice", RATINGS),
        Filter("moment", "Created", "day"),
        Filter("status", "Status", "choice", STATUS_CHOICES),
    ),
    order="moment",
    path="/reviews/{id}",
    names="title",
    mass=("/reviews/mass", (*((status, f"Set to {status}") for status in STATUSES), ("delete", "Delete"))),
    size=12,
)


@routes.get("/reviews")
def reviews(visit: RequestContext) -> Response:
    """All reviews."""
    return REVIEWS.page(visit, "grid.html", heading="All Reviews")


@routes.get("/reviews/pending")
def pending(visit: RequestContext) -> Response:
    """Those that wait."""
    shown = REVIEWS.show(visit, only="status = ?", given=("pending",))
    return visit.page("grid.html", shown=shown, heading="Pending Reviews")


@routes.post("/reviews/mass")
def mass(visit: RequestContext) -> Response:
    """Set the status of those that were ticked, or delete them."""
    action, ids = visit.form.choice("action", (*STATUSES, "delete")), dict.fromkeys(visit.form.numbers("id"))
    if not action or not ids:
        visit.say("Please select reviews and an action.", "error")
        return visit.back("/reviews")
    for id in ids:
        if action == "delete":
            visit.write("DELETE FROM shop_reviews WHERE id = ?", id)
        else:
            visit.write("UPDATE shop_reviews SET status = ? WHERE id = ?", action, id)
    visit.say(f"A total of {plural(len(ids), 'record')} have been {'deleted' if action == 'delete' else 'updated'}.")
    return visit.back("/reviews")


def _review(visit: RequestContext, id: int) -> sqlite3.Row:
    query = """SELECT r.*, p.name AS product_name, p.slug, c.first || ' ' || c.last AS customer_name FROM shop_reviews r
        JOIN shop_products p ON p.id = r.product LEFT JOIN shop_customers c ON c.id = r.customer WHERE r.id = ?"""
    return visit.one(query, id)


@routes.get("/reviews/{id:int}")
def review(visit: RequestContext, id: int) -> Response:
    """The form."""
    row = _review(visit, id)
    return _form(visit, row, {name: str(row[name]) for name in FIELDS}, [])


def _form(visit: RequestContext, row: sqlite3.Row, values: dict[str, str], wrong: list[str]) -> Response:
    choices = {"statuses": STATUS_CHOICES, "ratings": RATINGS}
    return visit.page("review.html", 422 if wrong else 200, review=row, values=values, wrong=wrong, **choices)


@routes.post("/reviews/{id:int}")
def save(visit: RequestContext, id: int) -> Response:
    """Change a review, most of all its status."""
    row, sent = _review(visit, id), Checked(visit)
    values = {
        "nickname": sent.text("nickname", "Nickname", most=60),
        "title": sent.text("title", "Summary of Review", most=120),
        "text": sent.text("text", "Review", most=3_000),
        "rating": sent.number("rating", "Rating", least=1, most=5),
        "status": sent.choice("status", "Status", STATUSES),
    }
    if sent.wrong:
        return _form(visit, row, sent.as_sent(*FIELDS), sent.wrong)
    update = "UPDATE shop_reviews SET nickname = ?, title = ?, text = ?, rating = ?, status = ? WHERE id = ?"
    visit.write(update, *values.values(), id)
    visit.say("You saved the review.")
    return Redirect(f"/reviews/{id}")


@routes.post("/reviews/{id:int}/delete")
def delete(visit: RequestContext, id: int) -> Response:
    """Delete a review."""
    visit.one("SELECT id FROM shop_reviews WHERE id = ?", id)
    visit.write("DELETE FROM shop_reviews WHERE id = ?", id)
    visit.say("You deleted the review.")
    return Redirect("/reviews")

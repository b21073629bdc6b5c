"""Product reviews and their approval."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.admin.forms import CheckedForm
from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
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
        GridColumn("id", "ID"),
        GridColumn("moment", "Created", "day"),
        GridColumn("status", "Status", "status"),
        GridColumn("title", "Title"),
        GridColumn("nickname", "Nickname"),
        GridColumn("rating", "Rating", "number"),
        GridColumn("product_name", "Product"),
    ),
    filters=(
        GridFilter("product_name", "Product"),
        GridFilter("sku", "SKU"),
        GridFilter("nickname", "Nickname"),
        GridFilter("text", "Text"),
        GridFilter("rating", "Rating", "choice", RATINGS),
        GridFilter("moment", "Created", "day"),
        GridFilter("status", "Status", "choice", STATUS_CHOICES),
    ),
    order="moment",
    path="/reviews/{id}",
    link_column="title",
    mass_actions=("/reviews/mass", (*((status, f"Set to {status}") for status in STATUSES), ("delete", "Delete"))),
    size=12,
)


@routes.get("/reviews")
def reviews(context: RequestContext) -> Response:
    """List the reviews."""
    return REVIEWS.page(context, "grid.html", heading="All Reviews")


@routes.get("/reviews/pending")
def pending(context: RequestContext) -> Response:
    """List the reviews that await approval."""
    shown = REVIEWS.show(context, only="status = ?", given=("pending",))
    return context.page("grid.html", shown=shown, heading="Pending Reviews")


@routes.post("/reviews/mass")
def mass_update(context: RequestContext) -> Response:
    """Set the status of the selected reviews, or delete them."""
    action, ids = context.form.choice("action", (*STATUSES, "delete")), dict.fromkeys(context.form.numbers("id"))
    if not action or not ids:
        context.flash("Please select reviews and an action.", "error")
        return context.redirect_back("/reviews")
    for id in ids:
        if action == "delete":
            context.write("DELETE FROM shop_reviews WHERE id = ?", id)
        else:
            context.write("UPDATE shop_reviews SET status = ? WHERE id = ?", action, id)
    context.flash(
        f"A total of {plural(len(ids), 'record')} have been {'deleted' if action == 'delete' else 'updated'}."
    )
    return context.redirect_back("/reviews")


def _review(context: RequestContext, id: int) -> sqlite3.Row:
    query = """SELECT r.*, p.name AS product_name, p.slug, c.first || ' ' || c.last AS customer_name FROM shop_reviews r
        JOIN shop_products p ON p.id = r.product LEFT JOIN shop_customers c ON c.id = r.customer WHERE r.id = ?"""
    return context.one(query, id)


@routes.get("/reviews/{id:int}")
def review(context: RequestContext, id: int) -> Response:
    """Show the form of a review."""
    row = _review(context, id)
    return _form(context, row, {name: str(row[name]) for name in FIELDS}, [])


def _form(context: RequestContext, row: sqlite3.Row, values: dict[str, str], errors: list[str]) -> Response:
    choices = {"statuses": STATUS_CHOICES, "ratings": RATINGS}
    return context.page("review.html", 422 if errors else 200, review=row, values=values, errors=errors, **choices)


@routes.post("/reviews/{id:int}")
def save(context: RequestContext, id: int) -> Response:
    """Save a review."""
    row, form = _review(context, id), CheckedForm(context)
    values = {
        "nickname": form.text("nickname", "Nickname", most=60),
        "title": form.text("title", "Summary of Review", most=120),
        "text": form.text("text", "Review", most=3_000),
        "rating": form.number("rating", "Rating", least=1, most=5),
        "status": form.choice("status", "Status", STATUSES),
    }
    if form.errors:
        return _form(context, row, form.as_sent(*FIELDS), form.errors)
    update = "UPDATE shop_reviews SET nickname = ?, title = ?, text = ?, rating = ?, status = ? WHERE id = ?"
    context.write(update, *values.values(), id)
    context.flash("You saved the review.")
    return Redirect(f"/reviews/{id}")


@routes.post("/reviews/{id:int}/delete")
def delete(context: RequestContext, id: int) -> Response:
    """Delete a review."""
    context.one("SELECT id FROM shop_reviews WHERE id = ?", id)
    context.write("DELETE FROM shop_reviews WHERE id = ?", id)
    context.flash("You deleted the review.")
    return Redirect("/reviews")

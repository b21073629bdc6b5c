"""Categories of the catalog."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.forms import CheckedForm
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_TREE = """
SELECT k.*, COALESCE(above.name, '') AS above, (SELECT COUNT(*) FROM shop_products WHERE category = k.id) AS products
FROM shop_categories k LEFT JOIN shop_categories above ON above.id = k.parent
"""
_ORDER = (
    " ORDER BY COALESCE(above.position, k.position), COALESCE(above.id, k.id), k.parent IS NOT NULL, k.position, k.id"
)


@routes.get("/categories")
def categories(context: RequestContext) -> Response:
    """Show the top categories and those below the selected one."""
    tops = context.rows(_TREE + " WHERE k.parent IS NULL" + _ORDER)
    chosen = context.query.number("under", tops[0]["id"] if tops else 0)
    return context.page(
        "categories.html", tops=tops, chosen=chosen, inner=context.rows(_TREE + " WHERE k.parent = ?" + _ORDER, chosen)
    )


@routes.get("/categories/{id:int}")
def category(context: RequestContext, id: int) -> Response:
    """Show the form of a category."""
    row = context.one(_TREE + " WHERE k.id = ?", id)
    values = {"name": row["name"], "description": row["description"], "enabled": str(row["enabled"])}
    return context.page("category.html", category=row, values=values, errors=[])


@routes.post("/categories/{id:int}")
def save(context: RequestContext, id: int) -> Response:
    """Save a category."""
    row, form = context.one(_TREE + " WHERE k.id = ?", id), CheckedForm(context)
    name = form.text("name", "Category Name", most=80)
    description = form.text("description", "Description", most=2_000, needed=False)
    if form.errors:
        values = form.as_sent("name", "description", "enabled")
        return context.page("category.html", 422, category=row, values=values, errors=form.errors)
    update = "UPDATE shop_categories SET name = ?, description = ?, enabled = ? WHERE id = ?"
    context.write(update, name, description, form.flag("enabled"), id)
    context.flash("You saved the category.")
    return Redirect(f"/categories/{id}")

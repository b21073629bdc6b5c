"""Categories of the catalogue."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.forms import Checked
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
def categories(visit: RequestContext) -> Response:
    """The tree: those at the top, and what is in the one that was chosen."""
    tops = visit.rows(_TREE + " WHERE k.parent IS NULL" + _ORDER)
    chosen = visit.query.number("under", tops[0]["id"] if tops else 0)
    return visit.page(
        "categories.html", tops=tops, chosen=chosen, inner=visit.rows(_TREE + " WHERE k.parent = ?" + _ORDER, chosen)
    )


@routes.get("/categories/{id:int}")
def category(visit: RequestContext, id: int) -> Response:
    """The form."""
    row = visit.one(_TREE + " WHERE k.id = ?", id)
    values = {"name": row["name"], "description": row["description"], "enabled": str(row["enabled"])}
    return visit.page("category.html", category=row, values=values, wrong=[])


@routes.post("/categories/{id:int}")
def save(visit: RequestContext, id: int) -> Response:
    """Change a category."""
    row, sent = visit.one(_TREE + " WHERE k.id = ?", id), Checked(visit)
    name = sent.text("name", "Category Name", most=80)
    description = sent.text("description", "Description", most=2_000, needed=False)
    if sent.wrong:
        values = sent.as_sent("name", "description", "enabled")
        return visit.page("category.html", 422, category=row, values=values, wrong=sent.wrong)
    update = "UPDATE shop_categories SET name = ?, description = ?, enabled = ? WHERE id = ?"
    visit.write(update, name, description, sent.ticked("enabled"), id)
    visit.say("You saved the category.")
    return Redirect(f"/categories/{id}")

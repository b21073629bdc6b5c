"""Search terms and newsletter subscribers."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.rendering import plural
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
TERMS = Grid(
    title="Search Terms",
    source="SELECT id, term, results, uses, last FROM shop_searches",
    columns=(
        GridColumn("id", "ID"),
        GridColumn("term", "Search Query"),
        GridColumn("results", "Results", "number"),
        GridColumn("uses", "Uses", "number"),
        GridColumn("last", "Last Searched", "moment"),
    ),
    filters=(
        GridFilter("term", "Search query"),
        GridFilter("results", "Results", "number"),
        GridFilter("uses", "Uses", "number"),
        GridFilter("last", "Last searched", "day"),
    ),
    order="uses",
)
SUBSCRIBERS = Grid(
    title="Newsletter Subscribers",
    source="""SELECT s.id, s.email, s.status, s.moment, COALESCE(c.first || ' ' || c.last, '') AS name,
        CASE WHEN s.customer IS NULL THEN 'Guest' ELSE 'Customer' END AS type
        FROM shop_subscribers s LEFT JOIN shop_customers c ON c.id = s.customer""",
    columns=(
        GridColumn("id", "ID"),
        GridColumn("email", "E-mail"),
        GridColumn("type", "Type"),
        GridColumn("name", "Customer"),
        GridColumn("moment", "Since", "day"),
        GridColumn("status", "Status", "status"),
    ),
    filters=(
        GridFilter("email", "E-mail"),
        GridFilter("name", "Customer"),
        GridFilter("type", "Type", "choice", (("Guest", "Guest"), ("Customer", "Customer"))),
        GridFilter("moment", "Since", "day"),
        GridFilter("status", "Status", "choice", (("subscribed", "Subscribed"), ("unsubscribed", "Unsubscribed"))),
    ),
    order="id",
    descending=False,
    link_column="email",
    mass_actions=("/subscribers/mass", (("unsubscribe", "Unsubscribe"), ("delete", "Delete"))),
)


@routes.get("/search-terms")
def terms(context: RequestContext) -> Response:
    """List the search terms of the shop."""
    return TERMS.page(context, "grid.html")


@routes.get("/subscribers")
def subscribers(context: RequestContext) -> Response:
    """List all current and former subscribers."""
    return SUBSCRIBERS.page(context, "grid.html")


@routes.post("/subscribers/mass")
def mass_update(context: RequestContext) -> Response:
    """Unsubscribe or delete the selected subscribers."""
    action, ids = context.form.choice("action", ("unsubscribe", "delete")), dict.fromkeys(context.form.numbers("id"))
    if not action or not ids:
        context.flash("Please select subscribers and an action.", "error")
        return context.redirect_back("/subscribers")
    for id in ids:
        if action == "delete":
            context.write("DELETE FROM shop_subscribers WHERE id = ?", id)
        else:
            context.write("UPDATE shop_subscribers SET status = 'unsubscribed' WHERE id = ?", id)
    context.flash(f"A total of {plural(len(ids), 'record')} have been {action.rstrip('e')}ed.")
    return context.redirect_back("/subscribers")

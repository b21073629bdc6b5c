"""Search terms and who reads the newsletter."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.rendering import plural
from agentgym_envs.webarena.sites.framework.responses import Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
TERMS = Grid(
    title="Search Terms",
    source="SELECT id, term, results, uses, last FROM shop_searches",
    columns=(
        Column("id", "ID"),
        Column("term", "Search Query"),
        Column("results", "Results", "number"),
        Column("uses", "Uses", "number"),
        Column("last", "Last Searched", "moment"),
    ),
    filters=(
        Filter("term", "Search query"),
        Filter("results", "Results", "number"),
        Filter("uses", "Uses", "number"),
        Filter("last", "Last searched", "day"),
    ),
    order="uses",
)
SUBSCRIBERS = Grid(
    title="Newsletter Subscribers",
    source="""SELECT s.id, s.email, s.status, s.moment, COALESCE(c.first || ' ' || c.last, '') AS name,
        CASE WHEN s.customer IS NULL THEN 'Guest' ELSE 'Customer' END AS type
        FROM shop_subscribers s LEFT JOIN shop_customers c ON c.id = s.customer""",
    columns=(
        Column("id", "ID"),
        Column("email", "E-mail"),
        Column("type", "Type"),
        Column("name", "Customer"),
        Column("moment", "Since", "day"),
        Column("status", "Status", "status"),
    ),
    filters=(
        Filter("email", "E-mail"),
        Filter("name", "Customer"),
        Filter("type", "Type", "choice", (("Guest", "Guest"), ("Customer", "Customer"))),
        Filter("moment", "Since", "day"),
        Filter("status", "Status", "choice", (("subscribed", "Subscribed"), ("unsubscribed", "Unsubscribed"))),
    ),
    order="id",
    falling=False,
    names="email",
    mass=("/subscribers/mass", (("unsubscribe", "Unsubscribe"), ("delete", "Delete"))),
)


@routes.get("/search-terms")
def terms(visit: RequestContext) -> Response:
    """What was searched for in the shop."""
    return TERMS.page(visit, "grid.html")


@routes.get("/subscribers")
def subscribers(visit: RequestContext) -> Response:
    """Everybody who was or is subscribed."""
    return SUBSCRIBERS.page(visit, "grid.html")


@routes.post("/subscribers/mass")
def mass(visit: RequestContext) -> Response:
    """Unsubscribe or delete those that were ticked."""
    action, ids = visit.form.choice("action", ("unsubscribe", "delete")), dict.fromkeys(visit.form.numbers("id"))
    if not action or not ids:
        visit.say("Please select subscribers and an action.", "error")
        return visit.back("/subscribers")
    for id in ids:
        if action == "delete":
            visit.write("DELETE FROM shop_subscribers WHERE id = ?", id)
        else:
            visit.write("UPDATE shop_subscribers SET status = 'unsubscribed' WHERE id = ?", id)
    visit.say(f"A total of {plural(len(ids), 'record')} have been {action.rstrip('e')}ed.")
    return visit.back("/subscribers")

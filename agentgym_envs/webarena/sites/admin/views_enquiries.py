"""What people wrote by the shop's form "Contact us"."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
ENQUIRIES = Grid(
    title="Enquiries",
    source="SELECT id, subject, name, email, order_number, moment, text FROM shop_enquiries",
    columns=(
        Column("id", "ID"),
        Column("subject", "Subject"),
        Column("name", "Name"),
        Column("email", "E-mail"),
        Column("order_number", "Order #"),
        Column("moment", "Received", "moment"),
    ),
    filters=(
        Filter("subject", "Subject"),
        Filter("name", "Name"),
        Filter("order_number", "Order number"),
        Filter("text", "Text"),
        Filter("moment", "Received", "day"),
    ),
    order="moment",
    path="/enquiries/{id}",
    names="subject",
)


@routes.get("/enquiries")
def enquiries(visit: RequestContext) -> Response:
    """All of them."""
    return ENQUIRIES.page(visit, "grid.html")


@routes.get("/enquiries/{id:int}")
def enquiry(visit: RequestContext, id: int) -> Response:
    """One of them, with whom and what it is about."""
    found = visit.one("SELECT * FROM shop_enquiries WHERE id = ?", id)
    order = visit.value("SELECT id FROM shop_orders WHERE number = ?", found["order_number"])
    return visit.page("enquiry.html", enquiry=found, order=order)


@routes.post("/enquiries/{id:int}/delete")
def delete(visit: RequestContext, id: int) -> Response:
    """Delete one that was answered."""
    visit.one("SELECT id FROM shop_enquiries WHERE id = ?", id)
    visit.write("DELETE FROM shop_enquiries WHERE id = ?", id)
    visit.say("You deleted the enquiry.")
    return Redirect("/enquiries")

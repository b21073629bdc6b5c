"""What people wrote by the shop's form "Contact us"."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.kit.answers import Answer, Redirect
from agentgym_envs.webarena.sites.kit.site import Routes
from agentgym_envs.webarena.sites.kit.visit import Visit

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
def enquiries(visit: Visit) -> Answer:
    """All of them."""
    return ENQUIRIES.page(visit, "grid.html")


@routes.get("/enquiries/{id:int}")
def enquiry(visit: Visit, id: int) -> Answer:
    """One of them, with whom and what it is about."""
    found = visit.one("SELECT * FROM shop_enquiries WHERE id = ?", id)
    order = visit.value("SELECT id FROM shop_orders WHERE number = ?", found["order_number"])
    return visit.page("enquiry.html", enquiry=found, order=order)


@routes.post("/enquiries/{id:int}/delete")
def delete(visit: Visit, id: int) -> Answer:
    """Delete one that was answered."""
    visit.one("SELECT id FROM shop_enquiries WHERE id = ?", id)
    visit.write("DELETE FROM shop_enquiries WHERE id = ?", id)
    visit.say("You deleted the enquiry.")
    return Redirect("/enquiries")

"""Enquiries that customers sent with the form "Contact us"."""

from __future__ import annotations

from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
ENQUIRIES = Grid(
    title="Enquiries",
    source="SELECT id, subject, name, email, order_number, moment, text FROM shop_enquiries",
    columns=(
        GridColumn("id", "ID"),
        GridColumn("subject", "Subject"),
        GridColumn("name", "Name"),
        GridColumn("email", "E-mail"),
        GridColumn("order_number", "Order #"),
        GridColumn("moment", "Received", "moment"),
    ),
    filters=(
        GridFilter("subject", "Subject"),
        GridFilter("name", "Name"),
        GridFilter("order_number", "Order number"),
        GridFilter("text", "Text"),
        GridFilter("moment", "Received", "day"),
    ),
    order="moment",
    path="/enquiries/{id}",
    link_column="subject",
)


@routes.get("/enquiries")
def enquiries(context: RequestContext) -> Response:
    """List the enquiries."""
    return ENQUIRIES.page(context, "grid.html")


@routes.get("/enquiries/{id:int}")
def enquiry(context: RequestContext, id: int) -> Response:
    """Show an enquiry with its author and order."""
    enquiry = context.one("SELECT * FROM shop_enquiries WHERE id = ?", id)
    order = context.value("SELECT id FROM shop_orders WHERE number = ?", enquiry["order_number"])
    return context.page("enquiry.html", enquiry=enquiry, order=order)


@routes.post("/enquiries/{id:int}/delete")
def delete(context: RequestContext, id: int) -> Response:
    """Delete an enquiry."""
    context.one("SELECT id FROM shop_enquiries WHERE id = ?", id)
    context.write("DELETE FROM shop_enquiries WHERE id = ?", id)
    context.flash("You deleted the enquiry.")
    return Redirect("/enquiries")

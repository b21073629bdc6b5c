"""The wish list and the comparison list."""

from __future__ import annotations

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.cart import put_in
from agentgym_envs.webarena.sites.shop.store import cards, shown_product

routes = Routes()
MOST_COMPARED = 4


@routes.get("/wishlist")
def wishes(context: RequestContext) -> Response:
    """Show the wish list."""
    account = context.require_login()
    products = cards(context, "p.id IN (SELECT product FROM shop_wishes WHERE customer = ?)", account)
    by_id = {product["id"]: product for product in products}
    rows = context.rows("SELECT * FROM shop_wishes WHERE customer = ? ORDER BY added DESC, id DESC", account)
    return context.page(
        "wishlist.html", wishes=[(row, by_id[row["product"]]) for row in rows if row["product"] in by_id]
    )


@routes.post("/wishlist/add")
def add(context: RequestContext) -> Response:
    """Add a product to the wish list."""
    account = context.require_login()
    product = shown_product(context, context.form.number("product"))
    if context.row("SELECT 1 FROM shop_wishes WHERE customer = ? AND product = ?", account, product["id"]):
        context.flash(f"{product['name']} is on your wish list already.", "notice")
    else:
        query = "INSERT INTO shop_wishes (customer, product, added) VALUES (?, ?, ?)"
        context.write(query, account, product["id"], stamp())
        context.flash(f"{product['name']} has been added to your wish list.")
    return Redirect("/wishlist")


@routes.post("/wishlist/{number:int}/comment")
def comment(context: RequestContext, number: int) -> Response:
    """Save a comment on a wish."""
    context.write(
        "UPDATE shop_wishes SET comment = ? WHERE id = ? AND customer = ?",
        *(context.form.text("comment", most=500), number, context.require_login()),
    )
    context.flash("Your wish list has been updated.")
    return Redirect("/wishlist")


@routes.post("/wishlist/{number:int}/remove")
def remove(context: RequestContext, number: int) -> Response:
    """Remove a product from the wish list."""
    account = context.require_login()
    context.write("DELETE FROM shop_wishes WHERE id = ? AND customer = ?", number, account)
    context.flash("The product was removed from your wish list.")
    return Redirect("/wishlist")


@routes.post("/wishlist/{number:int}/cart")
def to_cart(context: RequestContext, number: int) -> Response:
    """Move a product to the cart. If it has options, redirect to its page."""
    account = context.require_login()
    wish = context.one("SELECT * FROM shop_wishes WHERE id = ? AND customer = ?", number, account)
    product = shown_product(context, wish["product"])
    if product["has_options"]:
        context.flash("Please choose the options of this product first.", "notice")
        return Redirect(f"/product/{product['slug']}")
    if error := put_in(context, product, "", 1):
        context.flash(error, "error")
        return Redirect("/wishlist")
    context.write("DELETE FROM shop_wishes WHERE id = ?", wish["id"])
    context.flash(f"{product['name']} was moved to your shopping cart.")
    return Redirect("/wishlist")


@routes.get("/compare")
def compare(context: RequestContext) -> Response:
    """Show the comparison list."""
    account = context.require_login()
    products = cards(
        context,
        "p.id IN (SELECT product FROM shop_compares WHERE customer = ?) "
        "ORDER BY (SELECT id FROM shop_compares k WHERE k.customer = ? AND k.product = p.id)",
        *(account, account),
    )
    rows = context.rows(
        "SELECT product, name, value FROM shop_attributes WHERE product IN "
        "(SELECT product FROM shop_compares WHERE customer = ?) ORDER BY name, id",
        account,
    )
    attributes: dict[str, dict[int, str]] = {}
    for row in rows:
        attributes.setdefault(row["name"], {})[row["product"]] = row["value"]
    return context.page("compare.html", products=products, attributes=attributes)


@routes.post("/compare/add")
def add_compared(context: RequestContext) -> Response:
    """Add a product to the comparison list."""
    account = context.require_login()
    product = shown_product(context, context.form.number("product"))
    known = [row["product"] for row in context.rows("SELECT product FROM shop_compares WHERE customer = ?", account)]
    if product["id"] in known:
        context.flash(f"{product['name']} is in the comparison already.", "notice")
    elif len(known) >= MOST_COMPARED:
        context.flash(f"No more than {MOST_COMPARED} products can be compared. Please remove one first.", "error")
    else:
        context.write("INSERT INTO shop_compares (customer, product) VALUES (?, ?)", account, product["id"])
        context.flash(f"You added {product['name']} to the comparison list.")
    return context.redirect_back("/compare")


@routes.post("/compare/remove")
def remove_compared(context: RequestContext) -> Response:
    """Remove one product from the comparison list, or all."""
    account, product = context.require_login(), context.form.number("product")
    context.write("DELETE FROM shop_compares WHERE customer = ? AND (product = ? OR ? = 0)", account, product, product)
    context.flash("The comparison list has been changed.")
    return Redirect("/compare")

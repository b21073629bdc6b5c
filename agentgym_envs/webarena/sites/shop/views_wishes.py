"""The wish list, and products side by side."""

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
def wishes(visit: RequestContext) -> Response:
    """What one would like to have."""
    account = visit.must_be_signed_in()
    products = cards(visit, "p.id IN (SELECT product FROM shop_wishes WHERE customer = ?)", account)
    by_id = {product["id"]: product for product in products}
    rows = visit.rows("SELECT * FROM shop_wishes WHERE customer = ? ORDER BY added DESC, id DESC", account)
    return visit.page("wishlist.html", wishes=[(row, by_id[row["product"]]) for row in rows if row["product"] in by_id])


@routes.post("/wishlist/add")
def add(visit: RequestContext) -> Response:
    """Put a product on the list."""
    account = visit.must_be_signed_in()
    product = shown_product(visit, visit.form.number("product"))
    if visit.row("SELECT 1 FROM shop_wishes WHERE customer = ? AND product = ?", account, product["id"]):
        visit.say(f"{product['name']} is on your wish list already.", "notice")
    else:
        query = "INSERT INTO shop_wishes (customer, product, added) VALUES (?, ?, ?)"
        visit.write(query, account, product["id"], stamp())
        visit.say(f"{product['name']} has been added to your wish list.")
    return Redirect("/wishlist")


@routes.post("/wishlist/{number:int}/comment")
def comment(visit: RequestContext, number: int) -> Response:
    """A note to oneself."""
    visit.write(
        "UPDATE shop_wishes SET comment = ? WHERE id = ? AND customer = ?",
        *(visit.form.text("comment", most=500), number, visit.must_be_signed_in()),
    )
    visit.say("Your wish list has been updated.")
    return Redirect("/wishlist")


@routes.post("/wishlist/{number:int}/remove")
def remove(visit: RequestContext, number: int) -> Response:
    """Take a product off the list."""
    account = visit.must_be_signed_in()
    visit.write("DELETE FROM shop_wishes WHERE id = ? AND customer = ?", number, account)
    visit.say("The product was removed from your wish list.")
    return Redirect("/wishlist")


@routes.post("/wishlist/{number:int}/cart")
def to_cart(visit: RequestContext, number: int) -> Response:
    """From the list into the cart; with options to choose, to the product's page first."""
    account = visit.must_be_signed_in()
    wish = visit.one("SELECT * FROM shop_wishes WHERE id = ? AND customer = ?", number, account)
    product = shown_product(visit, wish["product"])
    if product["has_options"]:
        visit.say("Please choose the options of this product first.", "notice")
        return Redirect(f"/product/{product['slug']}")
    if wrong := put_in(visit, product, "", 1):
        visit.say(wrong, "error")
        return Redirect("/wishlist")
    visit.write("DELETE FROM shop_wishes WHERE id = ?", wish["id"])
    visit.say(f"{product['name']} was moved to your shopping cart.")
    return Redirect("/wishlist")


@routes.get("/compare")
def compare(visit: RequestContext) -> Response:
    """Products side by side."""
    account = visit.must_be_signed_in()
    products = cards(
        visit,
        "p.id IN (SELECT product FROM shop_compares WHERE customer = ?) "
        "ORDER BY (SELECT id FROM shop_compares k WHERE k.customer = ? AND k.product = p.id)",
        *(account, account),
    )
    rows = visit.rows(
        "SELECT product, name, value FROM shop_attributes WHERE product IN "
        "(SELECT product FROM shop_compares WHERE customer = ?) ORDER BY name, id",
        account,
    )
    attributes: dict[str, dict[int, str]] = {}
    for row in rows:
        attributes.setdefault(row["name"], {})[row["product"]] = row["value"]
    return visit.page("compare.html", products=products, attributes=attributes)


@routes.post("/compare/add")
def add_compared(visit: RequestContext) -> Response:
    """Put a product beside the others."""
    account = visit.must_be_signed_in()
    product = shown_product(visit, visit.form.number("product"))
    known = [row["product"] for row in visit.rows("SELECT product FROM shop_compares WHERE customer = ?", account)]
    if product["id"] in known:
        visit.say(f"{product['name']} is in the comparison already.", "notice")
    elif len(known) >= MOST_COMPARED:
        visit.say(f"No more than {MOST_COMPARED} products can be compared. Please remove one first.", "error")
    else:
        visit.write("INSERT INTO shop_compares (customer, product) VALUES (?, ?)", account, product["id"])
        visit.say(f"You added {product['name']} to the comparison list.")
    return visit.back("/compare")


@routes.post("/compare/remove")
def remove_compared(visit: RequestContext) -> Response:
    """Take a product away, or all of them."""
    account, product = visit.must_be_signed_in(), visit.form.number("product")
    visit.write("DELETE FROM shop_compares WHERE customer = ? AND (product = ? OR ? = 0)", account, product, product)
    visit.say("The comparison list has been changed.")
    return Redirect("/compare")

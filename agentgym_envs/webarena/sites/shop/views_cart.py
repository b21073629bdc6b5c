"""The cart's pages."""

from __future__ import annotations

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.cart import MOST, cart_of, put_in, rules_for
from agentgym_envs.webarena.sites.shop.money import SHIPPING_METHODS, discount_of
from agentgym_envs.webarena.sites.shop.store import options_of, shown_product

routes = Routes()


@routes.get("/cart")
def cart(visit: RequestContext) -> Response:
    """What lies in it, and what it costs."""
    found = cart_of(visit)
    return visit.page("cart.html", cart=found, totals=found.totals(), methods=SHIPPING_METHODS)


@routes.post("/cart/add")
def add(visit: RequestContext) -> Response:
    """Put a product into it, with the options that were chosen."""
    visit.must_be_signed_in()
    product = shown_product(visit, visit.form.number("product"))
    quantity = visit.form.number("quantity", 0, least=1, most=MOST) if "quantity" in visit.form else 1
    page = Redirect(f"/product/{product['slug']}")
    if not quantity:
        visit.say(f"Please enter a quantity from 1 to {MOST}.", "error")
        return page
    chosen = []
    for name, values in options_of(visit, product["id"]).items():
        value = visit.form.choice(f"option {name}", [row["value"] for row in values])
        if not value:
            visit.say(f"Please choose an option for {name}.", "error")
            return page
        chosen.append(f"{name}: {value}")
    if wrong := put_in(visit, product, ", ".join(chosen), quantity):
        visit.say(wrong, "error")
        return page
    visit.say(f"You added {product['name']} to your shopping cart.")
    return visit.back(f"/product/{product['slug']}")


@routes.post("/cart/update")
def update(visit: RequestContext) -> Response:
    """Change quantities; 0 takes a line out."""
    found = cart_of(visit)
    for line in found.lines:
        name = f"quantity {line.id}"
        quantity = visit.form.number(name, -1, most=MOST) if name in visit.form else line.quantity
        if quantity < 0 or quantity > max(line.product["stock"], line.quantity):
            left = f"Only {line.product['stock']} of {line.product['name']} can be ordered."
            visit.say(left if quantity > 0 else f"Please enter quantities from 0 to {MOST}.", "error")
            return Redirect("/cart")
    for line in found.lines:
        quantity = visit.form.number(f"quantity {line.id}", line.quantity, most=MOST)
        if quantity == 0:
            visit.write("DELETE FROM shop_cart_lines WHERE id = ?", line.id)
        elif quantity != line.quantity:
            visit.write("UPDATE shop_cart_lines SET quantity = ? WHERE id = ?", quantity, line.id)
    visit.say("Your shopping cart has been updated.")
    return Redirect("/cart")


@routes.post("/cart/remove")
def remove(visit: RequestContext) -> Response:
    """Take a line out."""
    found = cart_of(visit)
    line = next((line for line in found.lines if line.id == visit.form.number("line")), None)
    if line is not None:
        visit.write("DELETE FROM shop_cart_lines WHERE id = ?", line.id)
        visit.say(f"{line.product['name']} was removed from your shopping cart.")
    return Redirect("/cart")


@routes.post("/cart/clear")
def clear(visit: RequestContext) -> Response:
    """Take everything out."""
    visit.write("DELETE FROM shop_cart_lines WHERE cart = ?", cart_of(visit).number)
    visit.say("Your shopping cart is empty now.")
    return Redirect("/cart")


@routes.post("/cart/coupon")
def apply_coupon(visit: RequestContext) -> Response:
    """Apply a coupon, or take it off where none is given."""
    found, code = cart_of(visit), visit.form.text("coupon", most=60)
    rules = [rule for rule in rules_for(visit, visit.account, code) if rule["coupon"]] if code else []
    if not code:
        visit.write("UPDATE shop_carts SET coupon = '' WHERE id = ?", found.number)
        visit.say("The coupon was removed.")
    elif not rules:
        visit.say(f"The coupon code “{code}” is not valid.", "error")
    elif not found.lines or not discount_of(rules[0], found.subtotal):
        visit.say(f"The coupon code “{code}” does not apply to this cart.", "error")
    else:
        visit.write("UPDATE shop_carts SET coupon = ? WHERE id = ?", rules[0]["coupon"], found.number)
        visit.say(f"You used the coupon code “{rules[0]['coupon']}”.")
    return Redirect("/cart")

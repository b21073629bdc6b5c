"""Pages of the cart."""

from __future__ import annotations

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.cart import MOST, cart_of, put_in, rules_for
from agentgym_envs.webarena.sites.shop.money import SHIPPING_METHODS, discount_of
from agentgym_envs.webarena.sites.shop.store import options_of, shown_product

routes = Routes()


@routes.get("/cart")
def cart(context: RequestContext) -> Response:
    """Show the cart."""
    cart = cart_of(context)
    return context.page("cart.html", cart=cart, totals=cart.totals(), methods=SHIPPING_METHODS)


@routes.post("/cart/add")
def add(context: RequestContext) -> Response:
    """Add a product with its chosen options."""
    context.require_login()
    product = shown_product(context, context.form.number("product"))
    quantity = context.form.number("quantity", 0, least=1, most=MOST) if "quantity" in context.form else 1
    page = Redirect(f"/product/{product['slug']}")
    if not quantity:
        context.flash(f"Please enter a quantity from 1 to {MOST}.", "error")
        return page
    chosen = []
    for name, values in options_of(context, product["id"]).items():
        value = context.form.choice(f"option {name}", [row["value"] for row in values])
        if not value:
            context.flash(f"Please choose an option for {name}.", "error")
            return page
        chosen.append(f"{name}: {value}")
    if error := put_in(context, product, ", ".join(chosen), quantity):
        context.flash(error, "error")
        return page
    context.flash(f"You added {product['name']} to your shopping cart.")
    return context.redirect_back(f"/product/{product['slug']}")


@routes.post("/cart/update")
def update(context: RequestContext) -> Response:
    """Change quantities; 0 removes a line."""
    cart = cart_of(context)
    for line in cart.lines:
        name = f"quantity {line.id}"
        quantity = context.form.number(name, -1, most=MOST) if name in context.form else line.quantity
        if quantity < 0 or quantity > max(line.product["stock"], line.quantity):
            left = f"Only {line.product['stock']} of {line.product['name']} can be ordered."
            context.flash(left if quantity > 0 else f"Please enter quantities from 0 to {MOST}.", "error")
            return Redirect("/cart")
    for line in cart.lines:
        quantity = context.form.number(f"quantity {line.id}", line.quantity, most=MOST)
        if quantity == 0:
            context.write("DELETE FROM shop_cart_lines WHERE id = ?", line.id)
        elif quantity != line.quantity:
            context.write("UPDATE shop_cart_lines SET quantity = ? WHERE id = ?", quantity, line.id)
    context.flash("Your shopping cart has been updated.")
    return Redirect("/cart")


@routes.post("/cart/remove")
def remove(context: RequestContext) -> Response:
    """Remove a line."""
    cart = cart_of(context)
    line = next((line for line in cart.lines if line.id == context.form.number("line")), None)
    if line is not None:
        context.write("DELETE FROM shop_cart_lines WHERE id = ?", line.id)
        context.flash(f"{line.product['name']} was removed from your shopping cart.")
    return Redirect("/cart")


@routes.post("/cart/clear")
def clear(context: RequestContext) -> Response:
    """Remove all lines."""
    context.write("DELETE FROM shop_cart_lines WHERE cart = ?", cart_of(context).number)
    context.flash("Your shopping cart is empty now.")
    return Redirect("/cart")


@routes.post("/cart/coupon")
def apply_coupon(context: RequestContext) -> Response:
    """Apply a coupon code; an empty code removes the coupon."""
    cart, code = cart_of(context), context.form.text("coupon", most=60)
    rules = [rule for rule in rules_for(context, context.account, code) if rule["coupon"]] if code else []
    if not code:
        context.write("UPDATE shop_carts SET coupon = '' WHERE id = ?", cart.number)
        context.flash("The coupon was removed.")
    elif not rules:
        context.flash(f"The coupon code “{code}” is not valid.", "error")
    elif not cart.lines or not discount_of(rules[0], cart.subtotal):
        context.flash(f"The coupon code “{code}” does not apply to this cart.", "error")
    else:
        context.write("UPDATE shop_carts SET coupon = ? WHERE id = ?", rules[0]["coupon"], cart.number)
        context.flash(f"You used the coupon code “{rules[0]['coupon']}”.")
    return Redirect("/cart")

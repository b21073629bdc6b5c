"""Account pages: overview, account information, newsletter and reviews; and the contact form."""

from __future__ import annotations

import re
import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.store import customer_of

routes = Routes()
SUBJECTS = ("Question about a product", "Question about an order", "Return or refund", "Complaint", "Something else")
_EMAIL = re.compile(r"[^@\s<>\"]{1,64}@[\w-]+(\.[\w-]+)+")


@routes.get("/account")
def overview(context: RequestContext) -> Response:
    """Show the account with the latest orders."""
    customer = customer_of(context)
    orders = context.rows(
        "SELECT * FROM shop_orders WHERE customer = ? ORDER BY moment DESC, id DESC LIMIT 5", context.account
    )
    address = context.row("SELECT * FROM shop_addresses WHERE id = ?", customer["address"])
    return context.page(
        "account.html", orders=orders, address=address, subscribed=_subscribed(context, customer["email"])
    )


@routes.get("/account/edit")
def edit(context: RequestContext) -> Response:
    """Show the form for name and e-mail address."""
    customer = customer_of(context)
    values = {name: customer[name] for name in ("first", "last", "email")}
    return context.page("account_edit.html", **values, error="")


@routes.post("/account/edit")
def save(context: RequestContext) -> Response:
    """Save name and e-mail address."""
    account = context.require_login()
    values = {name: context.form.text(name, most=100) for name in ("first", "last", "email")}
    taken = context.value(
        "SELECT id FROM shop_customers WHERE lower(email) = lower(?) AND id <> ?", values["email"], account
    )
    error = ""
    if not (values["first"] and values["last"]):
        error = "Please enter your first and last name."
    elif not _EMAIL.fullmatch(values["email"]):
        error = "Please enter a valid e-mail address."
    elif taken:
        error = "There is another account with this e-mail address."
    if error:
        return context.page("account_edit.html", 422, **values, error=error)
    context.write("UPDATE shop_customers SET first = ?, last = ?, email = ? WHERE id = ?", *values.values(), account)
    context.flash("You saved the account information.")
    return Redirect("/account")


@routes.get("/account/newsletter")
def newsletter(context: RequestContext) -> Response:
    """Show the newsletter subscription."""
    return context.page("newsletter.html", subscribed=_subscribed(context, customer_of(context)["email"]))


@routes.post("/account/newsletter")
def save_newsletter(context: RequestContext) -> Response:
    """Subscribe to the newsletter, or unsubscribe."""
    customer = customer_of(context)
    if context.form.is_checked("subscribed"):
        _subscribe(context, customer["email"], customer)
        context.flash("You are subscribed to the newsletter.")
    else:
        context.write("UPDATE shop_subscribers SET status = 'unsubscribed' WHERE email = ?", customer["email"])
        context.flash("You are not subscribed to the newsletter.")
    return Redirect("/account")


@routes.post("/newsletter")
def subscribe(context: RequestContext) -> Response:
    """Subscribe any e-mail address, from the footer of every page."""
    email = context.form.text("email", most=100)
    if not _EMAIL.fullmatch(email):
        context.flash("Please enter a valid e-mail address.", "error")
    elif _subscribed(context, email):
        context.flash("This e-mail address is already subscribed.", "error")
    else:
        _subscribe(context, email, context.row("SELECT * FROM shop_customers WHERE lower(email) = lower(?)", email))
        context.flash("Thank you for your subscription.")
    return context.redirect_back("/")


@routes.get("/account/reviews")
def reviews(context: RequestContext) -> Response:
    """List the reviews by this customer."""
    account = context.require_login()
    paging = Paging.of(
        context.query, context.value("SELECT COUNT(*) FROM shop_reviews WHERE customer = ?", account), 10
    )
    rows = context.rows(
        "SELECT r.*, p.name, p.slug FROM shop_reviews r JOIN shop_products p ON p.id = r.product "
        f"WHERE r.customer = ? ORDER BY r.moment DESC, r.id DESC LIMIT {paging.size} OFFSET ?",
        *(account, paging.skipped),
    )
    return context.page("my_reviews.html", reviews=rows, paging=paging)


@routes.get("/contact")
def contact(context: RequestContext) -> Response:
    """Show the contact form."""
    customer = context.row("SELECT * FROM shop_customers WHERE id = ?", context.account)
    values = dict.fromkeys(("phone", "subject", "order_number", "text"), "")
    values["name"] = f"{customer['first']} {customer['last']}" if customer else ""
    values["email"] = customer["email"] if customer else ""
    return context.page("contact.html", values=values, subjects=SUBJECTS, error="")


@routes.post("/contact")
def send(context: RequestContext) -> Response:
    """Send an enquiry."""
    form = context.form
    values = {name: form.text(name, most=100) for name in ("name", "email", "phone", "order_number")}
    values |= {"subject": form.choice("subject", SUBJECTS), "text": form.text("text", most=3000)}
    if not (values["name"] and values["text"] and values["subject"] and _EMAIL.fullmatch(values["email"])):
        error = "Please fill in your name, a valid e-mail address, a subject and your message."
        return context.page("contact.html", 422, values=values, subjects=SUBJECTS, error=error)
    context.write(
        "INSERT INTO shop_enquiries (customer, name, email, phone, subject, order_number, text, moment) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        context.account or None,
        *(values[name] for name in ("name", "email", "phone", "subject", "order_number", "text")),
        stamp(),
    )
    context.flash("Thank you for your message. We will answer within one working day.")
    return Redirect("/contact")


def _subscribed(context: RequestContext, email: str) -> bool:
    query = "SELECT 1 FROM shop_subscribers WHERE lower(email) = lower(?) AND status = 'subscribed'"
    return context.row(query, email) is not None


def _subscribe(context: RequestContext, email: str, customer: sqlite3.Row | None) -> None:
    """Subscribe an e-mail address, or subscribe it again."""
    known = context.row("SELECT id, status FROM shop_subscribers WHERE lower(email) = lower(?)", email)
    if known is None:
        number = customer["id"] if customer else None
        context.write(
            "INSERT INTO shop_subscribers (email, customer, status, moment) VALUES (?, ?, 'subscribed', ?)",
            *(email, number, stamp()),
        )
    elif known["status"] != "subscribed":
        context.write(
            "UPDATE shop_subscribers SET status = 'subscribed', moment = ? WHERE id = ?", stamp(), known["id"]
        )

"""The customer's own pages: overview, particulars, newsletter, reviews; and the form for questions."""

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
def overview(visit: RequestContext) -> Response:
    """Who one is, and the latest orders."""
    customer = customer_of(visit)
    orders = visit.rows(
        "SELECT * FROM shop_orders WHERE customer = ? ORDER BY moment DESC, id DESC LIMIT 5", visit.account
    )
    address = visit.row("SELECT * FROM shop_addresses WHERE id = ?", customer["address"])
    return visit.page("account.html", orders=orders, address=address, subscribed=_subscribed(visit, customer["email"]))


@routes.get("/account/edit")
def edit(visit: RequestContext) -> Response:
    """The form for name and e-mail address."""
    customer = customer_of(visit)
    values = {name: customer[name] for name in ("first", "last", "email")}
    return visit.page("account_edit.html", **values, wrong="")


@routes.post("/account/edit")
def save(visit: RequestContext) -> Response:
    """Another name or address."""
    account = visit.must_be_signed_in()
    values = {name: visit.form.text(name, most=100) for name in ("first", "last", "email")}
    taken = visit.value(
        "SELECT id FROM shop_customers WHERE lower(email) = lower(?) AND id <> ?", values["email"], account
    )
    wrong = ""
    if not (values["first"] and values["last"]):
        wrong = "Please enter your first and last name."
    elif not _EMAIL.fullmatch(values["email"]):
        wrong = "Please enter a valid e-mail address."
    elif taken:
        wrong = "There is another account with this e-mail address."
    if wrong:
        return visit.page("account_edit.html", 422, **values, wrong=wrong)
    visit.write("UPDATE shop_customers SET first = ?, last = ?, email = ? WHERE id = ?", *values.values(), account)
    visit.say("You saved the account information.")
    return Redirect("/account")


@routes.get("/account/newsletter")
def newsletter(visit: RequestContext) -> Response:
    """Whether one gets it."""
    return visit.page("newsletter.html", subscribed=_subscribed(visit, customer_of(visit)["email"]))


@routes.post("/account/newsletter")
def save_newsletter(visit: RequestContext) -> Response:
    """Get it, or no longer."""
    customer = customer_of(visit)
    if visit.form.ticked("subscribed"):
        _subscribe(visit, customer["email"], customer)
        visit.say("You are subscribed to the newsletter.")
    else:
        visit.write("UPDATE shop_subscribers SET status = 'unsubscribed' WHERE email = ?", customer["email"])
        visit.say("You are not subscribed to the newsletter.")
    return Redirect("/account")


@routes.post("/newsletter")
def subscribe(visit: RequestContext) -> Response:
    """Subscribe any address, from the foot of every page."""
    email = visit.form.text("email", most=100)
    if not _EMAIL.fullmatch(email):
        visit.say("Please enter a valid e-mail address.", "error")
    elif _subscribed(visit, email):
        visit.say("This e-mail address is already subscribed.", "error")
    else:
        _subscribe(visit, email, visit.row("SELECT * FROM shop_customers WHERE lower(email) = lower(?)", email))
        visit.say("Thank you for your subscription.")
    return visit.back("/")


@routes.get("/account/reviews")
def reviews(visit: RequestContext) -> Response:
    """What one has written."""
    account = visit.must_be_signed_in()
    paging = Paging.of(visit.query, visit.value("SELECT COUNT(*) FROM shop_reviews WHERE customer = ?", account), 10)
    rows = visit.rows(
        "SELECT r.*, p.name, p.slug FROM shop_reviews r JOIN shop_products p ON p.id = r.product "
        f"WHERE r.customer = ? ORDER BY r.moment DESC, r.id DESC LIMIT {paging.size} OFFSET ?",
        *(account, paging.skipped),
    )
    return visit.page("my_reviews.html", reviews=rows, paging=paging)


@routes.get("/contact")
def contact(visit: RequestContext) -> Response:
    """The form for questions."""
    customer = visit.row("SELECT * FROM shop_customers WHERE id = ?", visit.account)
    values = dict.fromkeys(("phone", "subject", "order_number", "text"), "")
    values["name"] = f"{customer['first']} {customer['last']}" if customer else ""
    values["email"] = customer["email"] if customer else ""
    return visit.page("contact.html", values=values, subjects=SUBJECTS, wrong="")


@routes.post("/contact")
def send(visit: RequestContext) -> Response:
    """A question."""
    form = visit.form
    values = {name: form.text(name, most=100) for name in ("name", "email", "phone", "order_number")}
    values |= {"subject": form.choice("subject", SUBJECTS), "text": form.text("text", most=3000)}
    if not (values["name"] and values["text"] and values["subject"] and _EMAIL.fullmatch(values["email"])):
        wrong = "Please fill in your name, a valid e-mail address, a subject and your message."
        return visit.page("contact.html", 422, values=values, subjects=SUBJECTS, wrong=wrong)
    visit.write(
        "INSERT INTO shop_enquiries (customer, name, email, phone, subject, order_number, text, moment) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        visit.account or None,
        *(values[name] for name in ("name", "email", "phone", "subject", "order_number", "text")),
        stamp(),
    )
    visit.say("Thank you for your message. We will answer within one working day.")
    return Redirect("/contact")


def _subscribed(visit: RequestContext, email: str) -> bool:
    query = "SELECT 1 FROM shop_subscribers WHERE lower(email) = lower(?) AND status = 'subscribed'"
    return visit.row(query, email) is not None


def _subscribe(visit: RequestContext, email: str, customer: sqlite3.Row | None) -> None:
    """Subscribe an address, again if it was before."""
    known = visit.row("SELECT id, status FROM shop_subscribers WHERE lower(email) = lower(?)", email)
    if known is None:
        number = customer["id"] if customer else None
        visit.write(
            "INSERT INTO shop_subscribers (email, customer, status, moment) VALUES (?, ?, 'subscribed', ?)",
            *(email, number, stamp()),
        )
    elif known["status"] != "subscribed":
        visit.write("UPDATE shop_subscribers SET status = 'subscribed', moment = ? WHERE id = ?", stamp(), known["id"])

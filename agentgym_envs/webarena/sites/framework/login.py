"""Login. A browser without a login cookie is signed in as the default account on every site."""

from __future__ import annotations

import secrets
import sqlite3

from agentgym_envs.webarena.sites.episodes import Episode
from agentgym_envs.webarena.sites.framework.context import RequestContext, local_path
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import PASSWORD, Site, SiteRoute, load_site

_SIGNED_OUT = "out"


def cookie_name(episode: Episode) -> str:
    """Return the name of the login cookie. It differs by episode, since the browser of a person keeps old cookies."""
    return f"session-{episode.token[:8]}"


def logged_in_account(site: Site, database: sqlite3.Connection, cookie: str | None) -> int:
    """Return the id of the account that a cookie belongs to, 0 if there is no such login."""
    if cookie is None:
        return site.default_account(database)
    query = "SELECT account FROM web_logins WHERE token = ? AND site = ?"
    row = database.execute(query, (cookie, site.name)).fetchone()
    return int(row[0]) if row else 0


def sign_in_page(context: RequestContext) -> Response:
    """Show the login form."""
    return context.page("sign_in.html", after=local_path(context.query.text("after")))


def sign_in(context: RequestContext) -> Response:
    """Sign in with a user name and a password."""
    name, after = context.form.text("user", most=200), local_path(context.form.text("after"))
    account = load_site(context.site).find_account(context.database, name) if name else 0
    if not account or context.form.text("password") != PASSWORD:
        error = "The name and the password do not belong together. Please try again."
        return context.page("sign_in.html", after=after, name=name, error=error, status=401)
    token = secrets.token_urlsafe(18)
    context.write("INSERT INTO web_logins (token, site, account) VALUES (?, ?, ?)", token, context.site, account)
    context.cookies[context.cookie] = token
    return Redirect(after)


def sign_out(context: RequestContext) -> Response:
    """Sign out."""
    context.cookies[context.cookie] = _SIGNED_OUT
    context.flash("You have signed out.", "notice")
    return Redirect("/")


ROUTES = (
    SiteRoute("GET", "/sign-in", sign_in_page),
    SiteRoute("POST", "/sign-in", sign_in),
    SiteRoute("POST", "/sign-out", sign_out),
)
"""Routes that every site has."""

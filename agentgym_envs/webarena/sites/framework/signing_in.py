"""Who is signed in. A browser without a cookie is the owner's, so that an episode begins signed in everywhere."""

from __future__ import annotations

import secrets
import sqlite3

from agentgym_envs.webarena.sites.episodes import Episode
from agentgym_envs.webarena.sites.framework.context import RequestContext, local
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import PASSWORD, Route, Site, site

_NOBODY = "out"


def cookie_of(episode: Episode) -> str:
    """The name of the cookie: another for each episode, since a person's browser keeps those of earlier ones."""
    return f"session-{episode.token[:8]}"


def account_of(where: Site, database: sqlite3.Connection, cookie: str | None) -> int:
    """The number of the account that a cookie stands for, 0 for nobody."""
    if cookie is None:
        return where.owner(database)
    query = "SELECT account FROM web_logins WHERE token = ? AND site = ?"
    found = database.execute(query, (cookie, where.name)).fetchone()
    return int(found[0]) if found else 0


def sign_in_page(visit: RequestContext) -> Response:
    """The form."""
    return visit.page("sign_in.html", after=local(visit.query.text("after")))


def sign_in(visit: RequestContext) -> Response:
    """Sign in by name and password."""
    name, after = visit.form.text("user", most=200), local(visit.form.text("after"))
    account = site(visit.site).account(visit.database, name) if name else 0
    if not account or visit.form.text("password") != PASSWORD:
        wrong = "The name and the password do not belong together. Please try again."
        return visit.page("sign_in.html", after=after, name=name, wrong=wrong, status=401)
    token = secrets.token_urlsafe(18)
    visit.write("INSERT INTO web_logins (token, site, account) VALUES (?, ?, ?)", token, visit.site, account)
    visit.cookies[visit.cookie] = token
    return Redirect(after)


def sign_out(visit: RequestContext) -> Response:
    """Sign out."""
    visit.cookies[visit.cookie] = _NOBODY
    visit.say("You have signed out.", "notice")
    return Redirect("/")


ROUTES = (
    Route("GET", "/sign-in", sign_in_page),
    Route("POST", "/sign-in", sign_in),
    Route("POST", "/sign-out", sign_out),
)
"""What every site has."""

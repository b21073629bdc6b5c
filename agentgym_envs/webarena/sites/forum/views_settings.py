"""The settings of the account, and its saved, hidden and blocked items."""

from __future__ import annotations

import re

from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.wordlists import COLOURS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
SORTS = (("hot", "Hot"), ("new", "New"), ("top", "Top"), ("comments", "Most commented"))
FRONTS = (("subscribed", "Your boards"), ("all", "All boards"), ("moderated", "Boards that you moderate"))
_TICKS = ("notify_replies", "notify_messages", "public")
_MAIL = re.compile(r"[^@\s]{1,60}@[^@\s]{1,60}\.[a-z]{2,10}", re.ASCII | re.IGNORECASE)
_PAGE = re.compile(r"(https?://[^\s<>\"']{1,200})?")


@routes.get("/settings")
def profile(context: RequestContext) -> Response:
    """Show the form for the public profile."""
    context.require_login()
    mine = context.one("SELECT * FROM forum_users WHERE id = ?", context.account)
    return context.page("settings_profile.html", values=dict(mine), colours=COLOURS, error="")


@routes.post("/settings")
def save_profile(context: RequestContext) -> Response:
    """Save the public profile."""
    context.require_login()
    values = {key: context.form.text(key) for key in ("bio", "location", "website", "email")}
    values["avatar"] = context.form.choice("avatar", COLOURS, "slate")
    error = _form_error(values)
    if error:
        return context.page("settings_profile.html", values=values, colours=COLOURS, error=error, status=422)
    query = "UPDATE forum_users SET bio = ?, location = ?, website = ?, email = ?, avatar = ? WHERE id = ?"
    context.write(query, *values.values(), context.account)
    context.flash("Your profile has been saved.")
    return Redirect("/settings")


def _form_error(values: dict[str, str]) -> str:
    if len(values["bio"]) > 500:
        return "What you say about yourself has at most 500 characters."
    if len(values["location"]) > 60:
        return "A place has at most 60 characters."
    if not _PAGE.fullmatch(values["website"]):
        return "That is no address of a page. It begins with http:// or https://."
    return "" if _MAIL.fullmatch(values["email"]) else "That is no e-mail address."


@routes.get("/settings/preferences")
def preferences(context: RequestContext) -> Response:
    """Show the form for preferences."""
    context.require_login()
    mine = context.one("SELECT * FROM forum_users WHERE id = ?", context.account)
    return context.page("settings_preferences.html", values=mine, sorts=SORTS, fronts=FRONTS)


@routes.post("/settings/preferences")
def save_preferences(context: RequestContext) -> Response:
    """Save the preferences."""
    context.require_login()
    sort = context.form.choice("sort", [value for value, _ in SORTS], "hot")
    front = context.form.choice("front", [value for value, _ in FRONTS], "subscribed")
    ticks = [int(context.form.is_checked(name)) for name in _TICKS]
    query = (
        "UPDATE forum_users SET sort = ?, front = ?, notify_replies = ?, notify_messages = ?, public = ? WHERE id = ?"
    )
    context.write(query, sort, front, *ticks, context.account)
    context.flash("Your preferences have been saved.")
    return Redirect("/settings/preferences")


@routes.get("/subscriptions")
def subscriptions(context: RequestContext) -> Response:
    """List the boards that the account subscribes to."""
    context.require_login()
    mine = "SELECT board FROM forum_subscriptions WHERE account = ?"
    query = f"SELECT * FROM forum_boards WHERE id IN ({mine}) ORDER BY name"
    return context.page("subscriptions.html", rows=context.rows(query, context.account)[:60])


@routes.get("/saved")
def saved(context: RequestContext) -> Response:
    """List the saved posts."""
    context.require_login()
    where = f"{listing.NOT_DELETED} AND p.id IN (SELECT post FROM forum_saved WHERE account = ?1)"
    return context.page("kept.html", tab="posts", result=listing.posts(context, where))


@routes.get("/saved/comments")
def saved_comments(context: RequestContext) -> Response:
    """List the saved comments."""
    context.require_login()
    result = listing.comments(context, "c.id IN (SELECT comment FROM forum_saved WHERE account = ?1)")
    return context.page("kept.html", tab="comments", result=result)


@routes.get("/hidden")
def hidden(context: RequestContext) -> Response:
    """List the hidden posts."""
    context.require_login()
    where = f"{listing.NOT_DELETED} AND p.id IN (SELECT post FROM forum_hidden WHERE account = ?1)"
    return context.page("kept.html", tab="hidden", result=listing.posts(context, where))


@routes.get("/blocked")
def blocked(context: RequestContext) -> Response:
    """List the blocked users."""
    context.require_login()
    query = (
        "SELECT u.name, k.created, k.note FROM forum_blocks k JOIN forum_users u ON u.id = k.user "
        "WHERE k.account = ? ORDER BY k.created DESC, u.name"
    )
    return context.page("blocked.html", rows=context.rows(query, context.account)[:60])

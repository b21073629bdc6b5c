"""The account of the visitor: profile, status and SSH keys."""

from __future__ import annotations

import re

from agentgym_envs.webarena.sites.clock import TODAY, stamp
from agentgym_envs.webarena.sites.code.attributes import is_day
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_FIELDS = (
    ("name", "Full name", 100), ("job", "Job title", 100), ("organisation", "Organisation", 100),
    ("location", "Location", 100), ("website", "Website", 200),
)  # fmt: skip
_KEY = re.compile(r"(?:ssh-(?:ed25519|rsa)|ecdsa-sha2-nistp256) [A-Za-z0-9+/=]{16,3000}(?: .{0,200})?")


@routes.get("/-/profile")
def profile(context: RequestContext) -> Response:
    """Show the form of the profile."""
    return _profile_page(context, context.require_login())


@routes.post("/-/profile")
def save_profile(context: RequestContext) -> Response:
    """Save the profile."""
    account, form = context.require_login(), context.form
    values = {name: form.text(name, most=most) for name, _, most in _FIELDS} | {"bio": form.text("bio", most=250)}
    if not values["name"]:
        return _profile_page(context, account, "Please say your name.")
    if values["website"] and not values["website"].startswith(("http://", "https://")):
        return _profile_page(context, account, "A website begins with http:// or https://.")
    context.update("code_accounts", account, values)
    context.write("UPDATE code_namespaces SET name = ? WHERE account = ?", values["name"], account)
    context.flash("Your profile was updated.")
    return Redirect("/-/profile")


@routes.get("/-/status")
def status(context: RequestContext) -> Response:
    """Show the form of the status next to the visitor's name."""
    context.require_login()
    return context.page("status.html")


@routes.post("/-/status")
def save_status(context: RequestContext) -> Response:
    """Set the status, or clear it."""
    account, clears = context.require_login(), context.form.is_checked("clear")
    text = "" if clears else context.form.text("status", most=100)
    busy = not clears and context.form.is_checked("busy")
    context.write("UPDATE code_accounts SET status = ?, busy = ? WHERE id = ?", text, int(busy), account)
    context.flash("Your status was cleared." if clears else "Your status was set.")
    return Redirect("/" + context.value("SELECT user FROM code_accounts WHERE id = ?", account))


@routes.get("/-/profile/keys")
def keys(context: RequestContext) -> Response:
    """List the SSH keys."""
    return _key_page(context, context.require_login())


@routes.post("/-/profile/keys")
def add_key(context: RequestContext) -> Response:
    """Add an SSH key."""
    account, form = context.require_login(), context.form
    key, expires = form.text("key"), form.text("expires")
    if not _KEY.fullmatch(key):
        return _key_page(context, account, "This is no public key. It begins with 'ssh-ed25519' or 'ssh-rsa'.")
    if expires and (not is_day(expires) or expires <= TODAY.isoformat()):
        return _key_page(context, account, "A key can only expire in the future.")
    if context.row("SELECT 1 FROM code_keys WHERE key = ?", key):
        return _key_page(context, account, "This key is already in use.")
    title = form.text("title", most=100) or key.split(" ", 2)[-1][:100]
    query = "INSERT INTO code_keys (account, title, key, created, expires) VALUES (?, ?, ?, ?, ?)"
    context.write(query, account, title, key, stamp(), expires or None)
    context.flash("The key was added.")
    return Redirect("/-/profile/keys")


@routes.post("/-/profile/keys/{number:int}")
def delete_key(context: RequestContext, number: int) -> Response:
    """Delete an SSH key."""
    key = context.one("SELECT * FROM code_keys WHERE id = ?", number)
    context.require(key["account"] == context.require_login(), "This key is not yours.")
    context.write("DELETE FROM code_keys WHERE id = ?", number)
    context.flash(f"The key '{key['title']}' was removed.")
    return Redirect("/-/profile/keys")


def _profile_page(context: RequestContext, account: int, error: str = "") -> Response:
    row = context.one("SELECT * FROM code_accounts WHERE id = ?", account)
    names = (*(name for name, _, _ in _FIELDS), "bio")
    values = {name: context.form.text(name) if error else row[name] for name in names}
    return context.page("profile_edit.html", 422 if error else 200, values=values, fields=_FIELDS, error=error)


def _key_page(context: RequestContext, account: int, error: str = "") -> Response:
    rows = context.rows("SELECT * FROM code_keys WHERE account = ? ORDER BY id", account)
    return context.page("keys.html", 422 if error else 200, rows=rows, error=error, form=context.form)

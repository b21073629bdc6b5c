"""The visitor's own account: profile, status and keys."""

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
def profile(visit: RequestContext) -> Response:
    """The form with what the visitor says of themselves."""
    return _profile_page(visit, visit.must_be_signed_in())


@routes.post("/-/profile")
def save_profile(visit: RequestContext) -> Response:
    """Change it."""
    account, form = visit.must_be_signed_in(), visit.form
    values = {name: form.text(name, most=most) for name, _, most in _FIELDS} | {"bio": form.text("bio", most=250)}
    if not values["name"]:
        return _profile_page(visit, account, "Please say your name.")
    if values["website"] and not values["website"].startswith(("http://", "https://")):
        return _profile_page(visit, account, "A website begins with http:// or https://.")
    visit.update("code_accounts", account, values)
    visit.write("UPDATE code_namespaces SET name = ? WHERE account = ?", values["name"], account)
    visit.say("Your profile was updated.")
    return Redirect("/-/profile")


@routes.get("/-/status")
def status(visit: RequestContext) -> Response:
    """The form for the status that shows beside the visitor's name."""
    visit.must_be_signed_in()
    return visit.page("status.html")


@routes.post("/-/status")
def save_status(visit: RequestContext) -> Response:
    """Set it, or clear it."""
    account, clears = visit.must_be_signed_in(), visit.form.ticked("clear")
    text = "" if clears else visit.form.text("status", most=100)
    busy = not clears and visit.form.ticked("busy")
    visit.write("UPDATE code_accounts SET status = ?, busy = ? WHERE id = ?", text, int(busy), account)
    visit.say("Your status was cleared." if clears else "Your status was set.")
    return Redirect("/" + visit.value("SELECT user FROM code_accounts WHERE id = ?", account))


@routes.get("/-/profile/keys")
def keys(visit: RequestContext) -> Response:
    """The keys by which the visitor's machines are known."""
    return _key_page(visit, visit.must_be_signed_in())


@routes.post("/-/profile/keys")
def add_key(visit: RequestContext) -> Response:
    """Add one."""
    account, form = visit.must_be_signed_in(), visit.form
    key, expires = form.text("key"), form.text("expires")
    if not _KEY.fullmatch(key):
        return _key_page(visit, account, "This is no public key. It begins with 'ssh-ed25519' or 'ssh-rsa'.")
    if expires and (not is_day(expires) or expires <= TODAY.isoformat()):
        return _key_page(visit, account, "A key can only expire in the future.")
    if visit.row("SELECT 1 FROM code_keys WHERE key = ?", key):
        return _key_page(visit, account, "This key is already in use.")
    title = form.text("title", most=100) or key.split(" ", 2)[-1][:100]
    query = "INSERT INTO code_keys (account, title, key, created, expires) VALUES (?, ?, ?, ?, ?)"
    visit.write(query, account, title, key, stamp(), expires or None)
    visit.say("The key was added.")
    return Redirect("/-/profile/keys")


@routes.post("/-/profile/keys/{number:int}")
def delete_key(visit: RequestContext, number: int) -> Response:
    """Remove one."""
    key = visit.one("SELECT * FROM code_keys WHERE id = ?", number)
    visit.must(key["account"] == visit.must_be_signed_in(), "This key is not yours.")
    visit.write("DELETE FROM code_keys WHERE id = ?", number)
    visit.say(f"The key '{key['title']}' was removed.")
    return Redirect("/-/profile/keys")


def _profile_page(visit: RequestContext, account: int, wrong: str = "") -> Response:
    row = visit.one("SELECT * FROM code_accounts WHERE id = ?", account)
    names = (*(name for name, _, _ in _FIELDS), "bio")
    values = {name: visit.form.text(name) if wrong else row[name] for name in names}
    return visit.page("profile_edit.html", 422 if wrong else 200, values=values, fields=_FIELDS, wrong=wrong)


def _key_page(visit: RequestContext, account: int, wrong: str = "") -> Response:
    rows = visit.rows("SELECT * FROM code_keys WHERE account = ? ORDER BY id", account)
    return visit.page("keys.html", 422 if wrong else 200, rows=rows, wrong=wrong, form=visit.form)

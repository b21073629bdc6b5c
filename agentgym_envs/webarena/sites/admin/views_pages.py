"""The shop's pages of text."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.admin.forms import Checked, slug_of
from agentgym_envs.webarena.sites.admin.grid import Column, Filter, Grid
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
FIELDS = ("title", "url_key", "content", "enabled")
_KEY = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
PAGES = Grid(
    title="Pages",
    source="""SELECT id, title, url_key, updated, CASE enabled WHEN 1 THEN 'Enabled' ELSE 'Disabled' END AS status
        FROM shop_pages""",
    columns=(
        Column("id", "ID"),
        Column("title", "Title"),
        Column("url_key", "URL Key"),
        Column("status", "Status", "status"),
        Column("updated", "Modified", "moment"),
    ),
    filters=(
        Filter("title", "Title"),
        Filter("url_key", "URL key"),
        Filter("status", "Status", "choice", (("Enabled", "Enabled"), ("Disabled", "Disabled"))),
        Filter("updated", "Modified", "day"),
    ),
    order="id",
    falling=False,
    path="/pages/{id}",
    names="title",
)


@routes.get("/pages")
def pages(visit: RequestContext) -> Response:
    """All pages."""
    return PAGES.page(visit, "grid.html", add=("Add New Page", "/pages/new"))


@routes.get("/pages/new")
def new(visit: RequestContext) -> Response:
    """An empty form."""
    return _form(visit, None, {**dict.fromkeys(FIELDS, ""), "enabled": "1"}, [])


@routes.get("/pages/{id:int}")
def page(visit: RequestContext, id: int) -> Response:
    """The form with a page in it."""
    row = visit.one("SELECT * FROM shop_pages WHERE id = ?", id)
    return _form(visit, row, {name: str(row[name]) for name in FIELDS}, [])


def _form(visit: RequestContext, row: sqlite3.Row | None, values: dict[str, str], wrong: list[str]) -> Response:
    return visit.page("page.html", 422 if wrong else 200, page=row, values=values, wrong=wrong)


def _read(visit: RequestContext, sent: Checked, id: int) -> dict[str, Any]:
    """The columns that the form says; without a key, one is made of the title."""
    title = sent.text("title", "Page Title", most=120)
    key = sent.form.text("url_key", slug_of(title)) or slug_of(title)
    if not _KEY.fullmatch(key) or len(key) > 80:
        sent.refuse("URL Key may have small letters, digits and “-” only.")
    if visit.value("SELECT 1 FROM shop_pages WHERE url_key = ? AND id <> ?", key, id):
        sent.refuse("A page with this URL key exists already.")
    content = sent.text("content", "Content", most=9_000)
    return {"title": title, "url_key": key, "content": content, "enabled": sent.ticked("enabled"), "updated": stamp()}


@routes.post("/pages/new")
def add(visit: RequestContext) -> Response:
    """Add a page."""
    sent = Checked(visit)
    values = _read(visit, sent, 0)
    if sent.wrong:
        return _form(visit, None, sent.as_sent(*FIELDS), sent.wrong)
    insert = "INSERT INTO shop_pages (title, url_key, content, enabled, updated) VALUES (?, ?, ?, ?, ?)"
    visit.write(insert, *values.values())
    visit.say("You saved the page.")
    return Redirect("/pages")


@routes.post("/pages/{id:int}")
def save(visit: RequestContext, id: int) -> Response:
    """Change a page."""
    row, sent = visit.one("SELECT * FROM shop_pages WHERE id = ?", id), Checked(visit)
    values = _read(visit, sent, id)
    if sent.wrong:
        return _form(visit, row, sent.as_sent(*FIELDS), sent.wrong)
    update = "UPDATE shop_pages SET title = ?, url_key = ?, content = ?, enabled = ?, updated = ? WHERE id = ?"
    visit.write(update, *values.values(), id)
    visit.say("You saved the page.")
    return Redirect("/pages")


@routes.post("/pages/{id:int}/delete")
def delete(visit: RequestContext, id: int) -> Response:
    """Delete a page."""
    visit.one("SELECT id FROM shop_pages WHERE id = ?", id)
    visit.write("DELETE FROM shop_pages WHERE id = ?", id)
    visit.say("You deleted the page.")
    return Redirect("/pages")

"""The shop's text pages."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.admin.forms import CheckedForm, slug_of
from agentgym_envs.webarena.sites.admin.grid import Grid, GridColumn, GridFilter
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
        GridColumn("id", "ID"),
        GridColumn("title", "Title"),
        GridColumn("url_key", "URL Key"),
        GridColumn("status", "Status", "status"),
        GridColumn("updated", "Modified", "moment"),
    ),
    filters=(
        GridFilter("title", "Title"),
        GridFilter("url_key", "URL key"),
        GridFilter("status", "Status", "choice", (("Enabled", "Enabled"), ("Disabled", "Disabled"))),
        GridFilter("updated", "Modified", "day"),
    ),
    order="id",
    descending=False,
    path="/pages/{id}",
    link_column="title",
)


@routes.get("/pages")
def pages(context: RequestContext) -> Response:
    """List the pages."""
    return PAGES.page(context, "grid.html", add=("Add New Page", "/pages/new"))


@routes.get("/pages/new")
def new(context: RequestContext) -> Response:
    """Show an empty form."""
    return _form(context, None, {**dict.fromkeys(FIELDS, ""), "enabled": "1"}, [])


@routes.get("/pages/{id:int}")
def page(context: RequestContext, id: int) -> Response:
    """Show the form of a page."""
    row = context.one("SELECT * FROM shop_pages WHERE id = ?", id)
    return _form(context, row, {name: str(row[name]) for name in FIELDS}, [])


def _form(context: RequestContext, row: sqlite3.Row | None, values: dict[str, str], errors: list[str]) -> Response:
    return context.page("page.html", 422 if errors else 200, page=row, values=values, errors=errors)


def _read(context: RequestContext, form: CheckedForm, id: int) -> dict[str, Any]:
    """Return the columns from the form. An empty URL key is derived from the title."""
    title = form.text("title", "Page Title", most=120)
    key = form.fields.text("url_key", slug_of(title)) or slug_of(title)
    if not _KEY.fullmatch(key) or len(key) > 80:
        form.refuse("URL Key may have small letters, digits and “-” only.")
    if context.value("SELECT 1 FROM shop_pages WHERE url_key = ? AND id <> ?", key, id):
        form.refuse("A page with this URL key exists already.")
    content = form.text("content", "Content", most=9_000)
    return {
        "title": title,
        "url_key": key,
        "content": content,
        "enabled": form.flag("enabled"),
        "updated": stamp(),
    }


@routes.post("/pages/new")
def add(context: RequestContext) -> Response:
    """Add a page."""
    form = CheckedForm(context)
    values = _read(context, form, 0)
    if form.errors:
        return _form(context, None, form.as_sent(*FIELDS), form.errors)
    insert = "INSERT INTO shop_pages (title, url_key, content, enabled, updated) VALUES (?, ?, ?, ?, ?)"
    context.write(insert, *values.values())
    context.flash("You saved the page.")
    return Redirect("/pages")


@routes.post("/pages/{id:int}")
def save(context: RequestContext, id: int) -> Response:
    """Save a page."""
    row, form = context.one("SELECT * FROM shop_pages WHERE id = ?", id), CheckedForm(context)
    values = _read(context, form, id)
    if form.errors:
        return _form(context, row, form.as_sent(*FIELDS), form.errors)
    update = "UPDATE shop_pages SET title = ?, url_key = ?, content = ?, enabled = ?, updated = ? WHERE id = ?"
    context.write(update, *values.values(), id)
    context.flash("You saved the page.")
    return Redirect("/pages")


@routes.post("/pages/{id:int}/delete")
def delete(context: RequestContext, id: int) -> Response:
    """Delete a page."""
    context.one("SELECT id FROM shop_pages WHERE id = ?", id)
    context.write("DELETE FROM shop_pages WHERE id = ?", id)
    context.flash("You deleted the page.")
    return Redirect("/pages")

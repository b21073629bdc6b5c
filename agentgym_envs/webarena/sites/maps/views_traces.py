"""Traces: recorded tracks."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.maps.drawing import MapPin, draw, view_around
from agentgym_envs.webarena.sites.maps.network import MODES, network
from agentgym_envs.webarena.sites.maps.routes import find_route

routes = Routes()
_ON_A_PAGE = 10
VISIBILITY = (("private", "Private"), ("public", "Public"))
SORTS = {
    "newest": ("Newest first", "x.moment DESC"),
    "longest": ("Longest first", "x.length DESC"),
    "shortest": ("Shortest first", "x.length"),
}
_TRACES = (
    "SELECT x.*, a.user, (SELECT group_concat(tag, ', ') FROM (SELECT tag FROM map_trace_tags g WHERE g.trace = x.id "
    "ORDER BY tag)) AS tags FROM map_traces x JOIN map_accounts a ON a.id = x.account"
)
_TAG = re.compile(r"[a-z0-9-]{1,20}")


@routes.get("/traces")
def traces(context: RequestContext) -> Response:
    """List public traces and those of the account, with filters."""
    where, arguments = _filters(context)
    sort = context.query.choice("sort", tuple(SORTS), "newest")
    paging = Paging.of(
        context.query, context.value(f"SELECT COUNT(*) FROM map_traces x WHERE {where}", *arguments), _ON_A_PAGE
    )
    query = f"{_TRACES} WHERE {where} ORDER BY {SORTS[sort][1]}, x.id LIMIT ? OFFSET ?"
    rows = context.rows(query, *arguments, _ON_A_PAGE, paging.skipped)
    tags = [row["tag"] for row in context.rows("SELECT DISTINCT tag FROM map_trace_tags ORDER BY tag LIMIT 40")]
    return context.page(
        "traces.html",
        rows=rows,
        paging=paging,
        sort=sort,
        sorts=[(key, label) for key, (label, _) in SORTS.items()],
        tags=tags,
        modes=list(MODES.items()),
    )


@routes.get("/trace/{number:int}")
def show(context: RequestContext, number: int) -> Response:
    """Show a trace."""
    row = _seen(context, number)
    ends = [context.one("SELECT id, name, x, y FROM map_places WHERE id = ?", row[end]) for end in ("source", "target")]
    start, end = ((one["x"], one["y"]) for one in ends)
    course = find_route(network(context.database), row["mode"], start, end).points
    drawing = draw(context, view_around([*course, start, end]), [MapPin(start, "start"), MapPin(end, "end")], course)
    own = row["account"] == context.account
    return context.page("trace.html", trace=row, ends=ends, own=own, mode=MODES[row["mode"]], drawing=drawing)


@routes.get("/trace/{number:int}/edit")
def edit(context: RequestContext, number: int) -> Response:
    """Show the form for the name, description, tags and visibility of a trace."""
    row = _own(context, number)
    values = {"name": row["name"], "about": row["about"], "tags": row["tags"] or "", "chosen": row["visibility"]}
    return context.page("trace_form.html", trace=row, kinds=VISIBILITY, error="", **values)


@routes.post("/trace/{number:int}/edit")
def save(context: RequestContext, number: int) -> Response:
    """Save a trace and its tags."""
    row = _own(context, number)
    name, about = context.form.text("name", most=80), context.form.text("about", most=300)
    chosen = context.form.choice("visibility", ("private", "public"), row["visibility"])
    typed = context.form.text("tags", most=200)
    tags = list(dict.fromkeys(tag.strip().casefold() for tag in typed.split(",") if tag.strip()))
    error = "" if name else "A trace needs a name."
    if not all(_TAG.fullmatch(tag) for tag in tags) or len(tags) > 8:
        error = "Tags are up to eight words of letters, digits and hyphens, with commas between them."
    if error:
        values = {"name": name, "about": about, "tags": typed, "chosen": chosen}
        return context.page("trace_form.html", 422, trace=row, kinds=VISIBILITY, error=error, **values)
    context.write("UPDATE map_traces SET name = ?, about = ?, visibility = ? WHERE id = ?", name, about, chosen, number)
    context.write("DELETE FROM map_trace_tags WHERE trace = ?", number)
    for tag in tags:
        context.write("INSERT INTO map_trace_tags (trace, tag) VALUES (?, ?)", number, tag)
    context.flash("The trace is saved.")
    return Redirect(f"/trace/{number}")


@routes.post("/trace/{number:int}/delete")
def delete(context: RequestContext, number: int) -> Response:
    """Delete a trace."""
    row = _own(context, number)
    context.write("DELETE FROM map_trace_tags WHERE trace = ?", number)
    context.write("DELETE FROM map_traces WHERE id = ?", number)
    context.flash(f"The trace {row['name']} is deleted.")
    return Redirect("/traces?whose=me")


def _filters(context: RequestContext) -> tuple[str, list[Any]]:
    query = context.query
    wanted: list[tuple[str, Any]] = [
        ("x.mode = ?", query.choice("mode", tuple(MODES))),
        ("x.id IN (SELECT trace FROM map_trace_tags WHERE tag = ?)", query.text("tag", most=20)),
    ]
    if query.choice("whose", ("me",)):
        wanted.append(("x.account = ?", context.require_login()))
    conditions = ["(x.visibility = 'public' OR x.account = ?)", *(one for one, value in wanted if value)]
    return " AND ".join(conditions), [context.account, *(value for _, value in wanted if value)]


def _seen(context: RequestContext, number: int) -> sqlite3.Row:
    row = context.one(f"{_TRACES} WHERE x.id = ?", number)
    context.require(row["visibility"] == "public" or row["account"] == context.account, "This trace is private.")
    return row


def _own(context: RequestContext, number: int) -> sqlite3.Row:
    account = context.require_login()
    row = context.one(f"{_TRACES} WHERE x.id = ?", number)
    context.require(row["account"] == account, "This trace is somebody else's.")
    return row

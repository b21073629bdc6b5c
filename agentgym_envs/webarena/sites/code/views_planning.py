"""Labels and milestones of a project."""

from __future__ import annotations

import re
import sqlite3

from agentgym_envs.webarena.sites.code import lists
from agentgym_envs.webarena.sites.code.access import Project, find_project
from agentgym_envs.webarena.sites.code.attributes import is_day
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
COLOURS = (
    ("#c0392b", "red"), ("#b9770e", "amber"), ("#1e8449", "green"), ("#148f77", "teal"), ("#2471a3", "blue"),
    ("#8e44ad", "purple"), ("#5d6d7e", "grey"), ("#784212", "brown"),
)  # fmt: skip


@routes.get("/{space}/{slug}/-/labels")
def labels(context: RequestContext, space: str, slug: str) -> Response:
    """List the labels with their uses."""
    project = find_project(context, space, slug)
    rows = context.rows(
        """SELECT l.*,
        (SELECT COUNT(*) FROM code_issue_labels x JOIN code_issues i ON i.id = x.issue
            WHERE x.label = l.id AND i.state = 'open') AS issues,
        (SELECT COUNT(*) FROM code_merge_request_labels x JOIN code_merge_requests r ON r.id = x.merge_request
            WHERE x.label = l.id AND r.state = 'open') AS requests
        FROM code_labels l WHERE l.project = ? ORDER BY l.name COLLATE NOCASE""",
        project.id,
    )
    paging = Paging.of(context.query, len(rows), lists.SIZE)
    return context.page("labels.html", project=project, rows=rows[paging.skipped :][: paging.size], paging=paging)


@routes.get("/{space}/{slug}/-/labels/new")
def new_label(context: RequestContext, space: str, slug: str) -> Response:
    """Show the form for a label."""
    return _label_page(context, find_project(context, space, slug, "Reporter"), None)


@routes.post("/{space}/{slug}/-/labels")
def create_label(context: RequestContext, space: str, slug: str) -> Response:
    """Create a label."""
    return _save_label(context, find_project(context, space, slug, "Reporter"), None)


@routes.get("/{space}/{slug}/-/labels/{number:int}/edit")
def edit_label(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Show the form of a label."""
    project = find_project(context, space, slug, "Reporter")
    return _label_page(context, project, _label(context, project, number))


@routes.post("/{space}/{slug}/-/labels/{number:int}")
def save_label(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Save a label, or delete it."""
    project = find_project(context, space, slug, "Reporter")
    label = _label(context, project, number)
    if not context.form.is_checked("delete"):
        return _save_label(context, project, label)
    for table in ("code_issue_labels", "code_merge_request_labels"):
        context.write(f"DELETE FROM {table} WHERE label = ?", number)
    context.write("DELETE FROM code_labels WHERE id = ?", number)
    context.flash(f"Label '{label['name']}' was deleted.")
    return Redirect(f"{project.url}/-/labels")


@routes.get("/{space}/{slug}/-/milestones")
def milestones(context: RequestContext, space: str, slug: str) -> Response:
    """List the milestones with their progress."""
    project = find_project(context, space, slug)
    state = context.query.choice("state", [name for name, _ in lists.STATES], "open")
    query = "SELECT state, COUNT(*) FROM code_milestones WHERE project = ? GROUP BY state"
    counts = {"open": 0, "closed": 0} | dict(map(tuple, context.rows(query, project.id)))
    rows = context.rows(
        """SELECT m.*, COUNT(i.id) AS issues, COALESCE(SUM(i.state = 'closed'), 0) AS closed FROM code_milestones m
        LEFT JOIN code_issues i ON i.milestone = m.id WHERE m.project = ?1 AND ?2 IN (m.state, 'all')
        GROUP BY m.id ORDER BY m.due IS NULL, m.due, m.id""",
        project.id, state,
    )  # fmt: skip
    counts["all"] = sum(counts.values())
    return context.page("milestones.html", project=project, rows=rows, state=state, counts=counts, states=lists.STATES)


@routes.get("/{space}/{slug}/-/milestones/new")
def new_milestone(context: RequestContext, space: str, slug: str) -> Response:
    """Show the form for a milestone."""
    return _milestone_page(context, find_project(context, space, slug, "Reporter"), None)


@routes.post("/{space}/{slug}/-/milestones")
def create_milestone(context: RequestContext, space: str, slug: str) -> Response:
    """Create a milestone."""
    return _save_milestone(context, find_project(context, space, slug, "Reporter"), None)


@routes.get("/{space}/{slug}/-/milestones/{number:int}")
def milestone(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Show a milestone with its issues and merge requests."""
    project = find_project(context, space, slug)
    row = _milestone(context, project, number)
    issues = context.rows(
        """SELECT * FROM code_issues WHERE milestone = ? AND (NOT confidential OR ?)
        ORDER BY state DESC, number DESC""",
        row["id"], project.is_at_least("Reporter"),
    )  # fmt: skip
    requests = context.rows("SELECT * FROM code_merge_requests WHERE milestone = ? ORDER BY number DESC", row["id"])
    return context.page("milestone.html", project=project, milestone=row, issues=issues, requests=requests)


@routes.get("/{space}/{slug}/-/milestones/{number:int}/edit")
def edit_milestone(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Show the form of a milestone."""
    project = find_project(context, space, slug, "Reporter")
    return _milestone_page(context, project, _milestone(context, project, number))


@routes.post("/{space}/{slug}/-/milestones/{number:int}")
def save_milestone(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Save, close, reopen or delete a milestone, as the button says."""
    project = find_project(context, space, slug, "Reporter")
    row = _milestone(context, project, number)
    action = context.form.choice("action", ("close", "reopen", "delete"))
    if not action:
        return _save_milestone(context, project, row)
    if action == "delete":
        for table in ("code_issues", "code_merge_requests"):
            context.write(f"UPDATE {table} SET milestone = NULL WHERE milestone = ?", number)
        context.write("DELETE FROM code_milestones WHERE id = ?", number)
        context.flash(f"Milestone '{row['title']}' was deleted.")
        return Redirect(f"{project.url}/-/milestones")
    state = "closed" if action == "close" else "open"
    context.write("UPDATE code_milestones SET state = ? WHERE id = ?", state, number)
    context.flash(f"The milestone is {state} now.")
    return Redirect(f"{project.url}/-/milestones/{number}")


def _label(context: RequestContext, project: Project, number: int) -> sqlite3.Row:
    return context.one("SELECT * FROM code_labels WHERE id = ? AND project = ?", number, project.id)


def _milestone(context: RequestContext, project: Project, number: int) -> sqlite3.Row:
    return context.one("SELECT * FROM code_milestones WHERE id = ? AND project = ?", number, project.id)


def _save_label(context: RequestContext, project: Project, label: sqlite3.Row | None) -> Response:
    form, number = context.form, label["id"] if label else 0
    name, colour = form.text("name", most=100), form.text("colour", most=10)
    if not name or "," in name:
        return _label_page(context, project, label, "A label needs a name, without commas.")
    if not _COLOUR.fullmatch(colour):
        return _label_page(context, project, label, "A colour looks like #2471a3.")
    query = "SELECT 1 FROM code_labels WHERE project = ? AND name = ? COLLATE NOCASE AND id <> ?"
    if context.row(query, project.id, name, number):
        return _label_page(context, project, label, f"There is already a label '{name}'.")
    values = (name, colour.lower(), form.text("description", most=200))
    if label:
        context.write("UPDATE code_labels SET name = ?, colour = ?, description = ? WHERE id = ?", *values, number)
    else:
        query = "INSERT INTO code_labels (name, colour, description, project) VALUES (?, ?, ?, ?)"
        context.write(query, *values, project.id)
    context.flash(f"Label '{name}' was {'updated' if label else 'created'}.")
    return Redirect(f"{project.url}/-/labels")


def _save_milestone(context: RequestContext, project: Project, row: sqlite3.Row | None) -> Response:
    form, number = context.form, row["id"] if row else 0
    title, start, due = form.text("title", most=100), form.text("start"), form.text("due")
    if error := _milestone_problem(context, project, title, number):
        return _milestone_page(context, project, row, error)
    values = (title, form.text("description", most=2000), start or None, due or None)
    if row:
        query = "UPDATE code_milestones SET title = ?, description = ?, start = ?, due = ? WHERE id = ?"
        context.write(query, *values, number)
    else:
        query = "INSERT INTO code_milestones (title, description, start, due, project) VALUES (?, ?, ?, ?, ?)"
        number = context.write(query, *values, project.id)
    context.flash(f"Milestone '{title}' was {'updated' if row else 'created'}.")
    return Redirect(f"{project.url}/-/milestones/{number}")


def _milestone_problem(context: RequestContext, project: Project, title: str, number: int) -> str:
    start, due = context.form.text("start"), context.form.text("due")
    if not title:
        return "A milestone needs a title."
    if any(day and not is_day(day) for day in (start, due)):
        return "A date looks like 2026-03-31."
    if start and due and due < start:
        return "A milestone cannot be due before it starts."
    query = "SELECT 1 FROM code_milestones WHERE project = ? AND title = ? COLLATE NOCASE AND id <> ?"
    return f"There is already a milestone '{title}'." if context.row(query, project.id, title, number) else ""


def _label_page(context: RequestContext, project: Project, label: sqlite3.Row | None, error: str = "") -> Response:
    values = {name: label[name] if label else "" for name in ("name", "colour", "description")}
    if error:
        values = {name: context.form.text(name) for name in values}
    return context.page(
        "label_edit.html", 422 if error else 200, project=project, label=label, values=values, error=error,
        colours=COLOURS,
    )  # fmt: skip


def _milestone_page(context: RequestContext, project: Project, row: sqlite3.Row | None, error: str = "") -> Response:
    values = {name: row[name] if row else "" for name in ("title", "description", "start", "due")}
    if error:
        values = {name: context.form.text(name) for name in values}
    return context.page(
        "milestone_edit.html", 422 if error else 200, project=project, milestone=row, values=values, error=error
    )

"""Issues of a project."""

from __future__ import annotations

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import attributes, lists
from agentgym_envs.webarena.sites.code.access import Project, find_project, require_participant, require_role
from agentgym_envs.webarena.sites.code.lists import QueryConditions
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_SETTABLE = ("assignee", "milestone", "weight", "due", "confidential")
MOST_TITLE = 255


@routes.get("/{space}/{slug}/-/issues")
def index(context: RequestContext, space: str, slug: str) -> Response:
    """List the issues, with filters and sorting."""
    project = find_project(context, space, slug)
    if again := lists.without_empty_fields(context):
        return again
    where = QueryConditions(context.account)
    where.add("i.project = {}", project.id)
    listed = lists.issues(context, where, include_confidential=project.is_at_least("Reporter"))
    return context.page(
        "issues.html", project=project, listed=listed, states=lists.STATES, orders=lists.ISSUE_ORDERS,
        kind="issues", choices=attributes.choices(context, project), **lists.filters(context, project.id, "issue"),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/issues/new")
def new(context: RequestContext, space: str, slug: str) -> Response:
    """Show the form for an issue."""
    project = find_project(context, space, slug)
    require_participant(context, project)
    return _form_page(context, project)


@routes.post("/{space}/{slug}/-/issues")
def create(context: RequestContext, space: str, slug: str) -> Response:
    """Create an issue. Attributes other than title, text and confidentiality require the role of reporter."""
    project = find_project(context, space, slug)
    author, title = require_participant(context, project), context.form.text("title", most=MOST_TITLE)
    if error := problem(context):
        return _form_page(context, project, error)
    values = {"project": project.id, "number": attributes.next_number(context, "issue", project), "title": title}
    values |= {"body": context.form.text("body"), "author": author, "created": stamp()}
    known = _SETTABLE if project.may("Reporter") else ("confidential",)
    values |= attributes.chosen(context, project, known)
    issue = context.insert("code_issues", values)
    if project.may("Reporter"):
        attributes.set_labels(context, project, "issue", issue)
    context.flash("The issue was created.")
    return Redirect(f"{project.url}/-/issues/{values['number']}")


@routes.get("/{space}/{slug}/-/issues/{number:int}")
def show(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Show an issue with its comments."""
    project = find_project(context, space, slug)
    issue = attributes.details(context, project, "issue", number)
    requests = context.rows("SELECT * FROM code_merge_requests WHERE closes = ? ORDER BY id", issue["id"])
    return context.page(
        "issue.html", project=project, item=issue, kind="issues", requests=requests,
        labels=attributes.labels_of(context, "issue", issue["id"]),
        comments=attributes.comments_of(context, "issue", issue["id"]),
        choices=attributes.choices(context, project), may_edit=may_edit(context, project, issue["author"]),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/issues/{number:int}/edit")
def edit(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Show the form for the title and text of an issue."""
    project = find_project(context, space, slug)
    issue = attributes.details(context, project, "issue", number)
    context.require(may_edit(context, project, issue["author"]))
    return context.page("text_edit.html", project=project, item=issue, kind="issues", error="")


@routes.post("/{space}/{slug}/-/issues/{number:int}/edit")
def save(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Save the title and text."""
    project = find_project(context, space, slug)
    issue = attributes.details(context, project, "issue", number)
    context.require(may_edit(context, project, issue["author"]))
    if error := problem(context):
        return context.page("text_edit.html", 422, project=project, item=issue, kind="issues", error=error)
    values = {"title": context.form.text("title", most=MOST_TITLE), "body": context.form.text("body")}
    attributes.update(context, "issue", issue["id"], values)
    context.flash("The issue was updated.")
    return Redirect(f"{project.url}/-/issues/{number}")


@routes.post("/{space}/{slug}/-/issues/{number:int}/state")
def change_state(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Close an issue, or reopen it."""
    project = find_project(context, space, slug)
    issue = attributes.details(context, project, "issue", number)
    context.require(may_edit(context, project, issue["author"]), "You may not change this issue.")
    set_state(context, issue["id"], closed=context.form.text("to") == "closed")
    context.flash("The issue was closed." if context.form.text("to") == "closed" else "The issue was opened again.")
    return Redirect(f"{project.url}/-/issues/{number}")


@routes.post("/{space}/{slug}/-/issues/{number:int}/set")
def set_attribute(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Set the attribute in the sidebar that the form's field `what` names."""
    project = find_project(context, space, slug)
    require_role(context, project, "Reporter")
    issue = attributes.details(context, project, "issue", number)
    what = context.form.choice("what", ("labels", *_SETTABLE))
    if what == "due" and context.form.text("due") and not attributes.is_day(context.form.text("due")):
        context.flash("A due date looks like 2026-03-31.", "error")
    elif what == "labels":
        attributes.set_labels(context, project, "issue", issue["id"])
    elif what:
        attributes.update(context, "issue", issue["id"], attributes.chosen(context, project, [what]))
    return Redirect(f"{project.url}/-/issues/{number}")


@routes.post("/{space}/{slug}/-/issues/{number:int}/delete")
def delete(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Delete an issue permanently; only owners may."""
    project = find_project(context, space, slug, "Owner")
    issue = attributes.details(context, project, "issue", number)
    for table in ("code_comments", "code_issue_labels", "code_todos"):
        context.write(f"DELETE FROM {table} WHERE issue = ?", issue["id"])
    context.write("UPDATE code_merge_requests SET closes = NULL WHERE closes = ?", issue["id"])
    context.write("DELETE FROM code_issues WHERE id = ?", issue["id"])
    context.flash(f"Issue #{number} was deleted.")
    return Redirect(f"{project.url}/-/issues")


def may_edit(context: RequestContext, project: Project, author: int) -> bool:
    """Return True if the visitor is the author or a reporter, and the project is not archived."""
    return project.may("Reporter") or bool(context.account and author == context.account and not project.archived)


def set_state(context: RequestContext, issue: int, *, closed: bool) -> None:
    """Close or reopen an issue. Closing a closed issue has no effect."""
    if closed:
        query = "UPDATE code_issues SET state = 'closed', closed = ?, closed_by = ? WHERE id = ? AND state = 'open'"
        context.write(query, stamp(), context.account, issue)
    else:
        context.write("UPDATE code_issues SET state = 'open', closed = NULL, closed_by = NULL WHERE id = ?", issue)


def problem(context: RequestContext) -> str:
    """Return an error message for the form of an issue or merge request, or ""."""
    if not context.form.text("title"):
        return "A title is needed."
    due = context.form.text("due")
    return "A due date looks like 2026-03-31." if due and not attributes.is_day(due) else ""


def _form_page(context: RequestContext, project: Project, error: str = "") -> Response:
    return context.page(
        "issue_new.html", 422 if error else 200, project=project, error=error,
        form=context.form if error else context.query, choices=attributes.choices(context, project),
    )  # fmt: skip

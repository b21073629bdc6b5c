"""Merge requests of a project: list, creation, details and changes."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import attributes, diffs, lists, merging, repository
from agentgym_envs.webarena.sites.code.access import Project, find_project, require_role
from agentgym_envs.webarena.sites.code.lists import QueryConditions
from agentgym_envs.webarena.sites.code.members import people_of
from agentgym_envs.webarena.sites.code.views_issues import MOST_TITLE
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_SETTABLE = ("assignee", "milestone")


@routes.get("/{space}/{slug}/-/merge_requests")
def index(context: RequestContext, space: str, slug: str) -> Response:
    """List the merge requests, with filters and sorting."""
    project = find_project(context, space, slug)
    if again := lists.without_empty_fields(context):
        return again
    where = QueryConditions(context.account)
    where.add("i.project = {}", project.id)
    return context.page(
        "issues.html", project=project, listed=lists.requests(context, where), states=lists.REQUEST_STATES,
        orders=lists.REQUEST_ORDERS, kind="merge_requests", choices=attributes.choices(context, project),
        **lists.filters(context, project.id, "merge_request"),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/merge_requests/new")
def new(context: RequestContext, space: str, slug: str) -> Response:
    """Show the forms for a merge request: first the branches, then the details."""
    project = find_project(context, space, slug, "Developer")
    branches = repository.branches(context, project)
    source, target = (context.query.text(end, most=100) for end in ("source", "target"))
    by_name = {row["name"]: row for row in branches}
    if not source:
        return context.page("request_branches.html", project=project, branches=branches, error="")
    if error := _branch_problem(context, project, by_name.get(source), by_name.get(target)):
        return context.page("request_branches.html", 422, project=project, branches=branches, error=error)
    return _form_page(context, project, by_name[source], by_name[target])


@routes.post("/{space}/{slug}/-/merge_requests")
def create(context: RequestContext, space: str, slug: str) -> Response:
    """Create a merge request."""
    project, form = find_project(context, space, slug, "Developer"), context.form
    source, target = (repository.branch_named(context, project, form.text(end)) for end in ("source", "target"))
    error = _branch_problem(context, project, source, target)
    if error or not form.text("title"):
        return _form_page(context, project, source, target, error or "A title is needed.")
    number = attributes.next_number(context, "merge_request", project)
    values: dict[str, Any] = {"project": project.id, "number": number, "title": form.text("title", most=MOST_TITLE)}
    values |= {"body": form.text("body"), "source": source["name"], "target": target["name"], "author": context.account}
    values |= {"draft": int(form.is_checked("draft")), "created": stamp()}
    values |= attributes.chosen(context, project, _SETTABLE)
    values["closes"] = attributes.closes(context, project, values["body"])
    key = context.insert("code_merge_requests", values)
    attributes.set_labels(context, project, "merge_request", key)
    _set_reviewers(context, project, key)
    context.flash("The merge request was created.")
    return Redirect(f"{project.url}/-/merge_requests/{number}")


@routes.get("/{space}/{slug}/-/merge_requests/{number:int}")
def show(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Show a merge request with its comments and mergeability."""
    project = find_project(context, space, slug)
    request = attributes.details(context, project, "merge_request", number)
    source, target = merging.branches_of(context, project, request)
    plan = merging.plan(context, source, target) if source and target and request["state"] == "open" else None
    closed = context.row("SELECT * FROM code_issues WHERE id = ?", request["closes"]) if request["closes"] else None
    return context.page(
        "request.html", comments=attributes.comments_of(context, "merge_request", request["id"]), plan=plan,
        labels=attributes.labels_of(context, "merge_request", request["id"]), closed=closed,
        choices=attributes.choices(context, project), has_source=source is not None,
        guarded=bool(target and target["protected"]), **_head(context, project, request, "overview"),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/merge_requests/{number:int}/commits")
def commits(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """List its commits."""
    project = find_project(context, space, slug)
    request = attributes.details(context, project, "merge_request", number)
    source, _ = merging.branches_of(context, project, request)
    rows = merging.commits_of(context, request, source)[:30]
    return context.page("request_commits.html", rows=rows, **_head(context, project, request, "commits"))


@routes.get("/{space}/{slug}/-/merge_requests/{number:int}/diffs")
def changes(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Show its diffs."""
    project = find_project(context, space, slug)
    request = attributes.details(context, project, "merge_request", number)
    source, target = merging.branches_of(context, project, request)
    if request["state"] == "open" and source and target:
        by_name = merging.plan(context, source, target).changes
    else:
        by_name = diffs.changes_of(reversed(merging.commits_of(context, request, source)))
    return context.page(
        "request_diffs.html", files=diffs.file_diffs(context, by_name), **_head(context, project, request, "diffs")
    )


@routes.get("/{space}/{slug}/-/merge_requests/{number:int}/edit")
def edit(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Show the form for title and text."""
    project = find_project(context, space, slug)
    request = attributes.details(context, project, "merge_request", number)
    context.require(may_change(context, project, request))
    return context.page("text_edit.html", project=project, item=request, kind="merge_requests", error="")


@routes.post("/{space}/{slug}/-/merge_requests/{number:int}/edit")
def save(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Save title and text."""
    project = find_project(context, space, slug)
    request = attributes.details(context, project, "merge_request", number)
    context.require(may_change(context, project, request))
    title, body = context.form.text("title", most=MOST_TITLE), context.form.text("body")
    if not title:
        error = "A title is needed."
        return context.page("text_edit.html", 422, project=project, item=request, kind="merge_requests", error=error)
    values = {"title": title, "body": body, "closes": attributes.closes(context, project, body) or request["closes"]}
    attributes.update(context, "merge_request", request["id"], values)
    context.flash("The merge request was updated.")
    return Redirect(f"{project.url}/-/merge_requests/{number}")


@routes.post("/{space}/{slug}/-/merge_requests/{number:int}/set")
def set_attribute(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Set the attribute in the sidebar that the form's field `what` names."""
    project = find_project(context, space, slug)
    require_role(context, project, "Developer")
    request = attributes.details(context, project, "merge_request", number)
    what = context.form.choice("what", ("labels", "reviewers", *_SETTABLE))
    if what == "labels":
        attributes.set_labels(context, project, "merge_request", request["id"])
    elif what == "reviewers":
        _set_reviewers(context, project, request["id"])
    elif what:
        attributes.update(context, "merge_request", request["id"], attributes.chosen(context, project, [what]))
    return Redirect(f"{project.url}/-/merge_requests/{number}")


def _head(context: RequestContext, project: Project, request: sqlite3.Row, tab: str) -> dict[str, Any]:
    """Return the values for all three tabs of a merge request."""
    reviewers = context.rows(
        """SELECT a.*, v.approved FROM code_reviewers v JOIN code_accounts a ON a.id = v.account
        WHERE v.merge_request = ? ORDER BY a.name""",
        request["id"],
    )
    return {
        "project": project, "item": request, "kind": "merge_requests", "tab": tab, "reviewers": reviewers,
        "may_edit": may_change(context, project, request),
    }  # fmt: skip


def may_change(context: RequestContext, project: Project, request: sqlite3.Row) -> bool:
    """Return True if the visitor may change or close a merge request, as its author or as a developer."""
    own = bool(context.account and request["author"] == context.account)
    return project.may("Developer") or (own and not project.archived)


def _branch_problem(
    context: RequestContext, project: Project, source: sqlite3.Row | None, target: sqlite3.Row | None
) -> str:
    if source is None or target is None:
        return "Choose two branches that there are."
    if source["id"] == target["id"]:
        return "Choose two different branches."
    query = "SELECT number FROM code_merge_requests WHERE project = ? AND source = ? AND target = ? AND state = 'open'"
    if other := context.row(query, project.id, source["name"], target["name"]):
        return f"There is already an open merge request for these branches: !{other['number']}."
    return "" if merging.plan(context, source, target).blobs else "There is nothing to merge between these branches."


def _set_reviewers(context: RequestContext, project: Project, request: int) -> None:
    """Set the reviewers to those checked in the form. Existing approvals are kept."""
    people = {row["id"] for row in people_of(context, project)}
    wanted = people & set(context.form.numbers("reviewer"))
    for row in context.rows("SELECT account FROM code_reviewers WHERE merge_request = ?", request):
        if row["account"] not in wanted:
            query = "DELETE FROM code_reviewers WHERE merge_request = ? AND account = ?"
            context.write(query, request, row["account"])
    for account in sorted(wanted):
        query = "INSERT OR IGNORE INTO code_reviewers (merge_request, account, approved) VALUES (?, ?, 0)"
        context.write(query, request, account)


def _form_page(
    context: RequestContext, project: Project, source: sqlite3.Row, target: sqlite3.Row, error: str = ""
) -> Response:
    made = repository.own_commits(context, source["id"])
    title = context.form.text("title") if error else made[-1]["message"].partition("\n")[0] if made else source["name"]
    return context.page(
        "request_new.html", 422 if error else 200, project=project, source=source, target=target, error=error,
        title=title, form=context.form, choices=attributes.choices(context, project), commits=made[:10],
    )  # fmt: skip

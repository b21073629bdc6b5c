"""Merge requests of a project: their list, new ones, and what each says and changes."""

from __future__ import annotations

import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import attributes, diffs, lists, merging, repository
from agentgym_envs.webarena.sites.code.access import Project, find_project, must_have
from agentgym_envs.webarena.sites.code.lists import Where
from agentgym_envs.webarena.sites.code.members import people_of
from agentgym_envs.webarena.sites.code.views_issues import MOST_TITLE
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_SETTABLE = ("assignee", "milestone")


@routes.get("/{space}/{slug}/-/merge_requests")
def index(visit: RequestContext, space: str, slug: str) -> Response:
    """The merge requests, filtered and in order."""
    project = find_project(visit, space, slug)
    if again := lists.tidied(visit):
        return again
    where = Where(visit.account)
    where.add("i.project = {}", project.id)
    return visit.page(
        "issues.html", project=project, listed=lists.requests(visit, where), states=lists.REQUEST_STATES,
        orders=lists.REQUEST_ORDERS, kind="merge_requests", choices=attributes.choices(visit, project),
        **lists.filters(visit, project.id, "merge_request"),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/merge_requests/new")
def new(visit: RequestContext, space: str, slug: str) -> Response:
    """The forms for a new merge request: first its branches, then what it says."""
    project = find_project(visit, space, slug, "Developer")
    branches = repository.branches(visit, project)
    source, target = (visit.query.text(end, most=100) for end in ("source", "target"))
    found = {row["name"]: row for row in branches}
    if not source:
        return visit.page("request_branches.html", project=project, branches=branches, wrong="")
    if wrong := _branch_problem(visit, project, found.get(source), found.get(target)):
        return visit.page("request_branches.html", 422, project=project, branches=branches, wrong=wrong)
    return _form_page(visit, project, found[source], found[target])


@routes.post("/{space}/{slug}/-/merge_requests")
def create(visit: RequestContext, space: str, slug: str) -> Response:
    """Open a merge request."""
    project, form = find_project(visit, space, slug, "Developer"), visit.form
    source, target = (repository.branch_named(visit, project, form.text(end)) for end in ("source", "target"))
    wrong = _branch_problem(visit, project, source, target)
    if wrong or not form.text("title"):
        return _form_page(visit, project, source, target, wrong or "A title is needed.")
    number = attributes.next_number(visit, "merge_request", project)
    values: dict[str, Any] = {"project": project.id, "number": number, "title": form.text("title", most=MOST_TITLE)}
    values |= {"body": form.text("body"), "source": source["name"], "target": target["name"], "author": visit.account}
    values |= {"draft": int(form.ticked("draft")), "created": stamp()}
    values |= attributes.chosen(visit, project, _SETTABLE)
    values["closes"] = attributes.closes(visit, project, values["body"])
    key = visit.insert("code_merge_requests", values)
    attributes.set_labels(visit, project, "merge_request", key)
    _set_reviewers(visit, project, key)
    visit.say("The merge request was created.")
    return Redirect(f"{project.url}/-/merge_requests/{number}")


@routes.get("/{space}/{slug}/-/merge_requests/{number:int}")
def show(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """A merge request with what is said about it, and whether it can be merged."""
    project = find_project(visit, space, slug)
    request = attributes.details(visit, project, "merge_request", number)
    source, target = merging.branches_of(visit, project, request)
    plan = merging.plan(visit, source, target) if source and target and request["state"] == "open" else None
    closed = visit.row("SELECT * FROM code_issues WHERE id = ?", request["closes"]) if request["closes"] else None
    return visit.page(
        "request.html", comments=attributes.comments_of(visit, "merge_request", request["id"]), plan=plan,
        labels=attributes.labels_of(visit, "merge_request", request["id"]), closed=closed,
        choices=attributes.choices(visit, project), has_source=source is not None,
        guarded=bool(target and target["protected"]), **_head(visit, project, request, "overview"),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/merge_requests/{number:int}/commits")
def commits(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """Its commits."""
    project = find_project(visit, space, slug)
    request = attributes.details(visit, project, "merge_request", number)
    source, _ = merging.branches_of(visit, project, request)
    rows = merging.commits_of(visit, request, source)[:30]
    return visit.page("request_commits.html", rows=rows, **_head(visit, project, request, "commits"))


@routes.get("/{space}/{slug}/-/merge_requests/{number:int}/diffs")
def changes(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """What it changes."""
    project = find_project(visit, space, slug)
    request = attributes.details(visit, project, "merge_request", number)
    source, target = merging.branches_of(visit, project, request)
    if request["state"] == "open" and source and target:
        found = merging.plan(visit, source, target).changes
    else:
        found = diffs.changes_of(reversed(merging.commits_of(visit, request, source)))
    return visit.page(
        "request_diffs.html", files=diffs.file_diffs(visit, found), **_head(visit, project, request, "diffs")
    )


@routes.get("/{space}/{slug}/-/merge_requests/{number:int}/edit")
def edit(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """The form with title and text."""
    project = find_project(visit, space, slug)
    request = attributes.details(visit, project, "merge_request", number)
    visit.must(may_change(visit, project, request))
    return visit.page("text_edit.html", project=project, item=request, kind="merge_requests", wrong="")


@routes.post("/{space}/{slug}/-/merge_requests/{number:int}/edit")
def save(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """Change title and text."""
    project = find_project(visit, space, slug)
    request = attributes.details(visit, project, "merge_request", number)
    visit.must(may_change(visit, project, request))
    title, body = visit.form.text("title", most=MOST_TITLE), visit.form.text("body")
    if not title:
        wrong = "A title is needed."
        return visit.page("text_edit.html", 422, project=project, item=request, kind="merge_requests", wrong=wrong)
    values = {"title": title, "body": body, "closes": attributes.closes(visit, project, body) or request["closes"]}
    attributes.update(visit, "merge_request", request["id"], values)
    visit.say("The merge request was updated.")
    return Redirect(f"{project.url}/-/merge_requests/{number}")


@routes.post("/{space}/{slug}/-/merge_requests/{number:int}/set")
def set_attribute(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """Change what the side of a merge request tells: one thing, which the form's field `what` names."""
    project = find_project(visit, space, slug)
    must_have(visit, project, "Developer")
    request = attributes.details(visit, project, "merge_request", number)
    what = visit.form.choice("what", ("labels", "reviewers", *_SETTABLE))
    if what == "labels":
        attributes.set_labels(visit, project, "merge_request", request["id"])
    elif what == "reviewers":
        _set_reviewers(visit, project, request["id"])
    elif what:
        attributes.update(visit, "merge_request", request["id"], attributes.chosen(visit, project, [what]))
    return Redirect(f"{project.url}/-/merge_requests/{number}")


def _head(visit: RequestContext, project: Project, request: sqlite3.Row, tab: str) -> dict[str, Any]:
    """What all three tabs of a merge request tell."""
    reviewers = visit.rows(
        """SELECT a.*, v.approved FROM code_reviewers v JOIN code_accounts a ON a.id = v.account
        WHERE v.merge_request = ? ORDER BY a.name""",
        request["id"],
    )
    return {
        "project": project, "item": request, "kind": "merge_requests", "tab": tab, "reviewers": reviewers,
        "may_edit": may_change(visit, project, request),
    }  # fmt: skip


def may_change(visit: RequestContext, project: Project, request: sqlite3.Row) -> bool:
    """Whether the visitor may change or close a merge request: developers may, and who opened it."""
    own = bool(visit.account and request["author"] == visit.account)
    return project.may("Developer") or (own and not project.archived)


def _branch_problem(
    visit: RequestContext, project: Project, source: sqlite3.Row | None, target: sqlite3.Row | None
) -> str:
    if source is None or target is None:
        return "Choose two branches that there are."
    if source["id"] == target["id"]:
        return "Choose two different branches."
    query = "SELECT number FROM code_merge_requests WHERE project = ? AND source = ? AND target = ? AND state = 'open'"
    if other := visit.row(query, project.id, source["name"], target["name"]):
        return f"There is already an open merge request for these branches: !{other['number']}."
    return "" if merging.plan(visit, source, target).blobs else "There is nothing to merge between these branches."


def _set_reviewers(visit: RequestContext, project: Project, request: int) -> None:
    """Make reviewers of those ticked in the form; who was one already keeps what they approved."""
    people = {row["id"] for row in people_of(visit, project)}
    wanted = people & set(visit.form.numbers("reviewer"))
    for row in visit.rows("SELECT account FROM code_reviewers WHERE merge_request = ?", request):
        if row["account"] not in wanted:
            query = "DELETE FROM code_reviewers WHERE merge_request = ? AND account = ?"
            visit.write(query, request, row["account"])
    for account in sorted(wanted):
        query = "INSERT OR IGNORE INTO code_reviewers (merge_request, account, approved) VALUES (?, ?, 0)"
        visit.write(query, request, account)


def _form_page(
    visit: RequestContext, project: Project, source: sqlite3.Row, target: sqlite3.Row, wrong: str = ""
) -> Response:
    made = repository.own_commits(visit, source["id"])
    title = visit.form.text("title") if wrong else made[-1]["message"].partition("\n")[0] if made else source["name"]
    return visit.page(
        "request_new.html", 422 if wrong else 200, project=project, source=source, target=target, wrong=wrong,
        title=title, form=visit.form, choices=attributes.choices(visit, project), commits=made[:10],
    )  # fmt: skip

"""Issues of a project."""

from __future__ import annotations

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import attributes, lists
from agentgym_envs.webarena.sites.code.access import Project, find_project, must_have, must_take_part
from agentgym_envs.webarena.sites.code.lists import Where
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_SETTABLE = ("assignee", "milestone", "weight", "due", "confidential")
MOST_TITLE = 255


@routes.get("/{space}/{slug}/-/issues")
def index(visit: RequestContext, space: str, slug: str) -> Response:
    """The issues, filtered and in order."""
    project = find_project(visit, space, slug)
    if again := lists.tidied(visit):
        return again
    where = Where(visit.account)
    where.add("i.project = {}", project.id)
    listed = lists.issues(visit, where, secret=project.is_at_least("Reporter"))
    return visit.page(
        "issues.html", project=project, listed=listed, states=lists.STATES, orders=lists.ISSUE_ORDERS,
        kind="issues", choices=attributes.choices(visit, project), **lists.filters(visit, project.id, "issue"),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/issues/new")
def new(visit: RequestContext, space: str, slug: str) -> Response:
    """The form for a new issue."""
    project = find_project(visit, space, slug)
    must_take_part(visit, project)
    return _form_page(visit, project)


@routes.post("/{space}/{slug}/-/issues")
def create(visit: RequestContext, space: str, slug: str) -> Response:
    """Open an issue. Only who is at least Reporter may say more than title and text."""
    project = find_project(visit, space, slug)
    author, title = must_take_part(visit, project), visit.form.text("title", most=MOST_TITLE)
    if wrong := problem(visit):
        return _form_page(visit, project, wrong)
    values = {"project": project.id, "number": attributes.next_number(visit, "issue", project), "title": title}
    values |= {"body": visit.form.text("body"), "author": author, "created": stamp()}
    known = _SETTABLE if project.may("Reporter") else ("confidential",)
    values |= attributes.chosen(visit, project, known)
    issue = visit.insert("code_issues", values)
    if project.may("Reporter"):
        attributes.set_labels(visit, project, "issue", issue)
    visit.say("The issue was created.")
    return Redirect(f"{project.url}/-/issues/{values['number']}")


@routes.get("/{space}/{slug}/-/issues/{number:int}")
def show(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """An issue with what is said about it."""
    project = find_project(visit, space, slug)
    issue = attributes.details(visit, project, "issue", number)
    requests = visit.rows("SELECT * FROM code_merge_requests WHERE closes = ? ORDER BY id", issue["id"])
    return visit.page(
        "issue.html", project=project, item=issue, kind="issues", requests=requests,
        labels=attributes.labels_of(visit, "issue", issue["id"]),
        comments=attributes.comments_of(visit, "issue", issue["id"]),
        choices=attributes.choices(visit, project), may_edit=may_edit(visit, project, issue["author"]),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/issues/{number:int}/edit")
def edit(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """The form with title and text of an issue."""
    project = find_project(visit, space, slug)
    issue = attributes.details(visit, project, "issue", number)
    visit.must(may_edit(visit, project, issue["author"]))
    return visit.page("text_edit.html", project=project, item=issue, kind="issues", wrong="")


@routes.post("/{space}/{slug}/-/issues/{number:int}/edit")
def save(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """Change title and text."""
    project = find_project(visit, space, slug)
    issue = attributes.details(visit, project, "issue", number)
    visit.must(may_edit(visit, project, issue["author"]))
    if wrong := problem(visit):
        return visit.page("text_edit.html", 422, project=project, item=issue, kind="issues", wrong=wrong)
    values = {"title": visit.form.text("title", most=MOST_TITLE), "body": visit.form.text("body")}
    attributes.update(visit, "issue", issue["id"], values)
    visit.say("The issue was updated.")
    return Redirect(f"{project.url}/-/issues/{number}")


@routes.post("/{space}/{slug}/-/issues/{number:int}/state")
def change_state(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """Close an issue, or open it again."""
    project = find_project(visit, space, slug)
    issue = attributes.details(visit, project, "issue", number)
    visit.must(may_edit(visit, project, issue["author"]), "You may not change this issue.")
    set_state(visit, issue["id"], closed=visit.form.text("to") == "closed")
    visit.say("The issue was closed." if visit.form.text("to") == "closed" else "The issue was opened again.")
    return Redirect(f"{project.url}/-/issues/{number}")


@routes.post("/{space}/{slug}/-/issues/{number:int}/set")
def set_attribute(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """Change what the side of an issue tells: one thing, which the form's field `what` names."""
    project = find_project(visit, space, slug)
    must_have(visit, project, "Reporter")
    issue = attributes.details(visit, project, "issue", number)
    what = visit.form.choice("what", ("labels", *_SETTABLE))
    if what == "due" and visit.form.text("due") and not attributes.is_day(visit.form.text("due")):
        visit.say("A due date looks like 2026-03-31.", "error")
    elif what == "labels":
        attributes.set_labels(visit, project, "issue", issue["id"])
    elif what:
        attributes.update(visit, "issue", issue["id"], attributes.chosen(visit, project, [what]))
    return Redirect(f"{project.url}/-/issues/{number}")


@routes.post("/{space}/{slug}/-/issues/{number:int}/delete")
def delete(visit: RequestContext, space: str, slug: str, number: int) -> Response:
    """Delete an issue for good, which only owners may."""
    project = find_project(visit, space, slug, "Owner")
    issue = attributes.details(visit, project, "issue", number)
    for table in ("code_comments", "code_issue_labels", "code_todos"):
        visit.write(f"DELETE FROM {table} WHERE issue = ?", issue["id"])
    visit.write("UPDATE code_merge_requests SET closes = NULL WHERE closes = ?", issue["id"])
    visit.write("DELETE FROM code_issues WHERE id = ?", issue["id"])
    visit.say(f"Issue #{number} was deleted.")
    return Redirect(f"{project.url}/-/issues")


def may_edit(visit: RequestContext, project: Project, author: int) -> bool:
    """Whether the visitor may change what somebody wrote: its author and reporters may, unless all is archived."""
    return project.may("Reporter") or bool(visit.account and author == visit.account and not project.archived)


def set_state(visit: RequestContext, issue: int, *, closed: bool) -> None:
    """Close an issue or open it; one that is so already stays as it is."""
    if closed:
        query = "UPDATE code_issues SET state = 'closed', closed = ?, closed_by = ? WHERE id = ? AND state = 'open'"
        visit.write(query, stamp(), visit.account, issue)
    else:
        visit.write("UPDATE code_issues SET state = 'open', closed = NULL, closed_by = NULL WHERE id = ?", issue)


def problem(visit: RequestContext) -> str:
    """What is wrong with a form for an issue or merge request; "" if nothing is."""
    if not visit.form.text("title"):
        return "A title is needed."
    due = visit.form.text("due")
    return "A due date looks like 2026-03-31." if due and not attributes.is_day(due) else ""


def _form_page(visit: RequestContext, project: Project, wrong: str = "") -> Response:
    return visit.page(
        "issue_new.html", 422 if wrong else 200, project=project, wrong=wrong,
        form=visit.form if wrong else visit.query, choices=attributes.choices(visit, project),
    )  # fmt: skip

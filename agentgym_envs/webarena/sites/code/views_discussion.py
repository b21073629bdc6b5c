"""What is said about issues and merge requests."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import attributes
from agentgym_envs.webarena.sites.code.access import find_project, must_take_part
from agentgym_envs.webarena.sites.code.attributes import KINDS
from agentgym_envs.webarena.sites.code.views_issues import may_edit, set_state
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Missing, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()


@routes.post("/{space}/{slug}/-/{kind}/{number:int}/comments")
def add(visit: RequestContext, space: str, slug: str, kind: str, number: int) -> Response:
    """Say something; and close or open the issue with it, if the button says so."""
    if kind not in KINDS:
        raise Missing
    project = find_project(visit, space, slug)
    account = must_take_part(visit, project)
    item = attributes.details(visit, project, KINDS[kind], number)
    text, then = visit.form.text("text"), visit.form.choice("then", ("closed", "open"))
    if not text:
        visit.say("A comment needs some words.", "error")
        return Redirect(f"{project.url}/-/{kind}/{number}")
    query = f"INSERT INTO code_comments ({KINDS[kind]}, author, text, moment) VALUES (?, ?, ?, ?)"
    visit.write(query, item["id"], account, text, stamp())
    if then and kind == "issues":
        visit.must(may_edit(visit, project, item["author"]), "You may not change this issue.")
        set_state(visit, item["id"], closed=then == "closed")
    return Redirect(f"{project.url}/-/{kind}/{number}")


@routes.get("/{space}/{slug}/-/notes/{note:int}/edit")
def edit(visit: RequestContext, space: str, slug: str, note: int) -> Response:
    """The form with a comment of the visitor's own."""
    project = find_project(visit, space, slug)
    return visit.page("comment_edit.html", project=project, comment=_own(visit, project.id, note), wrong="")


@routes.post("/{space}/{slug}/-/notes/{note:int}")
def save(visit: RequestContext, space: str, slug: str, note: int) -> Response:
    """Change a comment, or delete it."""
    project = find_project(visit, space, slug)
    must_take_part(visit, project)
    comment, text = _own(visit, project.id, note), visit.form.text("text")
    if visit.form.ticked("delete"):
        visit.write("DELETE FROM code_comments WHERE id = ?", note)
        visit.say("The comment was deleted.")
    elif not text:
        wrong = "A comment needs some words."
        return visit.page("comment_edit.html", 422, project=project, comment=comment, wrong=wrong)
    else:
        visit.write("UPDATE code_comments SET text = ? WHERE id = ?", text, note)
    kind = "issues" if comment["issue"] else "merge_requests"
    return Redirect(f"{project.url}/-/{kind}/{comment['number']}")


def _own(visit: RequestContext, project: int, note: int) -> sqlite3.Row:
    """A comment in a project by the visitor, with the number of what it is about."""
    found = visit.one(
        """SELECT c.*, COALESCE(i.number, r.number) AS number FROM code_comments c
        LEFT JOIN code_issues i ON i.id = c.issue LEFT JOIN code_merge_requests r ON r.id = c.merge_request
        WHERE c.id = ? AND COALESCE(i.project, r.project) = ?""",
        note, project,
    )  # fmt: skip
    visit.must(found["author"] == visit.must_be_signed_in(), "Only who wrote a comment may change it.")
    return found

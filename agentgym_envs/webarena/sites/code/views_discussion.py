"""Comments on issues and merge requests."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import attributes
from agentgym_envs.webarena.sites.code.access import find_project, require_participant
from agentgym_envs.webarena.sites.code.attributes import KINDS
from agentgym_envs.webarena.sites.code.views_issues import may_edit, set_state
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()


@routes.post("/{space}/{slug}/-/{kind}/{number:int}/comments")
def add(context: RequestContext, space: str, slug: str, kind: str, number: int) -> Response:
    """Add a comment, and close or reopen the issue if the button says so."""
    if kind not in KINDS:
        raise NotFound
    project = find_project(context, space, slug)
    account = require_participant(context, project)
    item = attributes.details(context, project, KINDS[kind], number)
    text, then = context.form.text("text"), context.form.choice("then", ("closed", "open"))
    if not text:
        context.flash("A comment needs some words.", "error")
        return Redirect(f"{project.url}/-/{kind}/{number}")
    query = f"INSERT INTO code_comments ({KINDS[kind]}, author, text, moment) VALUES (?, ?, ?, ?)"
    context.write(query, item["id"], account, text, stamp())
    if then and kind == "issues":
        context.require(may_edit(context, project, item["author"]), "You may not change this issue.")
        set_state(context, item["id"], closed=then == "closed")
    return Redirect(f"{project.url}/-/{kind}/{number}")


@routes.get("/{space}/{slug}/-/notes/{note:int}/edit")
def edit(context: RequestContext, space: str, slug: str, note: int) -> Response:
    """Show the form of a comment by the visitor."""
    project = find_project(context, space, slug)
    return context.page("comment_edit.html", project=project, comment=_own(context, project.id, note), error="")


@routes.post("/{space}/{slug}/-/notes/{note:int}")
def save(context: RequestContext, space: str, slug: str, note: int) -> Response:
    """Save a comment, or delete it."""
    project = find_project(context, space, slug)
    require_participant(context, project)
    comment, text = _own(context, project.id, note), context.form.text("text")
    if context.form.is_checked("delete"):
        context.write("DELETE FROM code_comments WHERE id = ?", note)
        context.flash("The comment was deleted.")
    elif not text:
        error = "A comment needs some words."
        return context.page("comment_edit.html", 422, project=project, comment=comment, error=error)
    else:
        context.write("UPDATE code_comments SET text = ? WHERE id = ?", text, note)
    kind = "issues" if comment["issue"] else "merge_requests"
    return Redirect(f"{project.url}/-/{kind}/{comment['number']}")


def _own(context: RequestContext, project: int, note: int) -> sqlite3.Row:
    """Return a comment by the visitor, with the number of its issue or merge request."""
    comment = context.one(
        """SELECT c.*, COALESCE(i.number, r.number) AS number FROM code_comments c
        LEFT JOIN code_issues i ON i.id = c.issue LEFT JOIN code_merge_requests r ON r.id = c.merge_request
        WHERE c.id = ? AND COALESCE(i.project, r.project) = ?""",
        note, project,
    )  # fmt: skip
    context.require(comment["author"] == context.require_login(), "Only who wrote a comment may change it.")
    return comment

"""Actions on merge requests: approve, merge and close."""

from __future__ import annotations

import sqlite3

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import attributes, merging
from agentgym_envs.webarena.sites.code.access import Project, find_project
from agentgym_envs.webarena.sites.code.views_requests import may_change
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()


@routes.post("/{space}/{slug}/-/merge_requests/{number:int}/approval")
def approve(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Approve a merge request, or revoke the approval. Authors cannot approve their own."""
    project, request = _open(context, space, slug, number, "Developer")
    context.require(request["author"] != context.account, "You cannot approve your own merge request.")
    approved = int(context.form.text("approved") == "1")
    context.write(
        """INSERT INTO code_reviewers (merge_request, account, approved) VALUES (?1, ?2, ?3)
        ON CONFLICT (merge_request, account) DO UPDATE SET approved = ?3""",
        request["id"], context.account, approved,
    )  # fmt: skip
    context.flash("You approved this merge request." if approved else "Your approval was taken back.")
    return _back(project, number)


@routes.post("/{space}/{slug}/-/merge_requests/{number:int}/merge")
def merge(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Merge, if there are no conflicts."""
    project, request = _open(context, space, slug, number, "Developer")
    source, target = merging.branches_of(context, project, request)
    if source is None or target is None:
        context.flash("One of the branches is gone.", "error")
        return _back(project, number)
    allowed = project.may("Maintainer") or not target["protected"]
    context.require(allowed, f"Only maintainers may merge into '{target['name']}', which is protected.")
    if request["draft"]:
        context.flash("A draft cannot be merged. Mark it as ready first.", "error")
    elif conflicts := merging.plan(context, source, target).conflicts:
        context.flash(f"There are conflicts in {', '.join(conflicts)}.", "error")
    else:
        drops = context.form.is_checked("drop") and not source["protected"]
        merging.merge(context, project, request, source, target, drops=drops)
        context.flash(f"'{source['name']}' was merged into '{target['name']}'.")
    return _back(project, number)


@routes.post("/{space}/{slug}/-/merge_requests/{number:int}/state")
def change_state(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Close a merge request, or reopen it."""
    project = find_project(context, space, slug)
    request = attributes.details(context, project, "merge_request", number)
    context.require(may_change(context, project, request))
    closes = context.form.text("to") == "closed"
    context.require(request["state"] != "merged", "This was merged already.")
    if closes:
        query = (
            "UPDATE code_merge_requests SET state = 'closed', ended = ?, ended_by = ? WHERE id = ? AND state = 'open'"
        )
        context.write(query, stamp(), context.account, request["id"])
    else:
        query = "UPDATE code_merge_requests SET state = 'open', ended = NULL, ended_by = NULL WHERE id = ?"
        context.write(query, request["id"])
    context.flash("The merge request was closed." if closes else "The merge request was opened again.")
    return _back(project, number)


@routes.post("/{space}/{slug}/-/merge_requests/{number:int}/draft")
def change_draft(context: RequestContext, space: str, slug: str, number: int) -> Response:
    """Mark a merge request as draft, or as ready."""
    project = find_project(context, space, slug)
    request = attributes.details(context, project, "merge_request", number)
    context.require(may_change(context, project, request))
    draft = int(context.form.text("draft") == "1")
    context.write("UPDATE code_merge_requests SET draft = ? WHERE id = ?", draft, request["id"])
    context.flash("Marked as draft." if draft else "Marked as ready.")
    return _back(project, number)


def _open(context: RequestContext, space: str, slug: str, number: int, need: str) -> tuple[Project, sqlite3.Row]:
    project = find_project(context, space, slug, need)
    request = attributes.details(context, project, "merge_request", number)
    context.require(request["state"] == "open", "This merge request is not open.")
    return project, request


def _back(project: Project, number: int) -> Redirect:
    return Redirect(f"{project.url}/-/merge_requests/{number}")

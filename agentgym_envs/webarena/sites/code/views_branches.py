"""Branches of a project."""

from __future__ import annotations

from agentgym_envs.webarena.sites.code import repository
from agentgym_envs.webarena.sites.code.access import Project, find_project
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()


@routes.get("/{space}/{slug}/-/branches")
def index(context: RequestContext, space: str, slug: str) -> Response:
    """List the branches with their last commits."""
    project = find_project(context, space, slug)
    rows = context.rows(
        """SELECT b.*,
        (SELECT c.message FROM code_commits c WHERE c.branch = b.id
            ORDER BY c.moment DESC, c.id DESC LIMIT 1) AS message,
        (SELECT MAX(c.moment) FROM code_commits c WHERE c.branch = b.id) AS moment,
        (SELECT r.number FROM code_merge_requests r WHERE r.project = b.project AND r.source = b.name
            AND r.state = 'open' LIMIT 1) AS request
        FROM code_branches b WHERE b.project = ? ORDER BY b.name <> ?, moment DESC, b.name""",
        project.id, project.default_branch,
    )  # fmt: skip
    paging = Paging.of(context.query, len(rows), 12)
    return context.page("branches.html", project=project, rows=rows[paging.skipped :][: paging.size], paging=paging)


@routes.get("/{space}/{slug}/-/branches/new")
def new(context: RequestContext, space: str, slug: str) -> Response:
    """Show the form for a branch."""
    return _form_page(context, find_project(context, space, slug, "Developer"))


@routes.post("/{space}/{slug}/-/branches")
def create(context: RequestContext, space: str, slug: str) -> Response:
    """Create a branch from another one."""
    project, name = find_project(context, space, slug, "Developer"), context.form.text("name", most=200)
    origins = {row["name"]: row for row in repository.branches(context, project)}
    origin = origins.get(context.form.text("origin"))
    if not repository.is_name(name):
        error = "A branch's name may have letters, digits, dots, dashes, underscores and slashes."
        return _form_page(context, project, error)
    if any(other == name or f"{other}/".startswith(f"{name}/") or name.startswith(f"{other}/") for other in origins):
        return _form_page(context, project, f"There is already a branch '{name}', or one that is in its way.")
    if origin is None:
        return _form_page(context, project, "Choose the branch to start from.")
    repository.start_branch(context, project, name, origin)
    context.flash(f"Branch '{name}' was created from '{origin['name']}'.")
    return Redirect(f"{project.url}/-/tree/{name}")


@routes.post("/{space}/{slug}/-/branches/delete")
def delete(context: RequestContext, space: str, slug: str) -> Response:
    """Delete a branch, unless it is protected."""
    project = find_project(context, space, slug, "Developer")
    branch = repository.branch_named(context, project, context.form.text("name", most=200))
    context.require(not branch["protected"], "A protected branch cannot be deleted.")
    repository.drop_branch(context, branch)
    context.flash(f"Branch '{branch['name']}' was deleted.")
    return Redirect(f"{project.url}/-/branches")


@routes.post("/{space}/{slug}/-/branches/protect")
def protect(context: RequestContext, space: str, slug: str) -> Response:
    """Protect a branch, so that only maintainers can push, or unprotect it. The default branch is always protected."""
    project = find_project(context, space, slug, "Maintainer")
    branch = repository.branch_named(context, project, context.form.text("name", most=200))
    protects = int(context.form.text("protected") == "1")
    context.require(protects or branch["name"] != project.default_branch, "The default branch stays protected.")
    context.write("UPDATE code_branches SET protected = ? WHERE id = ?", protects, branch["id"])
    context.flash(f"'{branch['name']}' is {'protected' if protects else 'open to developers'} now.")
    return Redirect(f"{project.url}/-/branches")


def _form_page(context: RequestContext, project: Project, error: str = "") -> Response:
    return context.page(
        "branch_new.html", 422 if error else 200, project=project, branches=repository.branches(context, project),
        error=error, form=context.form,
    )  # fmt: skip

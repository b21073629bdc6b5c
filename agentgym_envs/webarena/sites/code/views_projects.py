"""The page of a project, new projects, stars and forks."""

from __future__ import annotations

from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import lists, project_lifecycle, repository
from agentgym_envs.webarena.sites.code.access import Project, find_project
from agentgym_envs.webarena.sites.code.lists import QueryConditions
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_VISIBLE_TO = [value for value, _ in project_lifecycle.VISIBILITIES]


@routes.get("/projects/new")
def new(context: RequestContext) -> Response:
    """Show the form for a project."""
    context.require_login()
    return _new_page(context, space=context.query.number("space") or context.account)


@routes.post("/projects")
def create(context: RequestContext) -> Response:
    """Create a project."""
    context.require_login()
    form = context.form
    name, space = form.text("name", most=100), form.number("space")
    slug = form.text("slug", most=100) or project_lifecycle.slug_of(name)
    if error := project_lifecycle.problem(context, name, slug, space):
        return _new_page(context, space=space, error=error)
    address = project_lifecycle.create(
        context, namespace=space, slug=slug, name=name, description=form.text("description", most=500),
        visibility=form.choice("visibility", _VISIBLE_TO, "private"), readme=form.is_checked("readme"),
    )  # fmt: skip
    context.flash(f"Project '{name}' was created.")
    return Redirect(address)


@routes.get("/{space}/{slug}")
def overview(context: RequestContext, space: str, slug: str) -> Response:
    """Show a project with the files of its default branch."""
    project = find_project(context, space, slug)
    query = "SELECT * FROM code_branches WHERE project = ? AND name = ?"
    branch = context.row(query, project.id, project.default_branch)
    if branch is None or not (entries := repository.listing(context, branch["id"], "")):
        return context.page("project.html", project=project, branch=branch, entries=[], **_origin(context, project))
    blob = repository.files(context, branch["id"]).get("README.md")
    last = repository.history(context, branch["id"], size=1)
    counts = context.one(
        """SELECT (SELECT COUNT(*) FROM code_branches WHERE project = ?1) AS branches,
        (SELECT COUNT(*) FROM code_tags WHERE project = ?1) AS tags,
        (SELECT COUNT(*) FROM code_releases r JOIN code_tags t ON t.id = r.tag WHERE t.project = ?1) AS releases""",
        project.id,
    )
    return context.page(
        "project.html", project=project, branch=branch, entries=entries, last=last[0] if last else None,
        readme=repository.content(context, blob), counts=counts,
        commits=repository.count_history(context, branch["id"]), **_origin(context, project),
    )  # fmt: skip


@routes.post("/{space}/{slug}/-/star")
def star(context: RequestContext, space: str, slug: str) -> Response:
    """Star a project, or unstar it."""
    account, project = context.require_login(), find_project(context, space, slug)
    if project.starred:
        context.write("DELETE FROM code_stars WHERE account = ? AND project = ?", account, project.id)
    else:
        query = "INSERT INTO code_stars (account, project, since) VALUES (?, ?, ?)"
        context.write(query, account, project.id, stamp())
    return Redirect(project.url)


@routes.get("/{space}/{slug}/-/starrers")
def starrers(context: RequestContext, space: str, slug: str) -> Response:
    """List the accounts that starred a project."""
    project = find_project(context, space, slug)
    paging = Paging.of(context.query, project.stars, 20)
    rows = context.rows(
        """SELECT a.*, s.since FROM code_stars s JOIN code_accounts a ON a.id = s.account WHERE s.project = ?
        ORDER BY s.since DESC, a.id LIMIT ? OFFSET ?""",
        project.id, paging.size, paging.skipped,
    )  # fmt: skip
    return context.page("starrers.html", project=project, rows=rows, paging=paging)


@routes.get("/{space}/{slug}/-/forks")
def forks(context: RequestContext, space: str, slug: str) -> Response:
    """List the forks of a project."""
    project = find_project(context, space, slug)
    where = QueryConditions(context.account)
    where.add("p.forked_from = {}", project.id)
    return context.page("forks.html", project=project, listed=lists.projects(context, where))


@routes.get("/{space}/{slug}/-/forks/new")
def new_fork(context: RequestContext, space: str, slug: str) -> Response:
    """Show the form for a fork."""
    context.require_login()
    return _fork_page(context, find_project(context, space, slug))


@routes.post("/{space}/{slug}/-/forks")
def create_fork(context: RequestContext, space: str, slug: str) -> Response:
    """Create a fork."""
    context.require_login()
    project, form = find_project(context, space, slug), context.form
    name, where = form.text("name", most=100), form.number("space")
    new_slug = form.text("slug", most=100) or project_lifecycle.slug_of(name)
    if error := project_lifecycle.problem(context, name, new_slug, where):
        return _fork_page(context, project, error)
    address = project_lifecycle.fork(
        context, project, namespace=where, slug=new_slug, name=name,
        description=form.text("description", most=500),
        visibility=form.choice("visibility", _VISIBLE_TO, "private"),
    )  # fmt: skip
    context.flash(f"You forked {project.title}.")
    return Redirect(address)


def _new_page(context: RequestContext, *, space: int, error: str = "") -> Response:
    return context.page(
        "project_new.html", 422 if error else 200, spaces=project_lifecycle.spaces(context), space=space, error=error,
        visibilities=project_lifecycle.VISIBILITIES, form=context.form,
    )  # fmt: skip


def _fork_page(context: RequestContext, project: Project, error: str = "") -> Response:
    return context.page(
        "fork_new.html", 422 if error else 200, project=project, spaces=project_lifecycle.spaces(context), error=error,
        visibilities=project_lifecycle.VISIBILITIES, form=context.form,
    )  # fmt: skip


def _origin(context: RequestContext, project: Project) -> dict[str, Any]:
    """Return the project from which a fork was made."""
    query = """SELECT p.name, p.slug, n.path, n.name AS space FROM code_projects p
    JOIN code_namespaces n ON n.id = p.namespace WHERE p.id = ?"""
    return {"parent": context.row(query, project.forked_from) if project.forked_from else None}

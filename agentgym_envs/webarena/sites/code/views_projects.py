"""A project's own page, new projects, stars and forks."""

from __future__ import annotations

from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import lists, making, repository
from agentgym_envs.webarena.sites.code.access import Project, find_project
from agentgym_envs.webarena.sites.code.lists import Where
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_VISIBLE_TO = [value for value, _ in making.VISIBILITIES]


@routes.get("/projects/new")
def new(visit: RequestContext) -> Response:
    """The form for a new project."""
    visit.must_be_signed_in()
    return _new_page(visit, space=visit.query.number("space") or visit.account)


@routes.post("/projects")
def create(visit: RequestContext) -> Response:
    """Add a project."""
    visit.must_be_signed_in()
    form = visit.form
    name, space = form.text("name", most=100), form.number("space")
    slug = form.text("slug", most=100) or making.slug_of(name)
    if wrong := making.problem(visit, name, slug, space):
        return _new_page(visit, space=space, wrong=wrong)
    address = making.create(
        visit, namespace=space, slug=slug, name=name, description=form.text("description", most=500),
        visibility=form.choice("visibility", _VISIBLE_TO, "private"), readme=form.ticked("readme"),
    )  # fmt: skip
    visit.say(f"Project '{name}' was created.")
    return Redirect(address)


@routes.get("/{space}/{slug}")
def overview(visit: RequestContext, space: str, slug: str) -> Response:
    """What a project is, and what lies at the head of its default branch."""
    project = find_project(visit, space, slug)
    query = "SELECT * FROM code_branches WHERE project = ? AND name = ?"
    branch = visit.row(query, project.id, project.default_branch)
    if branch is None or not (entries := repository.listing(visit, branch["id"], "")):
        return visit.page("project.html", project=project, branch=branch, entries=[], **_origin(visit, project))
    blob = repository.files(visit, branch["id"]).get("README.md")
    last = repository.history(visit, branch["id"], size=1)
    counts = visit.one(
        """SELECT (SELECT COUNT(*) FROM code_branches WHERE project = ?1) AS branches,
        (SELECT COUNT(*) FROM code_tags WHERE project = ?1) AS tags,
        (SELECT COUNT(*) FROM code_releases r JOIN code_tags t ON t.id = r.tag WHERE t.project = ?1) AS releases""",
        project.id,
    )
    return visit.page(
        "project.html", project=project, branch=branch, entries=entries, last=last[0] if last else None,
        readme=repository.content(visit, blob), counts=counts,
        commits=repository.count_history(visit, branch["id"]), **_origin(visit, project),
    )  # fmt: skip


@routes.post("/{space}/{slug}/-/star")
def star(visit: RequestContext, space: str, slug: str) -> Response:
    """Give a star, or take it back."""
    account, project = visit.must_be_signed_in(), find_project(visit, space, slug)
    if project.starred:
        visit.write("DELETE FROM code_stars WHERE account = ? AND project = ?", account, project.id)
    else:
        query = "INSERT INTO code_stars (account, project, since) VALUES (?, ?, ?)"
        visit.write(query, account, project.id, stamp())
    return Redirect(project.url)


@routes.get("/{space}/{slug}/-/starrers")
def starrers(visit: RequestContext, space: str, slug: str) -> Response:
    """Who gave a star."""
    project = find_project(visit, space, slug)
    paging = Paging.of(visit.query, project.stars, 20)
    rows = visit.rows(
        """SELECT a.*, s.since FROM code_stars s JOIN code_accounts a ON a.id = s.account WHERE s.project = ?
        ORDER BY s.since DESC, a.id LIMIT ? OFFSET ?""",
        project.id, paging.size, paging.skipped,
    )  # fmt: skip
    return visit.page("starrers.html", project=project, rows=rows, paging=paging)


@routes.get("/{space}/{slug}/-/forks")
def forks(visit: RequestContext, space: str, slug: str) -> Response:
    """The copies of a project."""
    project = find_project(visit, space, slug)
    where = Where(visit.account)
    where.add("p.forked_from = {}", project.id)
    return visit.page("forks.html", project=project, listed=lists.projects(visit, where))


@routes.get("/{space}/{slug}/-/forks/new")
def new_fork(visit: RequestContext, space: str, slug: str) -> Response:
    """The form for a copy."""
    visit.must_be_signed_in()
    return _fork_page(visit, find_project(visit, space, slug))


@routes.post("/{space}/{slug}/-/forks")
def create_fork(visit: RequestContext, space: str, slug: str) -> Response:
    """Add a copy."""
    visit.must_be_signed_in()
    project, form = find_project(visit, space, slug), visit.form
    name, where = form.text("name", most=100), form.number("space")
    new_slug = form.text("slug", most=100) or making.slug_of(name)
    if wrong := making.problem(visit, name, new_slug, where):
        return _fork_page(visit, project, wrong)
    address = making.fork(
        visit, project, namespace=where, slug=new_slug, name=name,
        description=form.text("description", most=500),
        visibility=form.choice("visibility", _VISIBLE_TO, "private"),
    )  # fmt: skip
    visit.say(f"You forked {project.title}.")
    return Redirect(address)


def _new_page(visit: RequestContext, *, space: int, wrong: str = "") -> Response:
    return visit.page(
        "project_new.html", 422 if wrong else 200, spaces=making.spaces(visit), space=space, wrong=wrong,
        visibilities=making.VISIBILITIES, form=visit.form,
    )  # fmt: skip


def _fork_page(visit: RequestContext, project: Project, wrong: str = "") -> Response:
    return visit.page(
        "fork_new.html", 422 if wrong else 200, project=project, spaces=making.spaces(visit), wrong=wrong,
        visibilities=making.VISIBILITIES, form=visit.form,
    )  # fmt: skip


def _origin(visit: RequestContext, project: Project) -> dict[str, Any]:
    """Where a fork comes from."""
    query = """SELECT p.name, p.slug, n.path, n.name AS space FROM code_projects p
    JOIN code_namespaces n ON n.id = p.namespace WHERE p.id = ?"""
    return {"parent": visit.row(query, project.forked_from) if project.forked_from else None}

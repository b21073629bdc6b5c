"""Members and settings of a project."""

from __future__ import annotations

from agentgym_envs.webarena.sites.code import members, project_lifecycle, repository
from agentgym_envs.webarena.sites.code.access import ROLES, Project, find_project
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_VISIBLE_TO = [value for value, _ in project_lifecycle.VISIBILITIES]


@routes.get("/{space}/{slug}/-/project_members")
def member_page(context: RequestContext, space: str, slug: str) -> Response:
    """List the members."""
    return _member_page(context, find_project(context, space, slug))


@routes.post("/{space}/{slug}/-/project_members")
def invite(context: RequestContext, space: str, slug: str) -> Response:
    """Add a member."""
    project = find_project(context, space, slug, "Maintainer")
    error = members.invite(context, project, context.form.text("user", most=200), context.form.text("role"))
    return _member_page(context, project, error) if error else Redirect(f"{project.url}/-/project_members")


@routes.post("/{space}/{slug}/-/project_members/{account:int}")
def change(context: RequestContext, space: str, slug: str, account: int) -> Response:
    """Change the role of a member, or remove them."""
    context.require_login()
    project = find_project(context, space, slug)
    members.change(
        context, project, account, "" if context.form.is_checked("remove") else context.form.text("role") or "-"
    )
    leaves = account == context.account and context.form.is_checked("remove")
    return Redirect("/" if leaves else f"{project.url}/-/project_members")


@routes.get("/{space}/{slug}/edit")
def settings(context: RequestContext, space: str, slug: str) -> Response:
    """Show the settings of a project."""
    project = find_project(context, space, slug)
    context.require_login()
    context.require(project.is_at_least("Maintainer"), "Only maintainers may change the settings.")
    return _settings_page(context, project)


@routes.post("/{space}/{slug}/edit")
def save(context: RequestContext, space: str, slug: str) -> Response:
    """Save the settings. Only owners may change the visibility."""
    project, form = find_project(context, space, slug, "Maintainer"), context.form
    if not (name := form.text("name", most=100)):
        return _settings_page(context, project, "The project needs a name.")
    topics = ", ".join(
        dict.fromkeys(topic.strip() for topic in form.text("topics", most=300).split(",") if topic.strip())
    )
    visibility = form.choice("visibility", _VISIBLE_TO, project.visibility)
    branch = form.choice("default_branch", [row["name"] for row in repository.branches(context, project)])
    context.write(
        """UPDATE code_projects SET name = ?, description = ?, topics = ?, visibility = ?, default_branch = ?
        WHERE id = ?""",
        name, form.text("description", most=500), topics, visibility if project.may("Owner") else project.visibility,
        branch or project.default_branch, project.id,
    )  # fmt: skip
    if branch and branch != project.default_branch:
        query = "UPDATE code_branches SET protected = 1 WHERE project = ? AND name = ?"
        context.write(query, project.id, branch)
    context.flash(f"Project '{name}' was updated.")
    return Redirect(f"{project.url}/edit")


@routes.post("/{space}/{slug}/-/rename")
def rename(context: RequestContext, space: str, slug: str) -> Response:
    """Change the slug."""
    project, wanted = find_project(context, space, slug, "Owner"), context.form.text("slug", most=100)
    query = "SELECT 1 FROM code_projects WHERE namespace = ? AND slug = ? COLLATE NOCASE AND id <> ?"
    if not project_lifecycle.is_slug(wanted):
        return _settings_page(
            context, project, "The address may have letters, digits, dots, dashes and underscores only."
        )
    if context.row(query, project.namespace, wanted, project.id):
        return _settings_page(context, project, "There is already a project with this address.")
    context.write("UPDATE code_projects SET slug = ? WHERE id = ?", wanted, project.id)
    context.flash("The address was changed.")
    return Redirect(f"/{project.path}/{wanted}/edit")


@routes.post("/{space}/{slug}/-/archive")
def archive(context: RequestContext, space: str, slug: str) -> Response:
    """Archive a project, so that nothing in it can be changed, or unarchive it."""
    project = find_project(context, space, slug)
    context.require(context.require_login() and project.is_at_least("Owner"), "Only owners may do this.")
    archived = int(context.form.text("archived") == "1")
    context.write("UPDATE code_projects SET archived = ? WHERE id = ?", archived, project.id)
    context.flash("The project was archived." if archived else "The project is active again.")
    return Redirect(f"{project.url}/edit")


@routes.post("/{space}/{slug}/-/delete")
def delete(context: RequestContext, space: str, slug: str) -> Response:
    """Delete a project permanently. The visitor types its path as a confirmation."""
    project = find_project(context, space, slug)
    context.require(context.require_login() and project.is_at_least("Owner"), "Only owners may do this.")
    if context.form.text("path") != project.url[1:]:
        return _settings_page(context, project, "To delete the project, type its path exactly.")
    project_lifecycle.delete(context, project)
    context.flash(f"Project '{project.name}' was deleted.")
    return Redirect("/")


def _member_page(context: RequestContext, project: Project, error: str = "") -> Response:
    rows = members.members(context, project)
    paging = Paging.of(context.query, len(rows), 12)
    return context.page(
        "members.html", 422 if error else 200, project=project, rows=rows[paging.skipped :][: paging.size],
        paging=paging, error=error, of=project, base=f"{project.url}/-/project_members", roles=ROLES,
        outsiders=members.outsiders(context, project) if project.may("Maintainer") else [],
    )  # fmt: skip


def _settings_page(context: RequestContext, project: Project, error: str = "") -> Response:
    return context.page(
        "settings.html", 422 if error else 200, project=project, error=error,
        visibilities=project_lifecycle.VISIBILITIES, branches=repository.branches(context, project),
    )  # fmt: skip

"""Members and settings of a project."""

from __future__ import annotations

from agentgym_envs.webarena.sites.code import making, members, repository
from agentgym_envs.webarena.sites.code.access import ROLES, Project, find_project
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_VISIBLE_TO = [value for value, _ in making.VISIBILITIES]


@routes.get("/{space}/{slug}/-/project_members")
def member_page(visit: RequestContext, space: str, slug: str) -> Response:
    """Who is a member."""
    return _member_page(visit, find_project(visit, space, slug))


@routes.post("/{space}/{slug}/-/project_members")
def invite(visit: RequestContext, space: str, slug: str) -> Response:
    """Add somebody."""
    project = find_project(visit, space, slug, "Maintainer")
    wrong = members.invite(visit, project, visit.form.text("user", most=200), visit.form.text("role"))
    return _member_page(visit, project, wrong) if wrong else Redirect(f"{project.url}/-/project_members")


@routes.post("/{space}/{slug}/-/project_members/{account:int}")
def change(visit: RequestContext, space: str, slug: str, account: int) -> Response:
    """Give a member another role, or remove them."""
    visit.must_be_signed_in()
    project = find_project(visit, space, slug)
    members.change(visit, project, account, "" if visit.form.ticked("remove") else visit.form.text("role") or "-")
    leaves = account == visit.account and visit.form.ticked("remove")
    return Redirect("/" if leaves else f"{project.url}/-/project_members")


@routes.get("/{space}/{slug}/edit")
def settings(visit: RequestContext, space: str, slug: str) -> Response:
    """The forms with a project's settings."""
    project = find_project(visit, space, slug)
    visit.must_be_signed_in()
    visit.must(project.is_at_least("Maintainer"), "Only maintainers may change the settings.")
    return _settings_page(visit, project)


@routes.post("/{space}/{slug}/edit")
def save(visit: RequestContext, space: str, slug: str) -> Response:
    """Change what a project is called and what is said of it; only owners change who sees it."""
    project, form = find_project(visit, space, slug, "Maintainer"), visit.form
    if not (name := form.text("name", most=100)):
        return _settings_page(visit, project, "The project needs a name.")
    topics = ", ".join(
        dict.fromkeys(topic.strip() for topic in form.text("topics", most=300).split(",") if topic.strip())
    )
    visibility = form.choice("visibility", _VISIBLE_TO, project.visibility)
    branch = form.choice("default_branch", [row["name"] for row in repository.branches(visit, project)])
    visit.write(
        """UPDATE code_projects SET name = ?, description = ?, topics = ?, visibility = ?, default_branch = ?
        WHERE id = ?""",
        name, form.text("description", most=500), topics, visibility if project.may("Owner") else project.visibility,
        branch or project.default_branch, project.id,
    )  # fmt: skip
    if branch and branch != project.default_branch:
        query = "UPDATE code_branches SET protected = 1 WHERE project = ? AND name = ?"
        visit.write(query, project.id, branch)
    visit.say(f"Project '{name}' was updated.")
    return Redirect(f"{project.url}/edit")


@routes.post("/{space}/{slug}/-/rename")
def rename(visit: RequestContext, space: str, slug: str) -> Response:
    """Change the address."""
    project, wanted = find_project(visit, space, slug, "Owner"), visit.form.text("slug", most=100)
    query = "SELECT 1 FROM code_projects WHERE namespace = ? AND slug = ? COLLATE NOCASE AND id <> ?"
    if not making.is_slug(wanted):
        return _settings_page(
            visit, project, "The address may have letters, digits, dots, dashes and underscores only."
        )
    if visit.row(query, project.namespace, wanted, project.id):
        return _settings_page(visit, project, "There is already a project with this address.")
    visit.write("UPDATE code_projects SET slug = ? WHERE id = ?", wanted, project.id)
    visit.say("The address was changed.")
    return Redirect(f"/{project.path}/{wanted}/edit")


@routes.post("/{space}/{slug}/-/archive")
def archive(visit: RequestContext, space: str, slug: str) -> Response:
    """Archive a project, so that nothing in it can be changed; or bring it back."""
    project = find_project(visit, space, slug)
    visit.must(visit.must_be_signed_in() and project.is_at_least("Owner"), "Only owners may do this.")
    archived = int(visit.form.text("archived") == "1")
    visit.write("UPDATE code_projects SET archived = ? WHERE id = ?", archived, project.id)
    visit.say("The project was archived." if archived else "The project is active again.")
    return Redirect(f"{project.url}/edit")


@routes.post("/{space}/{slug}/-/delete")
def delete(visit: RequestContext, space: str, slug: str) -> Response:
    """Delete a project for good. Its path has to be typed, so that nobody does it by mistake."""
    project = find_project(visit, space, slug)
    visit.must(visit.must_be_signed_in() and project.is_at_least("Owner"), "Only owners may do this.")
    if visit.form.text("path") != project.url[1:]:
        return _settings_page(visit, project, "To delete the project, type its path exactly.")
    making.delete(visit, project)
    visit.say(f"Project '{project.name}' was deleted.")
    return Redirect("/")


def _member_page(visit: RequestContext, project: Project, wrong: str = "") -> Response:
    rows = members.members(visit, project)
    paging = Paging.of(visit.query, len(rows), 12)
    return visit.page(
        "members.html", 422 if wrong else 200, project=project, rows=rows[paging.skipped :][: paging.size],
        paging=paging, wrong=wrong, of=project, base=f"{project.url}/-/project_members", roles=ROLES,
        outsiders=members.outsiders(visit, project) if project.may("Maintainer") else [],
    )  # fmt: skip


def _settings_page(visit: RequestContext, project: Project, wrong: str = "") -> Response:
    return visit.page(
        "settings.html", 422 if wrong else 200, project=project, wrong=wrong, visibilities=making.VISIBILITIES,
        branches=repository.branches(visit, project),
    )  # fmt: skip

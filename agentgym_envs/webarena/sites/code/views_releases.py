"""Tags and releases of a project."""

from __future__ import annotations

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import repository
from agentgym_envs.webarena.sites.code.access import Project, find_project
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_RELEASES = """
SELECT r.*, t.name AS tag_name, t.sha, a.name AS author_name, a.user FROM code_releases r
JOIN code_tags t ON t.id = r.tag JOIN code_accounts a ON a.id = r.author
WHERE t.project = ? ORDER BY r.moment DESC, r.id DESC
"""


@routes.get("/{space}/{slug}/-/tags")
def tags(context: RequestContext, space: str, slug: str) -> Response:
    """List the tags, newest first."""
    project = find_project(context, space, slug)
    rows = context.rows(
        """SELECT t.*, (SELECT r.id FROM code_releases r WHERE r.tag = t.id) AS release FROM code_tags t
        WHERE t.project = ? ORDER BY t.created DESC, t.id DESC""",
        project.id,
    )
    return context.page("tags.html", project=project, rows=rows[:30])


@routes.get("/{space}/{slug}/-/tags/new")
def new_tag(context: RequestContext, space: str, slug: str) -> Response:
    """Show the form for a tag."""
    return _tag_page(context, find_project(context, space, slug, "Developer"))


@routes.post("/{space}/{slug}/-/tags")
def create_tag(context: RequestContext, space: str, slug: str) -> Response:
    """Tag the head of a branch."""
    project = find_project(context, space, slug, "Developer")
    error, _ = _add_tag(context, project)
    if error:
        return _tag_page(context, project, error)
    context.flash(f"Tag '{context.form.text('name')}' was created.")
    return Redirect(f"{project.url}/-/tags")


@routes.post("/{space}/{slug}/-/tags/delete")
def delete_tag(context: RequestContext, space: str, slug: str) -> Response:
    """Delete a tag and its release."""
    project = find_project(context, space, slug, "Maintainer")
    query = "SELECT * FROM code_tags WHERE project = ? AND name = ?"
    tag = context.one(query, project.id, context.form.text("name", most=200))
    context.write("DELETE FROM code_releases WHERE tag = ?", tag["id"])
    context.write("DELETE FROM code_tags WHERE id = ?", tag["id"])
    context.flash(f"Tag '{tag['name']}' was deleted.")
    return Redirect(f"{project.url}/-/tags")


@routes.get("/{space}/{slug}/-/releases")
def releases(context: RequestContext, space: str, slug: str) -> Response:
    """List the releases with their notes, newest first."""
    project = find_project(context, space, slug)
    rows = context.rows(_RELEASES, project.id)
    paging = Paging.of(context.query, len(rows), 5)
    return context.page("releases.html", project=project, rows=rows[paging.skipped :][: paging.size], paging=paging)


@routes.get("/{space}/{slug}/-/releases/new")
def new_release(context: RequestContext, space: str, slug: str) -> Response:
    """Show the form for a release."""
    return _release_page(context, find_project(context, space, slug, "Developer"))


@routes.post("/{space}/{slug}/-/releases")
def create_release(context: RequestContext, space: str, slug: str) -> Response:
    """Publish a release of a tag. A new tag is created at the head of a branch."""
    project, form = find_project(context, space, slug, "Developer"), context.form
    name, title = form.text("name", most=100), form.text("title", most=200)
    tag = context.row("SELECT * FROM code_tags WHERE project = ? AND name = ?", project.id, name)
    if tag and context.row("SELECT 1 FROM code_releases WHERE tag = ?", tag["id"]):
        return _release_page(context, project, f"There is already a release of '{name}'.")
    error, number = ("", tag["id"]) if tag else _add_tag(context, project)
    if error:
        return _release_page(context, project, error)
    context.write(
        "INSERT INTO code_releases (tag, title, notes, author, moment) VALUES (?, ?, ?, ?, ?)",
        number, title or name, form.text("notes"), context.account, stamp(),
    )  # fmt: skip
    context.flash(f"'{title or name}' was released.")
    return Redirect(f"{project.url}/-/releases")


def _add_tag(context: RequestContext, project: Project) -> tuple[str, int]:
    """Add the tag of the form; return an error message or "", and the id of the tag."""
    form = context.form
    name = form.text("name", most=200)
    origins = {row["name"]: row for row in repository.branches(context, project)}
    origin = origins.get(form.text("origin"))
    head = repository.history(context, origin["id"], size=1) if origin else []
    if not repository.is_name(name):
        return "A tag needs a name, of letters, digits, dots, dashes and underscores.", 0
    if context.row("SELECT 1 FROM code_tags WHERE project = ? AND name = ?", project.id, name):
        return f"There is already a tag '{name}'.", 0
    if not head:
        return "Choose a branch that has commits.", 0
    number = context.write(
        "INSERT INTO code_tags (project, name, sha, message, created) VALUES (?, ?, ?, ?, ?)",
        project.id, name, head[0]["sha"], form.text("message", most=500), stamp(),
    )  # fmt: skip
    return "", number


def _tag_page(context: RequestContext, project: Project, error: str = "") -> Response:
    branches = repository.branches(context, project)
    return context.page(
        "tag_new.html", 422 if error else 200, project=project, branches=branches, error=error, form=context.form
    )


def _release_page(context: RequestContext, project: Project, error: str = "") -> Response:
    query = """SELECT name FROM code_tags WHERE project = ? AND id NOT IN (SELECT tag FROM code_releases)
    ORDER BY created DESC"""
    return context.page(
        "release_new.html", 422 if error else 200, project=project, branches=repository.branches(context, project),
        free_tags=[row["name"] for row in context.rows(query, project.id)], error=error, form=context.form,
    )  # fmt: skip

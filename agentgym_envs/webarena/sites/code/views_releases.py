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
def tags(visit: RequestContext, space: str, slug: str) -> Response:
    """The tags, newest first."""
    project = find_project(visit, space, slug)
    rows = visit.rows(
        """SELECT t.*, (SELECT r.id FROM code_releases r WHERE r.tag = t.id) AS release FROM code_tags t
        WHERE t.project = ? ORDER BY t.created DESC, t.id DESC""",
        project.id,
    )
    return visit.page("tags.html", project=project, rows=rows[:30])


@routes.get("/{space}/{slug}/-/tags/new")
def new_tag(visit: RequestContext, space: str, slug: str) -> Response:
    """The form for a new tag."""
    return _tag_page(visit, find_project(visit, space, slug, "Developer"))


@routes.post("/{space}/{slug}/-/tags")
def create_tag(visit: RequestContext, space: str, slug: str) -> Response:
    """Tag the head of a branch."""
    project = find_project(visit, space, slug, "Developer")
    wrong, _ = _add_tag(visit, project)
    if wrong:
        return _tag_page(visit, project, wrong)
    visit.say(f"Tag '{visit.form.text('name')}' was created.")
    return Redirect(f"{project.url}/-/tags")


@routes.post("/{space}/{slug}/-/tags/delete")
def delete_tag(visit: RequestContext, space: str, slug: str) -> Response:
    """Delete a tag and its release."""
    project = find_project(visit, space, slug, "Maintainer")
    query = "SELECT * FROM code_tags WHERE project = ? AND name = ?"
    tag = visit.one(query, project.id, visit.form.text("name", most=200))
    visit.write("DELETE FROM code_releases WHERE tag = ?", tag["id"])
    visit.write("DELETE FROM code_tags WHERE id = ?", tag["id"])
    visit.say(f"Tag '{tag['name']}' was deleted.")
    return Redirect(f"{project.url}/-/tags")


@routes.get("/{space}/{slug}/-/releases")
def releases(visit: RequestContext, space: str, slug: str) -> Response:
    """The releases with what each brought, newest first."""
    project = find_project(visit, space, slug)
    rows = visit.rows(_RELEASES, project.id)
    paging = Paging.of(visit.query, len(rows), 5)
    return visit.page("releases.html", project=project, rows=rows[paging.skipped :][: paging.size], paging=paging)


@routes.get("/{space}/{slug}/-/releases/new")
def new_release(visit: RequestContext, space: str, slug: str) -> Response:
    """The form for a new release."""
    return _release_page(visit, find_project(visit, space, slug, "Developer"))


@routes.post("/{space}/{slug}/-/releases")
def create_release(visit: RequestContext, space: str, slug: str) -> Response:
    """Publish a release of a tag, which is made of a branch's head if it is not there."""
    project, form = find_project(visit, space, slug, "Developer"), visit.form
    name, title = form.text("name", most=100), form.text("title", most=200)
    tag = visit.row("SELECT * FROM code_tags WHERE project = ? AND name = ?", project.id, name)
    if tag and visit.row("SELECT 1 FROM code_releases WHERE tag = ?", tag["id"]):
        return _release_page(visit, project, f"There is already a release of '{name}'.")
    wrong, number = ("", tag["id"]) if tag else _add_tag(visit, project)
    if wrong:
        return _release_page(visit, project, wrong)
    visit.write(
        "INSERT INTO code_releases (tag, title, notes, author, moment) VALUES (?, ?, ?, ?, ?)",
        number, title or name, form.text("notes"), visit.account, stamp(),
    )  # fmt: skip
    visit.say(f"'{title or name}' was released.")
    return Redirect(f"{project.url}/-/releases")


def _add_tag(visit: RequestContext, project: Project) -> tuple[str, int]:
    """Add the tag that the form describes: what is wrong with it, "" if nothing, and its id."""
    form = visit.form
    name = form.text("name", most=200)
    origins = {row["name"]: row for row in repository.branches(visit, project)}
    origin = origins.get(form.text("origin"))
    head = repository.history(visit, origin["id"], size=1) if origin else []
    if not repository.is_name(name):
        return "A tag needs a name, of letters, digits, dots, dashes and underscores.", 0
    if visit.row("SELECT 1 FROM code_tags WHERE project = ? AND name = ?", project.id, name):
        return f"There is already a tag '{name}'.", 0
    if not head:
        return "Choose a branch that has commits.", 0
    number = visit.write(
        "INSERT INTO code_tags (project, name, sha, message, created) VALUES (?, ?, ?, ?, ?)",
        project.id, name, head[0]["sha"], form.text("message", most=500), stamp(),
    )  # fmt: skip
    return "", number


def _tag_page(visit: RequestContext, project: Project, wrong: str = "") -> Response:
    branches = repository.branches(visit, project)
    return visit.page(
        "tag_new.html", 422 if wrong else 200, project=project, branches=branches, wrong=wrong, form=visit.form
    )


def _release_page(visit: RequestContext, project: Project, wrong: str = "") -> Response:
    query = """SELECT name FROM code_tags WHERE project = ? AND id NOT IN (SELECT tag FROM code_releases)
    ORDER BY created DESC"""
    return visit.page(
        "release_new.html", 422 if wrong else 200, project=project, branches=repository.branches(visit, project),
        free_tags=[row["name"] for row in visit.rows(query, project.id)], wrong=wrong, form=visit.form,
    )  # fmt: skip

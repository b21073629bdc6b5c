"""Groups: list, creation, settings and members. The page of a group is in `views_people`."""

from __future__ import annotations

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import members, project_lifecycle
from agentgym_envs.webarena.sites.code.access import ROLES, Group, find_group
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_RESERVED = (
    "-",
    "dashboard",
    "explore",
    "framework",
    "groups",
    "projects",
    "search",
    "sign-in",
    "sign-out",
    "starred",
    "static",
)
_VISIBLE_TO = [value for value, _ in project_lifecycle.VISIBILITIES]
_MEMBERS_PAGE = 15


@routes.get("/groups")
def groups(context: RequestContext) -> Response:
    """List the groups that the visitor may see, their own first."""
    rows = context.rows(
        """SELECT n.*, g.role, (SELECT COUNT(*) FROM code_projects p WHERE p.namespace = n.id) AS projects,
        (SELECT COUNT(*) FROM code_group_members x WHERE x.namespace = n.id) AS members
        FROM code_namespaces n LEFT JOIN code_group_members g ON g.namespace = n.id AND g.account = ?1
        WHERE n.account IS NULL AND (n.visibility = 'public' OR g.role IS NOT NULL OR
        (n.visibility = 'internal' AND ?1 > 0)) ORDER BY g.role IS NULL, n.name""",
        context.account,
    )
    return context.page("groups.html", rows=rows)


@routes.get("/groups/new")
def new(context: RequestContext) -> Response:
    """Show the form for a group."""
    context.require_login()
    return _new_page(context)


@routes.post("/groups")
def create(context: RequestContext) -> Response:
    """Create a group."""
    account, form = context.require_login(), context.form
    name = form.text("name", most=100)
    path = form.text("path", most=100) or project_lifecycle.slug_of(name)
    if not name:
        return _new_page(context, "The group needs a name.")
    if not project_lifecycle.is_slug(path) or path.lower() in _RESERVED:
        return _new_page(context, "This address cannot be used for a group.")
    if context.row("SELECT 1 FROM code_namespaces WHERE path = ? COLLATE NOCASE", path):
        return _new_page(context, "This address is taken.")
    number = context.write(
        """INSERT INTO code_namespaces (path, name, account, description, visibility, created)
        VALUES (?, ?, NULL, ?, ?, ?)""",
        path, name, form.text("description", most=500), form.choice("visibility", _VISIBLE_TO, "private"), stamp(),
    )  # fmt: skip
    query = "INSERT INTO code_group_members (namespace, account, role, since) VALUES (?, ?, 'Owner', ?)"
    context.write(query, number, account, stamp())
    context.flash(f"Group '{name}' was created.")
    return Redirect(f"/{path}")


@routes.get("/groups/{path}/-/edit")
def edit(context: RequestContext, path: str) -> Response:
    """Show the settings of a group."""
    return _edit_page(context, find_group(context, path, "Owner"))


@routes.post("/groups/{path}/-/edit")
def save(context: RequestContext, path: str) -> Response:
    """Save the name, description and visibility of a group."""
    group, form = find_group(context, path, "Owner"), context.form
    if not (name := form.text("name", most=100)):
        return _edit_page(context, group, "The group needs a name.")
    context.write(
        "UPDATE code_namespaces SET name = ?, description = ?, visibility = ? WHERE id = ?", name,
        form.text("description", most=500), form.choice("visibility", _VISIBLE_TO, group.row["visibility"]),
        group.row["id"],
    )  # fmt: skip
    context.flash("The group was updated.")
    return Redirect(group.url)


@routes.get("/groups/{path}/-/group_members")
def member_page(context: RequestContext, path: str) -> Response:
    """List the members of a group."""
    return _member_page(context, find_group(context, path))


@routes.post("/groups/{path}/-/group_members")
def invite(context: RequestContext, path: str) -> Response:
    """Add a member."""
    group = find_group(context, path, "Maintainer")
    error = members.invite(context, group, context.form.text("user", most=200), context.form.text("role"))
    return _member_page(context, group, error) if error else Redirect(f"/groups/{path}/-/group_members")


@routes.post("/groups/{path}/-/group_members/{account:int}")
def change(context: RequestContext, path: str, account: int) -> Response:
    """Change the role of a member, or remove them."""
    context.require_login()
    group = find_group(context, path)
    members.change(
        context, group, account, "" if context.form.is_checked("remove") else context.form.text("role") or "-"
    )
    return Redirect(f"/groups/{path}/-/group_members" if account != context.account else group.url)


def _new_page(context: RequestContext, error: str = "") -> Response:
    return context.page(
        "group_new.html",
        422 if error else 200,
        error=error,
        form=context.form,
        visibilities=project_lifecycle.VISIBILITIES,
    )


def _edit_page(context: RequestContext, group: Group, error: str = "") -> Response:
    return context.page(
        "group_edit.html", 422 if error else 200, group=group, error=error, visibilities=project_lifecycle.VISIBILITIES
    )


def _member_page(context: RequestContext, group: Group, error: str = "") -> Response:
    rows = members.members(context, group)
    paging = Paging.of(context.query, len(rows), _MEMBERS_PAGE)
    return context.page(
        "group_members.html", 422 if error else 200, rows=rows[paging.skipped :][: paging.size], paging=paging,
        error=error, of=group, group=group, base=f"/groups/{group.row['path']}/-/group_members", roles=ROLES,
        outsiders=members.outsiders(context, group) if group.may("Maintainer") else [],
    )  # fmt: skip

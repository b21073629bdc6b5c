"""Groups: their list, new ones, their settings and members. A group's own page is in `views_people`."""

from __future__ import annotations

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import making, members
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
    "groups",
    "kit",
    "projects",
    "search",
    "sign-in",
    "sign-out",
    "starred",
    "static",
)
_VISIBLE_TO = [value for value, _ in making.VISIBILITIES]
_MEMBERS_PAGE = 15


@routes.get("/groups")
def groups(visit: RequestContext) -> Response:
    """All groups that the visitor may see, their own first."""
    rows = visit.rows(
        """SELECT n.*, g.role, (SELECT COUNT(*) FROM code_projects p WHERE p.namespace = n.id) AS projects,
        (SELECT COUNT(*) FROM code_group_members x WHERE x.namespace = n.id) AS members
        FROM code_namespaces n LEFT JOIN code_group_members g ON g.namespace = n.id AND g.account = ?1
        WHERE n.account IS NULL AND (n.visibility = 'public' OR g.role IS NOT NULL OR
        (n.visibility = 'internal' AND ?1 > 0)) ORDER BY g.role IS NULL, n.name""",
        visit.account,
    )
    return visit.page("groups.html", rows=rows)


@routes.get("/groups/new")
def new(visit: RequestContext) -> Response:
    """The form for a new group."""
    visit.must_be_signed_in()
    return _new_page(visit)


@routes.post("/groups")
def create(visit: RequestContext) -> Response:
    """Add a group."""
    account, form = visit.must_be_signed_in(), visit.form
    name = form.text("name", most=100)
    path = form.text("path", most=100) or making.slug_of(name)
    if not name:
        return _new_page(visit, "The group needs a name.")
    if not making.is_slug(path) or path.lower() in _RESERVED:
        return _new_page(visit, "This address cannot be used for a group.")
    if visit.row("SELECT 1 FROM code_namespaces WHERE path = ? COLLATE NOCASE", path):
        return _new_page(visit, "This address is taken.")
    number = visit.write(
        """INSERT INTO code_namespaces (path, name, account, description, visibility, created)
        VALUES (?, ?, NULL, ?, ?, ?)""",
        path, name, form.text("description", most=500), form.choice("visibility", _VISIBLE_TO, "private"), stamp(),
    )  # fmt: skip
    query = "INSERT INTO code_group_members (namespace, account, role, since) VALUES (?, ?, 'Owner', ?)"
    visit.write(query, number, account, stamp())
    visit.say(f"Group '{name}' was created.")
    return Redirect(f"/{path}")


@routes.get("/groups/{path}/-/edit")
def edit(visit: RequestContext, path: str) -> Response:
    """The form with a group's settings."""
    return _edit_page(visit, find_group(visit, path, "Owner"))


@routes.post("/groups/{path}/-/edit")
def save(visit: RequestContext, path: str) -> Response:
    """Change name, description or visibility."""
    group, form = find_group(visit, path, "Owner"), visit.form
    if not (name := form.text("name", most=100)):
        return _edit_page(visit, group, "The group needs a name.")
    visit.write(
        "UPDATE code_namespaces SET name = ?, description = ?, visibility = ? WHERE id = ?", name,
        form.text("description", most=500), form.choice("visibility", _VISIBLE_TO, group.row["visibility"]),
        group.row["id"],
    )  # fmt: skip
    visit.say("The group was updated.")
    return Redirect(group.url)


@routes.get("/groups/{path}/-/group_members")
def member_page(visit: RequestContext, path: str) -> Response:
    """Who is in a group."""
    return _member_page(visit, find_group(visit, path))


@routes.post("/groups/{path}/-/group_members")
def invite(visit: RequestContext, path: str) -> Response:
    """Add somebody."""
    group = find_group(visit, path, "Maintainer")
    wrong = members.invite(visit, group, visit.form.text("user", most=200), visit.form.text("role"))
    return _member_page(visit, group, wrong) if wrong else Redirect(f"/groups/{path}/-/group_members")


@routes.post("/groups/{path}/-/group_members/{account:int}")
def change(visit: RequestContext, path: str, account: int) -> Response:
    """Give a member another role, or remove them."""
    visit.must_be_signed_in()
    group = find_group(visit, path)
    members.change(visit, group, account, "" if visit.form.ticked("remove") else visit.form.text("role") or "-")
    return Redirect(f"/groups/{path}/-/group_members" if account != visit.account else group.url)


def _new_page(visit: RequestContext, wrong: str = "") -> Response:
    return visit.page(
        "group_new.html", 422 if wrong else 200, wrong=wrong, form=visit.form, visibilities=making.VISIBILITIES
    )


def _edit_page(visit: RequestContext, group: Group, wrong: str = "") -> Response:
    return visit.page(
        "group_edit.html", 422 if wrong else 200, group=group, wrong=wrong, visibilities=making.VISIBILITIES
    )


def _member_page(visit: RequestContext, group: Group, wrong: str = "") -> Response:
    rows = members.members(visit, group)
    paging = Paging.of(visit.query, len(rows), _MEMBERS_PAGE)
    return visit.page(
        "group_members.html", 422 if wrong else 200, rows=rows[paging.skipped :][: paging.size], paging=paging,
        wrong=wrong, of=group, group=group, base=f"/groups/{group.row['path']}/-/group_members", roles=ROLES,
        outsiders=members.outsiders(visit, group) if group.may("Maintainer") else [],
    )  # fmt: skip

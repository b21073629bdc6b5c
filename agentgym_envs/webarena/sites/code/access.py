"""Access control: the project or group of a page, and the permissions of the visitor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound

ROLES = ("Guest", "Reporter", "Developer", "Maintainer", "Owner")
"""From the least to the most powerful."""
VISIBLE = (
    "(p.visibility = 'public' OR (p.visibility = 'internal' AND ?1 > 0)"
    " OR EXISTS (SELECT 1 FROM code_members m WHERE m.project = p.id AND m.account = ?1)"
    " OR EXISTS (SELECT 1 FROM code_group_members g WHERE g.namespace = p.namespace AND g.account = ?1))"
)
"""SQL condition: account ?1 may see the project `p`."""
_PROJECT = """
SELECT p.*, n.path, n.name AS space, n.account AS owner,
    (SELECT role FROM code_members WHERE project = p.id AND account = ?1) AS own_role,
    (SELECT role FROM code_group_members WHERE namespace = p.namespace AND account = ?1) AS group_role,
    (SELECT COUNT(*) FROM code_stars WHERE project = p.id) AS stars,
    (SELECT COUNT(*) FROM code_stars WHERE project = p.id AND account = ?1) AS starred,
    (SELECT COUNT(*) FROM code_projects WHERE forked_from = p.id) AS forks,
    (SELECT COUNT(*) FROM code_issues i WHERE i.project = p.id AND i.state = 'open') AS open_issues,
    (SELECT COUNT(*) FROM code_merge_requests r WHERE r.project = p.id AND r.state = 'open') AS open_requests
FROM code_projects p JOIN code_namespaces n ON n.id = p.namespace
"""


@dataclass(frozen=True, slots=True)
class Project:
    """A project and the visitor's role in it. `row` has its columns and some counts; `role` is "" for non-members."""

    row: Any
    role: str

    def __getattr__(self, name: str) -> Any:
        """Return a column, so that templates can use `project.slug`."""
        if name in self.row.keys():  # noqa: SIM118  # `in` on a sqlite3.Row searches the values
            return self.row[name]
        raise AttributeError(name)

    @property
    def url(self) -> str:
        """Path of the project: "/olga/tidewatch"."""
        return f"/{self.row['path']}/{self.row['slug']}"

    @property
    def title(self) -> str:
        """Full name: "Olga Becker / Tidewatch"."""
        return f"{self.row['space']} / {self.row['name']}"

    def may(self, role: str) -> bool:
        """Return True if the visitor has at least this role and the project is not archived."""
        return not self.row["archived"] and self.is_at_least(role)

    def is_at_least(self, role: str) -> bool:
        """Return True if the visitor has at least this role."""
        return bool(self.role) and ROLES.index(self.role) >= ROLES.index(role)

    @property
    def topic_list(self) -> list[str]:
        """Topics of the project."""
        return [topic for topic in self.row["topics"].split(", ") if topic]


@dataclass(frozen=True, slots=True)
class Group:
    """A group and the visitor's role in it."""

    row: Any
    role: str

    @property
    def url(self) -> str:
        """Path of the group."""
        return f"/{self.row['path']}"

    def may(self, role: str) -> bool:
        """Return True if the visitor has at least this role."""
        return bool(self.role) and ROLES.index(self.role) >= ROLES.index(role)


def find_project(context: RequestContext, space: str, slug: str, need: str = "") -> Project:
    """Return the project at a path. Raises NotFound if it is not visible, Forbidden without the needed role."""
    row = context.one(f"{_PROJECT} WHERE n.path = ?2 COLLATE NOCASE AND p.slug = ?3 COLLATE NOCASE",
                      context.account, space, slug)  # fmt: skip
    project = Project(row, _stronger(row["own_role"], row["group_role"]))
    if not project.role and not _open_to(row["visibility"], context.account):
        raise NotFound
    if need:
        require_role(context, project, need)
    return project


def require_role(context: RequestContext, project: Project, role: str) -> None:
    """Raise LoginRequired or Forbidden unless the visitor has this role and the project is not archived."""
    context.require_login()
    context.require(not project.archived, "This project is archived. Nothing in it can be changed.")
    context.require(project.may(role), f"You need to be at least {role} of this project to do this.")


def require_participant(context: RequestContext, project: Project) -> int:
    """Return the account of a visitor who may open issues and comment: anyone who sees the project."""
    account = context.require_login()
    context.require(not project.archived, "This project is archived. Nothing in it can be changed.")
    return account


def find_group(context: RequestContext, path: str, need: str = "") -> Group:
    """Return the group at a path. Raises NotFound if it is not visible, Forbidden without the needed role."""
    row = context.one("SELECT * FROM code_namespaces WHERE path = ? COLLATE NOCASE AND account IS NULL", path)
    role = context.value(
        "SELECT role FROM code_group_members WHERE namespace = ? AND account = ?", row["id"], context.account
    )
    group = Group(row, role or "")
    if not role and not _open_to(row["visibility"], context.account):
        raise NotFound
    if need:
        context.require_login()
        context.require(group.may(need), f"You need to be at least {need} of this group to do this.")
    return group


def _stronger(one: str | None, other: str | None) -> str:
    roles = [role for role in (one, other) if role]
    return max(roles, key=ROLES.index) if roles else ""


def _open_to(visibility: str, account: int) -> bool:
    return visibility == "public" or (visibility == "internal" and account > 0)

"""Which project or group a page is about, and what the visitor may do there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound

ROLES = ("Guest", "Reporter", "Developer", "Maintainer", "Owner")
"""By rising power."""
VISIBLE = (
    "(p.visibility = 'public' OR (p.visibility = 'internal' AND ?1 > 0)"
    " OR EXISTS (SELECT 1 FROM code_members m WHERE m.project = p.id AND m.account = ?1)"
    " OR EXISTS (SELECT 1 FROM code_group_members g WHERE g.namespace = p.namespace AND g.account = ?1))"
)
"""Condition for projects `p` that account ?1 may see."""
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
    """A project as the visitor sees it. `row` has its columns and what its pages count; `role` is "" for strangers."""

    row: Any
    role: str

    def __getattr__(self, name: str) -> Any:
        """A column, so that templates can say `project.slug`."""
        if name in self.row.keys():  # noqa: SIM118  # a Row's own `in` looks at values
            return self.row[name]
        raise AttributeError(name)

    @property
    def url(self) -> str:
        """The path of its page: "/olga/tidewatch"."""
        return f"/{self.row['path']}/{self.row['slug']}"

    @property
    def title(self) -> str:
        """As search results call it: "Olga Becker / Tidewatch"."""
        return f"{self.row['space']} / {self.row['name']}"

    def may(self, role: str) -> bool:
        """Whether the visitor may do what takes a role, given that the project can be changed at all."""
        return not self.row["archived"] and self.is_at_least(role)

    def is_at_least(self, role: str) -> bool:
        """Whether the visitor has a role or a greater one."""
        return bool(self.role) and ROLES.index(self.role) >= ROLES.index(role)

    @property
    def topic_list(self) -> list[str]:
        """Its topics."""
        return [topic for topic in self.row["topics"].split(", ") if topic]


@dataclass(frozen=True, slots=True)
class Group:
    """A group as the visitor sees it."""

    row: Any
    role: str

    @property
    def url(self) -> str:
        """The path of its page."""
        return f"/{self.row['path']}"

    def may(self, role: str) -> bool:
        """Whether the visitor has a role or a greater one."""
        return bool(self.role) and ROLES.index(self.role) >= ROLES.index(role)


def find_project(context: RequestContext, space: str, slug: str, need: str = "") -> Project:
    """The project of an address. Raises Missing if there is none to be seen; Forbidden without the role needed."""
    found = context.one(f"{_PROJECT} WHERE n.path = ?2 COLLATE NOCASE AND p.slug = ?3 COLLATE NOCASE",
                      context.account, space, slug)  # fmt: skip
    project = Project(found, _stronger(found["own_role"], found["group_role"]))
    if not project.role and not _open_to(found["visibility"], context.account):
        raise NotFound
    if need:
        must_have(context, project, need)
    return project


def must_have(context: RequestContext, project: Project, role: str) -> None:
    """Raise SignInFirst or Forbidden, with the reason, unless the visitor has a role and the project is alive."""
    context.require_login()
    context.require(not project.archived, "This project is archived. Nothing in it can be changed.")
    context.require(project.may(role), f"You need to be at least {role} of this project to do this.")


def must_take_part(context: RequestContext, project: Project) -> int:
    """The account of a visitor who may open issues and comment here, which all may who see the project."""
    account = context.require_login()
    context.require(not project.archived, "This project is archived. Nothing in it can be changed.")
    return account


def find_group(context: RequestContext, path: str, need: str = "") -> Group:
    """The group of an address. Raises Missing if there is none to be seen; Forbidden without the role needed."""
    found = context.one("SELECT * FROM code_namespaces WHERE path = ? COLLATE NOCASE AND account IS NULL", path)
    role = context.value(
        "SELECT role FROM code_group_members WHERE namespace = ? AND account = ?", found["id"], context.account
    )
    group = Group(found, role or "")
    if not role and not _open_to(found["visibility"], context.account):
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

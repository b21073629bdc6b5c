"""A client of the code hosting site in a separate episode."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentgym_envs.webarena.sites.framework.site import PASSWORD
from tests.webarena.embedded import Visitor


class Code(Visitor):
    def __init__(self) -> None:
        super().__init__("code")
        self.me = self.value("SELECT user FROM code_accounts WHERE id = 1")

    def row(self, query: str, *arguments: Any) -> dict[str, Any]:
        return dict(self.episode.database.execute(query, arguments).fetchone())

    def project(self, condition: str, *arguments: Any) -> dict[str, Any]:
        query = f"""SELECT p.*, '/' || n.path || '/' || p.slug AS url FROM code_projects p
        JOIN code_namespaces n ON n.id = p.namespace WHERE NOT p.archived AND {condition} ORDER BY p.id"""
        return self.row(query, *arguments)

    def mine(self) -> dict[str, Any]:
        return self.project("n.account = 1 AND p.visibility = 'public'")

    def as_role(self, role: str) -> dict[str, Any]:
        return self.project("p.id IN (SELECT project FROM code_members WHERE account = 1 AND role = ?)", role)

    def added(self, table: str) -> list[dict[str, Any]]:
        changes = [change for change in self.changes() if change.table == table and change.before is None]
        return [dict(change.after or {}) for change in changes]

    def tables(self) -> Counter[str]:
        return Counter(change.table for change in self.changes())

    def leave(self, user: str) -> None:
        """Sign in as another user."""
        self.post("/sign-in", user=user, password=PASSWORD)

"""Code hosting in an episode of its own, as tests ask it."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from html import unescape
from typing import Any

from agentgym_envs.webarena.evaluators.state import Change, differences
from agentgym_envs.webarena.sites.kit.app import make_app
from agentgym_envs.webarena.sites.kit.site import ORIGINS, PASSWORD
from agentgym_envs.webarena.sites.world import FREE
from tests.webarena.embedded import client


@cache
def _app() -> Any:
    return make_app(origins={"code": ORIGINS["code"]})


class Code:
    """The site in an episode of its own."""

    def __init__(self) -> None:
        self.asks, self.episode = client("code", app=_app())
        self.me = self.value("SELECT user FROM code_accounts WHERE id = 1")

    def value(self, query: str, *arguments: Any) -> Any:
        row = self.episode.database.execute(query, arguments).fetchone()
        return None if row is None else row[0]

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

    def get(self, path: str, status: int = 200) -> str:
        answer = self.asks.get(path)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return unescape(re.sub(r"\s+", " ", answer.text))

    def post(self, path: str, status: int = 303, /, **form: Any) -> str:
        answer = self.asks.post(path, data=form)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return str(answer.headers.get("location", answer.text))

    def changes(self) -> list[Change]:
        return differences(self.episode.world.database, self.episode.database, FREE)

    def added(self, table: str) -> list[dict[str, Any]]:
        changes = [change for change in self.changes() if change.table == table and change.before is None]
        return [dict(change.after or {}) for change in changes]

    def tables(self) -> Counter[str]:
        return Counter(change.table for change in self.changes())

    def leave(self, user: str) -> None:
        """Go on as somebody else."""
        self.post("/sign-in", user=user, password=PASSWORD)

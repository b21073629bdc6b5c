"""A client of the administration for tests."""

from __future__ import annotations

import html
import re
from typing import Any

from agentgym_envs.webarena.evaluators.state import Change, differences
from agentgym_envs.webarena.sites.world import World
from tests.webarena.embedded import client

HOSTILE = "<script>alert(1)</script>\"'{{ 7*7 }}%_\\;--"
OPEN = "status = 'pending' AND NOT EXISTS (SELECT 1 FROM shop_invoices WHERE order_id = shop_orders.id)"
"""SQL: an order that allows every action."""
ADDRESS = {
    "name": "Ada Holm",
    "street": "1 Mill Road",
    "town": "Redbrook",
    "region": "Glenmarch",
    "zip": "79001",
    "phone": "045 555 1000",
}


class Office:
    """An HTTP client of the administration, in an episode of its own."""

    def __init__(self) -> None:
        self.http, self.episode = client("admin")
        self.world: World = self.episode.world
        tables = self.world.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.others = [row[0] for row in tables if not row[0].startswith("shop_")]

    def get(self, path: str, answers: int = 200) -> str:
        answer = self.http.get(path)
        assert answer.status_code == answers, (path, answer.status_code, self.episode.failures)
        return html.unescape(answer.text)

    def post(self, path: str, answers: Any = 303, headers: Any = None, **fields: Any) -> Any:
        answer = self.http.post(path, data=fields, headers=headers)
        assert answer.status_code == answers, (path, answer.status_code, self.episode.failures)
        return answer

    def changes(self) -> list[Change]:
        """Return the changes of the shop's tables."""
        return differences(self.world.database, self.episode.database, self.others)

    def changed(self) -> list[tuple[Any, ...]]:
        """Return (table, id, changed columns with their new values) of each row that differs."""
        return [(c.table, c.key, {name: (c.after or {})[name] for name in c.columns}) for c in self.changes()]

    def one(self, query: str, *arguments: Any) -> Any:
        """Return a row of the original world."""
        return self.world.rows(query, *arguments)[0]

    def value(self, query: str, *arguments: Any) -> Any:
        """Return a value of the current database."""
        return self.episode.database.execute(query, arguments).fetchone()[0]


def cells(page: str) -> list[list[str]]:
    """Return the texts of the first table with a body."""
    body = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert body is not None, page
    rows = re.findall(r"<tr>(.*?)</tr>", body[1], re.DOTALL)
    return [[plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)] for row in rows]


def plain(text: str) -> str:
    """Return the text without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text)).strip()


def found(page: str) -> int:
    """Return the number of records that a grid reports."""
    match = re.search(r"([\d,]+) records? found", page)
    assert match is not None, page
    return int(match[1].replace(",", ""))

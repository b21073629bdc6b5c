"""The administration in an episode, for its tests."""

from __future__ import annotations

import html
import re
from typing import Any

from agentgym_envs.webarena.evaluators.state import Change, differences
from agentgym_envs.webarena.sites.world import World
from tests.webarena.embedded import client

HOSTILE = "<script>alert(1)</script>\"'{{ 7*7 }}%_\\;--"
OPEN = "status = 'pending' AND NOT EXISTS (SELECT 1 FROM shop_invoices WHERE order_id = shop_orders.id)"
"""A condition on orders with which everything may still be done."""
ADDRESS = {
    "name": "Ada Holm",
    "street": "1 Mill Road",
    "town": "Redbrook",
    "region": "Glenmarch",
    "zip": "79001",
    "phone": "045 555 1000",
}


class Office:
    """The administration in an episode of its own."""

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
        """What is different in the shop's tables."""
        return differences(self.world.database, self.episode.database, self.others)

    def changed(self) -> list[tuple[Any, ...]]:
        """(table, id, columns and what they hold now) of each row that differs."""
        return [(c.table, c.key, {name: (c.after or {})[name] for name in c.columns}) for c in self.changes()]

    def one(self, query: str, *arguments: Any) -> Any:
        """A row of the world as it was."""
        return self.world.rows(query, *arguments)[0]

    def value(self, query: str, *arguments: Any) -> Any:
        """A value as it is now."""
        return self.episode.database.execute(query, arguments).fetchone()[0]


def cells(page: str) -> list[list[str]]:
    """What the rows of a page's first table with a body say."""
    body = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert body is not None, page
    rows = re.findall(r"<tr>(.*?)</tr>", body[1], re.DOTALL)
    return [[plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)] for row in rows]


def plain(text: str) -> str:
    """The text between tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text)).strip()


def found(page: str) -> int:
    """How many rows a grid says that there are."""
    match = re.search(r"([\d,]+) records? found", page)
    assert match is not None, page
    return int(match[1].replace(",", ""))

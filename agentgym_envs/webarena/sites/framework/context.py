"""`RequestContext`: one request to a site, as its handlers see it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.responses import Forbidden, Missing, Page, Redirect, SignInFirst


@dataclass(eq=False)
class RequestContext:
    """One request of an episode to a site.

    `account` is the number of who is signed in, 0 if nobody is. `origins` are the addresses of all sites by their
    names, such as "http://shop.test". Only a POST may write.
    """

    site: str
    method: str
    path: str
    query: Fields
    form: Fields
    database: sqlite3.Connection
    account: int
    origins: Mapping[str, str]
    referrer: str = ""
    cookie: str = ""
    """The name of the cookie that tells who is signed in."""
    world: int = 0
    """The seed of the world, for what a site keeps of one between requests."""
    cookies: dict[str, str] = field(default_factory=dict)
    """Cookies to set with the answer."""

    def rows(self, query: str, *arguments: Any) -> list[sqlite3.Row]:
        """All rows of a query. Values are always given as arguments (?), never put into the text."""
        return self.database.execute(query, arguments).fetchall()

    def row(self, query: str, *arguments: Any) -> sqlite3.Row | None:
        """The first row of a query, if it has one."""
        found: sqlite3.Row | None = self.database.execute(query, arguments).fetchone()
        return found

    def one(self, query: str, *arguments: Any) -> sqlite3.Row:
        """The first row of a query. Raises Missing if it has none."""
        found = self.row(query, *arguments)
        if found is None:
            raise Missing
        return found

    def value(self, query: str, *arguments: Any) -> Any:
        """The first column of the first row of a query, None if it has none."""
        found = self.row(query, *arguments)
        return None if found is None else found[0]

    def write(self, query: str, *arguments: Any) -> int:
        """Change the database; returns the id of the row that was added, if one was."""
        assert self.method == "POST", "what only looks changes nothing"
        return self.database.execute(query, arguments).lastrowid or 0

    def insert(self, table: str, values: Mapping[str, Any]) -> int:
        """Add a row with these columns; returns its id."""
        marks = ", ".join("?" * len(values))
        return self.write(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", *values.values())

    def update(self, table: str, row: int, values: Mapping[str, Any]) -> None:
        """Set these columns, at least one, of the row with an id."""
        settings = ", ".join(f"{name} = ?" for name in values)
        self.write(f"UPDATE {table} SET {settings} WHERE id = ?", *values.values(), row)

    def say(self, text: str, kind: str = "success") -> None:
        """Tell the visitor something on the next page: "success", "error" or "notice"."""
        self.write("INSERT INTO web_messages (site, kind, text) VALUES (?, ?, ?)", self.site, kind, text)

    def page(self, template: str, status: int = 200, **values: Any) -> Page:
        """A page of this site, made with these values."""
        return Page(template, values, status)

    def back(self, otherwise: str = "/") -> Redirect:
        """To the page of this site that the visitor came from."""
        came = urlsplit(self.referrer)
        if f"{came.scheme}://{came.netloc}" != self.origins[self.site]:
            return Redirect(otherwise)
        return Redirect(local(came.path + (f"?{came.query}" if came.query else "")))

    def must_be_signed_in(self) -> int:
        """The account. Raises SignInFirst."""
        if not self.account:
            raise SignInFirst
        return self.account

    def must(self, allowed: object, why: str = "You may not do this.") -> None:
        """Raises Forbidden unless `allowed`."""
        if not allowed:
            raise Forbidden(why)

    @property
    def here(self) -> str:
        """Path and query."""
        query = self.query.changed()
        return self.path + (query if len(query) > 1 else "")


def local(path: str) -> str:
    """A path of the same site; "/" for anything that leads elsewhere."""
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") else "/"

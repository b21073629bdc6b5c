"""`RequestContext`: one request to a site, passed to its handlers."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.responses import (
    Forbidden,
    LoginRequired,
    NotFound,
    Redirect,
    TemplateResponse,
)

if TYPE_CHECKING:
    from agentgym_envs.webarena.sites.world import World


@dataclass(eq=False)
class RequestContext:
    """One request of an episode to a site.

    `account` is the id of the signed-in account, 0 if no account is signed in. `origins` maps the names of all sites to
    their origins, such as "http://shop.test". Only a POST may write.
    """

    site: str
    method: str
    path: str
    query: Fields
    form: Fields
    database: sqlite3.Connection
    account: int
    origins: Mapping[str, str]
    referrer: str
    cookie: str
    """Name of the login cookie."""
    world: World
    """The state at the start of the episode, the key for what a site caches between requests."""
    cookies: dict[str, str] = field(default_factory=dict)
    """Cookies to set with the response."""

    def rows(self, query: str, *arguments: Any) -> list[sqlite3.Row]:
        """Return all rows of a query. Pass values as arguments (?), never in the query text."""
        return self.database.execute(query, arguments).fetchall()

    def row(self, query: str, *arguments: Any) -> sqlite3.Row | None:
        """Return the first row of a query, None if there is no row."""
        row: sqlite3.Row | None = self.database.execute(query, arguments).fetchone()
        return row

    def one(self, query: str, *arguments: Any) -> sqlite3.Row:
        """Return the first row of a query. Raises NotFound if there is no row."""
        row = self.row(query, *arguments)
        if row is None:
            raise NotFound
        return row

    def value(self, query: str, *arguments: Any) -> Any:
        """Return the first column of the first row of a query, None if there is no row."""
        row = self.row(query, *arguments)
        return None if row is None else row[0]

    def write(self, query: str, *arguments: Any) -> int:
        """Execute a statement that changes the database; return the id of an inserted row."""
        assert self.method == "POST", "only a POST request may write"
        return self.database.execute(query, arguments).lastrowid or 0

    def insert(self, table: str, values: Mapping[str, Any]) -> int:
        """Insert a row with these columns; return its id."""
        marks = ", ".join("?" * len(values))
        return self.write(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", *values.values())

    def update(self, table: str, row: int, values: Mapping[str, Any]) -> None:
        """Set these columns (at least one) of the row with this id."""
        settings = ", ".join(f"{name} = ?" for name in values)
        self.write(f"UPDATE {table} SET {settings} WHERE id = ?", *values.values(), row)

    def flash(self, text: str, kind: str = "success") -> None:
        """Show a message on the next page; `kind` is "success", "error" or "notice"."""
        self.write("INSERT INTO web_messages (site, kind, text) VALUES (?, ?, ?)", self.site, kind, text)

    def page(self, template: str, status: int = 200, **values: Any) -> TemplateResponse:
        """Return a page of this site, rendered from a template with these values."""
        return TemplateResponse(template, values, status)

    def redirect_back(self, otherwise: str = "/") -> Redirect:
        """Redirect to the page of this site that the request came from."""
        came = urlsplit(self.referrer)
        if f"{came.scheme}://{came.netloc}" != self.origins[self.site]:
            return Redirect(otherwise)
        return Redirect(local_path(came.path + (f"?{came.query}" if came.query else "")))

    def require_login(self) -> int:
        """Return the signed-in account. Raises LoginRequired."""
        if not self.account:
            raise LoginRequired
        return self.account

    def require(self, allowed: object, why: str = "You may not do this.") -> None:
        """Raise Forbidden unless `allowed` is true."""
        if not allowed:
            raise Forbidden(why)

    @property
    def path_and_query(self) -> str:
        """Path and query string of the request."""
        query = self.query.changed()
        return self.path + (query if len(query) > 1 else "")


def local_path(path: str) -> str:
    """Return the path if it is on the same site, otherwise "/"."""
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") else "/"

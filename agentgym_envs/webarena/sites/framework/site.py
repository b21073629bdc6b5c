"""`Site`: the description of one of the six sites, with its routes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Response

Handler = Callable[..., Response]
"""Takes the request context, and the path parameters as keyword arguments."""
HOSTS = {
    "shop": "shop.test",
    "admin": "admin.test",
    "forum": "forum.test",
    "code": "code.test",
    "maps": "map.test",
    "encyclopedia": "encyclopedia.test",
}
"""Hosts of the sites in the agent's browser."""
ORIGINS = {name: f"http://{host}" for name, host in HOSTS.items()}
PASSWORD = "opensesame"
"""Password of every account on every site."""


class SiteRoute(NamedTuple):
    """A handler for a method and a path in Starlette's syntax: "/product/{slug}", "/orders/{number:int}"."""

    method: str
    path: str
    handler: Handler


@dataclass(frozen=True, slots=True)
class Routes:
    """Collects the handlers of a module. The first route that matches a path is used."""

    all: list[SiteRoute] = field(default_factory=list)

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """Decorate a handler of GET requests."""
        return self._route("GET", path)

    def post(self, path: str) -> Callable[[Handler], Handler]:
        """Decorate a handler of POST requests."""
        return self._route("POST", path)

    def _route(self, method: str, path: str) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            self.all.append(SiteRoute(method, path, handler))
            return handler

        return add


@dataclass(frozen=True, slots=True)
class Site:
    """One of the six sites.

    `layout` returns the values that the template of every page needs, such as the number of items in the cart.
    `filters` are additional Jinja filters. `find_account` returns the id of the account with this user name, or 0.
    `default_account` is signed in at the start of an episode. Templates and static files are in the folders templates/
    and static/ of the site's package.
    """

    name: str
    title: str
    routes: tuple[SiteRoute, ...]
    layout: Callable[[RequestContext], Mapping[str, Any]]
    find_account: Callable[[sqlite3.Connection, str], int]
    default_account: Callable[[sqlite3.Connection], int]
    filters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Folder of the site's package."""
        return Path(str(files(f"agentgym_envs.webarena.sites.{self.name}")))


@cache
def load_site(name: str) -> Site:
    """Return the site of this name."""
    site: Site = import_module(f"agentgym_envs.webarena.sites.{name}.site").SITE
    return site

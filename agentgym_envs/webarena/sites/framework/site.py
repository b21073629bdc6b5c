"""`Site`: one of the five, with its routes."""

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
"""Takes the visit and, by their names, the parts of the path that are in braces."""
HOSTS = {"shop": "shop.test", "admin": "admin.test", "forum": "forum.test", "code": "code.test", "maps": "map.test"}
"""The hosts under which an agent's browser finds the sites."""
ORIGINS = {name: f"http://{host}" for name, host in HOSTS.items()}
PASSWORD = "opensesame"
"""Of every account on every site."""


class Route(NamedTuple):
    """A handler for a method and a path, in Starlette's form: "/product/{slug}", "/orders/{number:int}"."""

    method: str
    path: str
    handler: Handler


@dataclass(frozen=True, slots=True)
class Routes:
    """Collects handlers; the first that fits a path counts."""

    all: list[Route] = field(default_factory=list)

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """Decorates what shows a page."""
        return self._route("GET", path)

    def post(self, path: str) -> Callable[[Handler], Handler]:
        """Decorates what a form is sent to."""
        return self._route("POST", path)

    def _route(self, method: str, path: str) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            self.all.append(Route(method, path, handler))
            return handler

        return add


@dataclass(frozen=True, slots=True)
class Site:
    """A site.

    `layout` gives the values that every page's template needs (a cart's count, unread messages); `filters` are more
    filters for templates. `account` finds who signs in under a name, 0 if nobody; `owner` is who is signed in from the
    beginning. Templates and static files lie beside the module: templates/, static/.
    """

    name: str
    title: str
    routes: tuple[Route, ...]
    layout: Callable[[RequestContext], Mapping[str, Any]]
    account: Callable[[sqlite3.Connection, str], int]
    owner: Callable[[sqlite3.Connection], int]
    filters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where its templates and static files are."""
        return Path(str(files(f"agentgym_envs.webarena.sites.{self.name}")))


@cache
def site(name: str) -> Site:
    """The site of that name."""
    found: Site = import_module(f"agentgym_envs.webarena.sites.{name}.site").SITE
    return found

"""What a site's handler may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Page:
    """A template of the site, filled in."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """Go elsewhere: a path of the same site, or a URL."""

    to: str


@dataclass(frozen=True, slots=True)
class Data:
    """Anything else, such as a picture or JSON."""

    body: str | bytes
    kind: str = "text/plain; charset=utf-8"
    status: int = 200


Response: TypeAlias = Page | Redirect | Data


class Missing(Exception):
    """There is no such page: the site answers 404, with the reason on the page."""


class Forbidden(Exception):
    """Whoever asks may not: the site answers 403, with the reason on the page."""


class SignInFirst(Exception):
    """Only who is signed in may: leads to the site's page for that, and back afterwards."""

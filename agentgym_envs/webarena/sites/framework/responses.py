"""The responses and exceptions that a handler may return or raise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class TemplateResponse:
    """A template of the site and the values to render it with."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect to a path of the same site or to a URL."""

    to: str


@dataclass(frozen=True, slots=True)
class RawResponse:
    """Any other response, such as an image or JSON."""

    body: str | bytes
    media_type: str = "text/plain; charset=utf-8"
    status: int = 200


Response: TypeAlias = TemplateResponse | Redirect | RawResponse


class NotFound(Exception):
    """Raised if the page does not exist: status 404, with the reason on the page."""


class Forbidden(Exception):
    """Raised if the account lacks permission: status 403, with the reason on the page."""


class LoginRequired(Exception):
    """Raised if no account is signed in: redirects to the login page, and back after the login."""

"""The addresses of the sites, and their placeholders in task files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from agentgym_envs.errors import UsageError

SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage")
"""Every site of WebArena. In a task file, `__SHOPPING_ADMIN__` represents the address of one."""
_PLACEHOLDER = re.compile("__(" + "|".join(map(str.upper, SITES)) + ")__")


@dataclass(frozen=True, slots=True)
class SiteAddresses:
    """The addresses of the configured sites by name, without a trailing slash."""

    urls: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, str] | None = None) -> SiteAddresses:
        """Read the addresses from a mapping or, without one, from the environment variables. Raises UsageError."""
        if given is None:
            named = {site: _from_environment(site) for site in SITES}
            return cls({site: _checked(url, where) for site, (where, url) in named.items() if url})
        if not isinstance(given, Mapping) or (set(given) - set(SITES)):
            raise UsageError(f"sites are given as a mapping of names out of {', '.join(SITES)} to URLs, got {given!r}")
        return cls({site: _checked(given[site], f"sites[{site!r}]") for site in SITES if given.get(site)})

    def fill(self, value: Any) -> Any:
        """Replace the placeholders of these sites in a JSON value by their addresses."""
        if isinstance(value, str):
            return _PLACEHOLDER.sub(lambda found: self.urls.get(found[1].lower(), found[0]), value)
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        return {name: self.fill(item) for name, item in value.items()} if isinstance(value, dict) else value

    def missing(self, sites: Iterable[str]) -> tuple[str, ...]:
        """The sites without an address."""
        return tuple(site for site in sites if site not in self.urls)


def variables(site: str) -> tuple[str, str]:
    """The environment variables for a site's address: BrowserGym's, which takes precedence, and WebArena's."""
    return f"WA_{site.upper()}", site.upper()


def placeholders(text: str) -> list[str]:
    """The sites whose placeholders a text contains, each once."""
    return list(dict.fromkeys(found.lower() for found in _PLACEHOLDER.findall(text)))


def _from_environment(site: str) -> tuple[str, str]:
    for name in variables(site):
        if url := os.environ.get(name, "").strip():
            return name, url
    return "", ""


def _checked(url: str, where: str) -> str:
    parts = urlsplit(url.strip()) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{where} must be an address that begins with http:// or https://, got {url!r}")
    if parts.username is not None or parts.query or parts.fragment:
        raise UsageError(f"{where} must be an address without a user, a query and a fragment, got {url!r}")
    return url.strip().rstrip("/")

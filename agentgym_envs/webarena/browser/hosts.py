"""The hosts that a browser may reach. No other host name resolves, for the agent, a page or a redirect."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from agentgym_envs.errors import InvalidAction, UsageError

PORTS = {"http": 80, "https": 443}
"""The schemes that an agent may use, and their default ports."""
BLANK = "about:blank"
_MAX_LISTED = 10
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\Z")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)


class HostPort(NamedTuple):
    """A host and a port. The host is in lower case; an IP address is in its canonical form."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HostRules:
    """The hosts and ports that a browser may reach. A host that begins with "*." matches every subdomain.

    Attributes:
        mapped: pairs of a name and its real address, such as ("shop.test:80", "127.0.0.1:41234"), for local sites.
        direct: hosts that are reached under their own names.
    """

    mapped: tuple[tuple[str, str], ...] = ()
    direct: tuple[str, ...] = ()

    @classmethod
    def of(cls, *, mapped: Mapping[str, str] | None = None, urls: Iterable[str] = ()) -> HostRules:
        """Make rules from local sites (name -> address) and from the URLs of other sites. Raises UsageError."""
        pairs = sorted((str(_parse_pattern(name)), target) for name, target in (mapped or {}).items())
        return cls(tuple(pairs), tuple(sorted({str(_host_port_of_url(url)) for url in urls})))

    @property
    def resolver_rules(self) -> str:
        """The value of Chromium's `--host-resolver-rules`. The first match applies, to names and IP addresses alike."""
        mapped = [f"MAP {name} {target}" for name, target in self.mapped]
        direct = [f"MAP {name} {name}" for name in self.direct]
        return ", ".join([*mapped, *direct, "MAP * ~NOTFOUND"])

    def allows(self, url: str) -> bool:
        """Return True if a page at `url` may be shown."""
        try:
            self.check(url)
        except InvalidAction:
            return False
        return True

    def check(self, url: str) -> str:
        """Return the URL, with http:// added if it has no scheme. Raises InvalidAction if it may not be visited."""
        url = url.strip()
        if url == BLANK:
            return url
        parts = _split(url if _SCHEME.match(url) or url.startswith("//") else f"http://{url}")
        if parts.scheme not in PORTS:
            raise InvalidAction("Only addresses that begin with http:// or https:// can be visited.")
        if parts.username is not None or parts.password is not None:
            raise InvalidAction("An address with a user name or password in it cannot be visited.")
        if not self._includes(_host_port_of(parts)):
            raise InvalidAction(f"{parts.netloc[:100]!r} cannot be visited here, only {self._listed()}.")
        return parts.geturl()

    def _listed(self) -> str:
        """The hosts as an agent would write them, without the default port of http."""
        names = [name.removesuffix(":80") for name in (*(name for name, _ in self.mapped), *self.direct)]
        return ", ".join(names[:_MAX_LISTED]) or "nothing"

    def _includes(self, host_port: HostPort) -> bool:
        patterns = [HostPort(*_split_port(name)) for name in (*(name for name, _ in self.mapped), *self.direct)]
        return any(_matches(pattern, host_port) for pattern in patterns)


def _matches(pattern: HostPort, actual: HostPort) -> bool:
    if pattern.port != actual.port:
        return False
    if pattern.host.startswith("*."):
        return actual.host.endswith(pattern.host[1:]) and bool(_NAME.match(actual.host))
    return actual.host == pattern.host


def _split(url: str) -> SplitResult:
    """Split a URL. Refuse backslashes and control characters, which a browser would read differently."""
    try:
        if re.search(r"[\x00-\x20\x7f\\]", url):
            raise ValueError
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise InvalidAction(f"{url!r:.200} is not an address. Write one such as http://example.com/page.") from None
    if not parts.hostname and parts.scheme in PORTS:
        raise InvalidAction(f"{url!r:.200} is not an address. Write one such as http://example.com/page.")
    return parts


def _host_port_of(parts: SplitResult) -> HostPort:
    return HostPort(
        _canonical_host(parts.hostname or ""), PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    )


def _canonical_host(host: str) -> str:
    """An IP address as `ipaddress` writes it, or a name in lower case."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower()


def _split_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return _canonical_host(host.strip("[]")), int(port)


def _parse_pattern(name: str) -> HostPort:
    """Parse a host with an optional port, "shop.test" or "shop.test:8080". Raises UsageError."""
    host, colon, port = name.rpartition(":")
    host, port = (host, port) if colon and port.isdigit() else (name, "80")
    if not _NAME.match(host.lower().removeprefix("*.")) or not 0 < int(port) < 65_536:
        raise UsageError(f'a host is written as "shop.test", "*.test" or "shop.test:8080", got {name!r}')
    return HostPort(host.lower(), int(port))


def _host_port_of_url(url: str) -> HostPort:
    try:
        found = _host_port_of(urlsplit(url))
    except (AttributeError, TypeError, ValueError):
        found = HostPort("", 0)
    if not found.port or not (_NAME.match(found.host) or ":" in found.host):
        raise UsageError(f"the address of a site begins with http:// or https://, got {url!r}")
    return found

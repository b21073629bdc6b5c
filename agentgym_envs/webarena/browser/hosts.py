"""Which hosts a browser may reach. Everything else does not resolve, whoever asks: the agent, a page or a redirect."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from agentgym_envs.errors import InvalidAction, UsageError

PORTS = {"http": 80, "https": 443}
"""The schemes that an agent may use, and their usual ports."""
BLANK = "about:blank"
_MOST_NAMED = 10
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\Z")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)


class Place(NamedTuple):
    """A host in lower case, in the spelling of an address if it is one, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HostRules:
    """Hosts and ports that may be reached.

    `mapped` are pairs of a place and where it really is, such as ("shop.test:80", "127.0.0.1:41234"): sites of this
    process. `direct` are places that are what they are called. A host may begin with "*.", which stands for every
    host below it.
    """

    mapped: tuple[tuple[str, str], ...] = ()
    direct: tuple[str, ...] = ()

    @classmethod
    def of(cls, *, mapped: Mapping[str, str] | None = None, urls: Iterable[str] = ()) -> HostRules:
        """Rules from places of this process, and from the URLs of sites elsewhere. Raises UsageError."""
        pairs = sorted((str(_place(name)), target) for name, target in (mapped or {}).items())
        return cls(tuple(pairs), tuple(sorted({str(_place_of_url(url)) for url in urls})))

    @property
    def resolver_rules(self) -> str:
        """For Chromium's `--host-resolver-rules`: the first rule that fits counts, and names and addresses alike."""
        mapped = [f"MAP {place} {target}" for place, target in self.mapped]
        direct = [f"MAP {place} {place}" for place in self.direct]
        return ", ".join([*mapped, *direct, "MAP * ~NOTFOUND"])

    def allows(self, url: str) -> bool:
        """Whether a page at `url` may be shown."""
        try:
            self.check(url)
        except InvalidAction:
            return False
        return True

    def check(self, url: str) -> str:
        """The URL, with http:// before it if it has no scheme. Raises InvalidAction if it may not be visited."""
        url = url.strip()
        if url == BLANK:
            return url
        parts = _split(url if _SCHEME.match(url) or url.startswith("//") else f"http://{url}")
        if parts.scheme not in PORTS:
            raise InvalidAction("Only addresses that begin with http:// or https:// can be visited.")
        if parts.username is not None or parts.password is not None:
            raise InvalidAction("An address with a user name or password in it cannot be visited.")
        if not self._knows(_place_of(parts)):
            raise InvalidAction(f"{parts.netloc[:100]!r} cannot be visited here, only {self._named()}.")
        return parts.geturl()

    def _named(self) -> str:
        """The hosts as an agent would write them, without the usual port of http."""
        names = [name.removesuffix(":80") for name in (*(name for name, _ in self.mapped), *self.direct)]
        return ", ".join(names[:_MOST_NAMED]) or "nothing"

    def _knows(self, place: Place) -> bool:
        known = [Place(*_parse(name)) for name in (*(name for name, _ in self.mapped), *self.direct)]
        return any(_fits(pattern, place) for pattern in known)


def _fits(pattern: Place, place: Place) -> bool:
    if pattern.port != place.port:
        return False
    if pattern.host.startswith("*."):
        return place.host.endswith(pattern.host[1:]) and bool(_NAME.match(place.host))
    return place.host == pattern.host


def _split(url: str) -> SplitResult:
    """The parts of what may be a URL. Backslashes and control characters mean one thing here, another to a browser."""
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


def _place_of(parts: SplitResult) -> Place:
    return Place(_plain_host(parts.hostname or ""), PORTS.get(parts.scheme, 0) if parts.port is None else parts.port)


def _plain_host(host: str) -> str:
    """One spelling for a host: addresses as `ipaddress` writes them, names in lower case."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower()


def _parse(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    return _plain_host(host.strip("[]")), int(port)


def _place(name: str) -> Place:
    """A place as the programmer writes it, "shop.test" or "shop.test:8080"."""
    host, colon, port = name.rpartition(":")
    host, port = (host, port) if colon and port.isdigit() else (name, "80")
    if not _NAME.match(host.lower().removeprefix("*.")) or not 0 < int(port) < 65_536:
        raise UsageError(f'a host is written as "shop.test", "*.test" or "shop.test:8080", got {name!r}')
    return Place(host.lower(), int(port))


def _place_of_url(url: str) -> Place:
    try:
        place = _place_of(urlsplit(url))
    except (AttributeError, TypeError, ValueError):
        place = Place("", 0)
    if not place.port or not (_NAME.match(place.host) or ":" in place.host):
        raise UsageError(f"the address of a site begins with http:// or https://, got {url!r}")
    return place

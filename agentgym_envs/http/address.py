"""The addresses of servers: `http://`, `https://`, and `unix:` for a socket in the file system."""

from __future__ import annotations

from typing import Any, NamedTuple

import httpx

from agentgym_envs.errors import UsageError
from agentgym_envs.http.unix_socket import UNIX, socket_path


class ServerAddress(NamedTuple):
    """The place of a server. `url` is the base of all requests; `socket_path` is the path of a Unix socket."""

    url: httpx.URL
    socket_path: str | None = None


def parse_address(text: Any) -> ServerAddress | None:
    """Parse an address; None if it is not one."""
    if not isinstance(text, str):
        return None
    try:
        if text.startswith(UNIX):
            return ServerAddress(httpx.URL("http://localhost"), socket_path(text))
        url = httpx.URL(text)
    except (UsageError, httpx.InvalidURL):
        return None
    valid = url.scheme in ("http", "https") and url.host and not url.query and (url.port or 0) < 2**16
    return ServerAddress(url) if valid else None

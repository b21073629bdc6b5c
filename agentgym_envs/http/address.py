"""The addresses of servers: `http://`, `https://`, and `unix:` for a socket in the file system."""

from __future__ import annotations

from typing import Any, NamedTuple

import httpx

UNIX = "unix:"
_SOCKET_PATH_BYTES = 107  # the limit of Linux, without the final zero byte


class ServerAddress(NamedTuple):
    """Where a server listens. `url` is the base of all requests; `socket_path` is the path of a Unix socket."""

    url: httpx.URL
    socket_path: str | None = None


def parse_address(text: Any) -> ServerAddress | None:
    """Parse an address; None if it is not one."""
    if not isinstance(text, str):
        return None
    if text.startswith(UNIX):
        path = socket_path_of(text)
        return None if path is None else ServerAddress(httpx.URL("http://localhost"), path)
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return None
    valid = url.scheme in ("http", "https") and url.host and not url.query and (url.port or 0) < 2**16
    return ServerAddress(url) if valid else None


def socket_path_of(text: str) -> str | None:
    """The absolute path in `unix:/path` or `unix:///path`; None if there is none, or it is too long for a socket."""
    path = text.removeprefix(UNIX)
    path = path.removeprefix("//") if path.startswith("///") else path
    valid = path.startswith("/") and not path.endswith("/") and "\0" not in path
    return path if valid and len(path.encode("utf-8", "surrogateescape")) <= _SOCKET_PATH_BYTES else None

"""Recording of the requests of a person's browser, in the form of an agent's recorded requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from agentgym_envs.webarena.browser.sites import App

MOST_ENTRIES = 5_000
_PAGES = (b"document", b"iframe")


@dataclass(eq=False)
class RecordingProxy:
    """An ASGI application around the sites that records their requests.

    `names` maps the hosts of this server to the origins that agents see ("shop.agentgym.localhost" to
    "http://shop.test"). The recorded URLs have these origins. `entries` are HAR entries; the oldest are dropped.
    """

    app: App
    names: Mapping[str, str]
    url: str = ""
    """URL of the page that was opened last."""
    entries: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    """Number of requests so far. If it is unchanged, the state of the sites is unchanged."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Forward a request to the sites and record it."""
        body, status = bytearray(), 0

        async def record_body() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def record_status(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self.app(scope, record_body, record_status)
        self._record(scope, bytes(body), status)

    def _record(self, scope: Any, body: bytes, status: int) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").partition(":")[0]
        if host not in self.names:
            return
        query = scope["query_string"].decode("latin-1")
        url = self.names[host] + scope["path"] + (f"?{query}" if query else "")
        if headers.get(b"sec-fetch-dest") in _PAGES and not 300 <= status < 400:
            self.url = url
        self.count += 1
        self.entries.append(_entry(scope["method"], url, headers, body, status))
        del self.entries[:-MOST_ENTRIES]

    def local_url(self, url: str, port: int) -> str:
        """Convert a URL with an agent's origin to the URL on this server."""
        parts = urlsplit(url)
        hosts = {origin: host for host, origin in self.names.items()}
        host = hosts[f"{parts.scheme}://{parts.netloc}"]
        return f"http://{host}:{port}{parts.path}" + (f"?{parts.query}" if parts.query else "")

    def clear(self) -> None:
        """Drop all recorded requests."""
        self.entries.clear()
        self.url = ""
        self.count += 1


def _entry(method: str, url: str, headers: Mapping[bytes, bytes], body: bytes, status: int) -> dict[str, Any]:
    listed = [{"name": n.decode("latin-1"), "value": v.decode("latin-1")} for n, v in headers.items()]
    request: dict[str, Any] = {"method": method, "url": url, "headers": listed}
    if body:
        kind = headers.get(b"content-type", b"").decode("latin-1")
        request["postData"] = {"mimeType": kind, "text": body.decode("utf-8", "replace")}
    return {"request": request, "response": {"status": status, "headers": []}}

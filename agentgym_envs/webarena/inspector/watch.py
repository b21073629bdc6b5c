"""What a person's browser asks of the sites, kept as an agent's would be recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from agentgym_envs.webarena.browser.sites import App

MOST_ENTRIES = 5_000
_PAGES = (b"document", b"iframe")


@dataclass(eq=False)
class Watch:
    """An ASGI application around the sites that notes requests down.

    `names` are the hosts of this server and what an agent calls them ("shop.agentgym.localhost": "http://shop.test"),
    so that what is noted reads as if an agent had been there. `entries` are HAR's, the oldest dropped.
    """

    app: App
    names: Mapping[str, str]
    url: str = ""
    """The page that was visited last."""
    entries: list[dict[str, Any]] = field(default_factory=list)
    seen: int = 0
    """How many requests there were: what came of the sites may have changed when this has."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        body, status = bytearray(), 0

        async def received() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def sent(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self.app(scope, received, sent)
        self._note(scope, bytes(body), status)

    def _note(self, scope: Any, body: bytes, status: int) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").partition(":")[0]
        if host not in self.names:
            return
        query = scope["query_string"].decode("latin-1")
        url = self.names[host] + scope["path"] + (f"?{query}" if query else "")
        if headers.get(b"sec-fetch-dest") in _PAGES and not 300 <= status < 400:
            self.url = url
        self.seen += 1
        self.entries.append(_entry(scope["method"], url, headers, body, status))
        del self.entries[:-MOST_ENTRIES]

    def address_here(self, url: str, port: int) -> str:
        """What an agent's URL is called on this server."""
        parts = urlsplit(url)
        hosts = {origin: host for host, origin in self.names.items()}
        host = hosts[f"{parts.scheme}://{parts.netloc}"]
        return f"http://{host}:{port}{parts.path}" + (f"?{parts.query}" if parts.query else "")

    def forget(self) -> None:
        """Begin anew."""
        self.entries.clear()
        self.url = ""
        self.seen += 1


def _entry(method: str, url: str, headers: Mapping[bytes, bytes], body: bytes, status: int) -> dict[str, Any]:
    listed = [{"name": n.decode("latin-1"), "value": v.decode("latin-1")} for n, v in headers.items()]
    request: dict[str, Any] = {"method": method, "url": url, "headers": listed}
    if body:
        kind = headers.get(b"content-type", b"").decode("latin-1")
        request["postData"] = {"mimeType": kind, "text": body.decode("utf-8", "replace")}
    return {"request": request, "response": {"status": status, "headers": []}}

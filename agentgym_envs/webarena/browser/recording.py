"""The requests of a browser context, recorded in the HTTP Archive format."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Request, Response

MAX_REQUESTS = 5_000
"""The number of requests kept; the oldest are dropped first."""
MAX_BODY = 1_000_000
"""The longest response body kept, in characters. Only JSON bodies are kept, since no evaluator reads others."""


class RequestRecorder:
    """Records the requests of a context and their responses."""

    def __init__(self, context: BrowserContext) -> None:
        self._kept: deque[tuple[Request, datetime]] = deque(maxlen=MAX_REQUESTS)
        self._responses: dict[Request, Response] = {}
        context.on("request", self._record)
        self._finished: set[Request] = set()
        context.on("response", self._record_response)
        context.on(
            "requestfinished", lambda request: self._finished.add(request)
        )  # no built-in method: Playwright sets an attribute on the handler

    async def har(self) -> list[dict[str, Any]]:
        """The entries in the order of the requests; a request without a response has the status -1.

        Does not wait for open requests, which may never end.
        """
        return list(await asyncio.gather(*(self._entry(request, start) for request, start in self._kept)))

    def _record(self, request: Request) -> None:
        if len(self._kept) == MAX_REQUESTS:
            oldest = self._kept[0][0]
            self._responses.pop(oldest, None)
            self._finished.discard(oldest)
        self._kept.append((request, datetime.now(UTC)))

    def _record_response(self, response: Response) -> None:
        self._responses[response.request] = response

    async def _entry(self, request: Request, start: datetime) -> dict[str, Any]:
        """Return a request with its response.

        Source: HTTP Archive 1.2, http://www.softwareishard.com/blog/har-12-spec/.
        """
        response = self._responses.get(request)
        sent = {
            "method": request.method,
            "url": request.url,
            "headers": _pairs(request.headers if response is None else await request.all_headers()),
            **_post_data(request),
        }
        received: dict[str, Any] = {"status": -1, "headers": []}
        if response is not None:
            received = await _response(response, request in self._finished)
        kind = request.resource_type
        return {"startedDateTime": start.isoformat(), "_resourceType": kind, "request": sent, "response": received}


async def _response(response: Response, finished: bool) -> dict[str, Any]:
    kind = response.headers.get("content-type", "")
    entry: dict[str, Any] = {"status": response.status, "headers": _pairs(await response.all_headers())}
    if finished and "json" in kind:
        entry["content"] = {"mimeType": kind, "text": await _body(response)}
    return entry


async def _body(response: Response) -> str:
    """The body; empty if the browser has discarded it, as it does after leaving the page."""
    from playwright.async_api import Error

    try:
        return (await response.text())[:MAX_BODY]
    except Error:
        return ""


def _pairs(headers: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers.items()]


def _post_data(request: Request) -> dict[str, Any]:
    body = request.post_data_buffer
    if body is None:
        return {}
    kind = request.headers.get("content-type", "")
    return {"postData": {"mimeType": kind, "text": body.decode("utf-8", "replace")}}

"""What a browser asked for, kept as the HTTP Archive format tells it."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Request

MOST_REQUESTS = 5_000
"""Of more, the last ones are kept."""


class Requests:
    """Keeps the requests of a context."""

    def __init__(self, context: BrowserContext) -> None:
        self._kept: deque[tuple[Request, datetime]] = deque(maxlen=MOST_REQUESTS)
        context.on("request", self._keep)

    async def har(self) -> list[dict[str, Any]]:
        """The entries, in the order in which they were asked for."""
        return list(await asyncio.gather(*(_entry(request, began) for request, began in self._kept)))

    def _keep(self, request: Request) -> None:
        self._kept.append((request, datetime.now(UTC)))


async def _entry(request: Request, began: datetime) -> dict[str, Any]:
    """A request and its answer.

    Source: HTTP Archive 1.2, http://www.softwareishard.com/blog/har-12-spec/.
    """
    response = await request.response() if request.failure is None else None
    return {
        "startedDateTime": began.isoformat(),
        "_resourceType": request.resource_type,
        "request": {
            "method": request.method,
            "url": request.url,
            "headers": _pairs(await request.all_headers()),
            **_post_data(request),
        },
        "response": {
            "status": -1 if response is None else response.status,
            "headers": [] if response is None else _pairs(await response.all_headers()),
        },
    }


def _pairs(headers: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers.items()]


def _post_data(request: Request) -> dict[str, Any]:
    body = request.post_data_buffer
    if body is None:
        return {}
    kind = request.headers.get("content-type", "")
    return {"postData": {"mimeType": kind, "text": body.decode("utf-8", "replace")}}

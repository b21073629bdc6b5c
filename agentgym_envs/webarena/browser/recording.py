"""What a browser asked for, kept as the HTTP Archive format tells it."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Request, Response

MOST_REQUESTS = 5_000
"""Of more, the last ones are kept."""
MOST_BODY = 1_000_000
"""Bodies of answers are kept up to so many characters, and only of JSON: no evaluator reads others."""


class Requests:
    """Keeps the requests of a context, and the answers that have come."""

    def __init__(self, context: BrowserContext) -> None:
        self._kept: deque[tuple[Request, datetime]] = deque(maxlen=MOST_REQUESTS)
        self._answers: dict[Request, Response] = {}
        context.on("request", self._keep)
        self._finished: set[Request] = set()
        context.on("response", self._keep_answer)
        context.on("requestfinished", lambda request: self._finished.add(request))  # Playwright marks what it is given

    async def har(self) -> list[dict[str, Any]]:
        """The entries, in the order in which they were asked for; of one without an answer the status is -1.

        Nothing is waited for that has not come yet, since it may never.
        """
        return list(await asyncio.gather(*(self._entry(request, began) for request, began in self._kept)))

    def _keep(self, request: Request) -> None:
        if len(self._kept) == MOST_REQUESTS:
            oldest = self._kept[0][0]
            self._answers.pop(oldest, None)
            self._finished.discard(oldest)
        self._kept.append((request, datetime.now(UTC)))

    def _keep_answer(self, response: Response) -> None:
        self._answers[response.request] = response

    async def _entry(self, request: Request, began: datetime) -> dict[str, Any]:
        """A request and its answer.

        Source: HTTP Archive 1.2, http://www.softwareishard.com/blog/har-12-spec/.
        """
        response = self._answers.get(request)
        asked = {
            "method": request.method,
            "url": request.url,
            "headers": _pairs(request.headers if response is None else await request.all_headers()),
            **_post_data(request),
        }
        answer: dict[str, Any] = {"status": -1, "headers": []}
        if response is not None:
            answer = await _answer(response, request in self._finished)
        kind = request.resource_type
        return {"startedDateTime": began.isoformat(), "_resourceType": kind, "request": asked, "response": answer}


async def _answer(response: Response, finished: bool) -> dict[str, Any]:
    kind = response.headers.get("content-type", "")
    told: dict[str, Any] = {"status": response.status, "headers": _pairs(await response.all_headers())}
    if finished and "json" in kind:
        told["content"] = {"mimeType": kind, "text": await _body(response)}
    return told


async def _body(response: Response) -> str:
    """The body, empty if it is no more to be had: browsers keep those of the page that is shown."""
    from playwright.async_api import Error

    try:
        return (await response.text())[:MOST_BODY]
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

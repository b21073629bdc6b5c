"""Requests to a model server: repeated with backoff, spaced by a rate limit, and counted."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_envs.errors import EngineError

if TYPE_CHECKING:
    import httpx

_ATTEMPTS = 3
_LIMITED_ATTEMPTS = 8
"""Attempts at a request that the server refuses because there are too many. The others wait as well."""
_LONGEST_WAIT = 300.0
"""Seconds; a server that asks for more, such as a daily limit, ends the run."""
_jitter = random.SystemRandom()  # independent of the global seed


@dataclass(slots=True)
class RequestCounts:
    """The requests of this process: those sent, those sent again, and the replies that asked to slow down."""

    sent: int = 0
    repeated: int = 0
    rate_limited: int = 0


class Pace:
    """Spaces the requests to a server. When the server asks to slow down, all of them wait."""

    def __init__(self, per_minute: float | None = None, remedy: str = "") -> None:
        """Allow this number of requests per minute; any number without one.

        `remedy` says how to lower it, in the error for a server that still refuses requests.
        """
        self.remedy = remedy
        self.counts = RequestCounts()
        self._gap, self._next, self._closed_until = 60 / per_minute if per_minute else 0.0, 0.0, 0.0

    async def wait(self) -> None:
        """Wait until a request may be sent, and count it."""
        waited_until = time.monotonic()
        begin = max(waited_until, self._next)
        self._next = begin + self._gap
        while (end := max(begin, self._closed_until)) > waited_until:  # a reply may prolong the wait meanwhile
            await asyncio.sleep(end - waited_until)
            waited_until = end
        self.counts.sent += 1

    def slow_down(self, seconds: float) -> None:
        """Let all requests wait for this time."""
        self.counts.rate_limited += 1
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)


class _Failure(NamedTuple):
    """A failed attempt: the problem, whether another attempt may help, and the seconds that the server asks for."""

    problem: str
    repeatable: bool = True
    limited: bool = False
    wait: float = 0.0


async def post_json(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], pace: Pace | None = None
) -> dict[str, Any]:
    """POST and return the JSON reply.

    Connection errors and status 5xx are repeated up to twice, status 429 up to seven times and not before the time that
    the server asks for. Raises EngineError after that, and for any other status than 200.
    """
    pace, failed, limited = pace or Pace(), 0, 0
    while True:
        await pace.wait()
        reply = await _attempt(client, path, body)
        if not isinstance(reply, _Failure):
            return reply
        failed, limited = failed + (not reply.limited), limited + reply.limited
        seconds = max(reply.wait, _backoff(limited if reply.limited else failed))
        if not reply.repeatable or failed == _ATTEMPTS or limited == _LIMITED_ATTEMPTS or seconds > _LONGEST_WAIT:
            raise EngineError(f"{client.base_url}{path} {reply.problem}{_remedy(reply, seconds, pace)}")
        pace.counts.repeated += 1
        if reply.limited:
            pace.slow_down(seconds)
        else:
            await asyncio.sleep(seconds)


async def _attempt(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any] | _Failure:
    import httpx

    try:
        response = await client.post(path, json=body)
    except httpx.RequestError as error:
        return _Failure(f"did not answer: {type(error).__name__}: {error}")
    if response.status_code == 200:
        return _read_json(client, path, response)
    problem = f"answered HTTP {response.status_code}: {response.text[:300]}"
    if response.status_code == 429:
        return _Failure(problem, "insufficient_quota" not in response.text, True, _asked_wait(response.headers))
    return _Failure(problem, response.status_code >= 500, wait=_asked_wait(response.headers))


def _backoff(attempt: int) -> float:
    """Seconds before the next attempt: 1, 2, 4 and so on, up to a quarter more, so that requests do not meet again."""
    return 2.0 ** (attempt - 1) * _jitter.uniform(1, 1.25)


def _asked_wait(headers: httpx.Headers) -> float:
    """The seconds that a reply asks to wait, by Retry-After (a number or a date) or OpenAI's `retry-after-ms`."""
    try:
        if "retry-after-ms" in headers:
            return float(headers["retry-after-ms"]) / 1000
        return max(0.0, float(headers.get("retry-after", 0)))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (ValueError, KeyError):
        return 0.0


def _remedy(failure: _Failure, seconds: float, pace: Pace) -> str:
    if seconds > _LONGEST_WAIT:
        return f"; it asks to wait {seconds:.0f} s: continue the run later"
    return f"; {pace.remedy}" if pace.remedy and failure.limited and failure.repeatable else ""


def _read_json(client: httpx.AsyncClient, path: str, response: httpx.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise EngineError(
            f"{client.base_url}{path} answered something that is not a JSON object: {response.text[:300]!r}; "
            "is this the address of an OpenAI-compatible server, up to and including /v1?"
        )
    return answer

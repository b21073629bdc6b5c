"""Requests to one HTTP service, with bounded retries, for the retrievers and rerankers behind HTTP."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakKeyDictionary

from agentgym_envs.errors import RetrieverError, UsageError

_ATTEMPTS = 5
_FIRST_PAUSE = 0.1
_MAX_REPLY_BYTES = 64_000_000
_random = random.SystemRandom()  # independent of the global seed, and different in forked processes


T = TypeVar("T")


class Server(NamedTuple):
    """The URL of a service, the same without credentials for messages, and whether it uses TLS."""

    url: str
    shown: str
    encrypted: bool


class HttpRequest(NamedTuple):
    """A request; `headers` are added to those of the client."""

    method: str
    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}


class _Retryable(Exception):
    """Raised when an attempt fails with a temporary error; the service may have said how long to wait."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


class HttpClient:
    """Sends requests. Threads, event loops and forked processes may share it; each has its own connections.

    Temporary errors (no connection, a timeout, status 429 or 5xx) are retried: at most five attempts, within the
    deadline, and not before the time that the service asks for. Any other status than 200 raises RetrieverError.
    """

    def __init__(
        self,
        service: str,
        *,
        timeout: float = 10.0,
        deadline: float = 60.0,
        headers: Mapping[str, str] | None = None,
        encrypted: bool = True,
        hints: Mapping[int, str] | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Set the service and its limits; connects at the first request.

        Args:
            service: what errors call the service, without credentials.
            timeout: seconds for an attempt.
            deadline: seconds for all attempts at the requests of a search.
            headers: sent with every request.
            encrypted: false if no request needs TLS; then certificates, which load slowly, are not loaded.
            hints: what to do, by status; added to the error.
            redact: removes secrets from the text of an error.
        """
        self._service, self._timeout, self._deadline = service, timeout, deadline
        self._headers, self._encrypted = dict(headers or {}), encrypted
        self._hints, self._redact = hints or {}, redact
        self._clients: dict[int, Any] = {}  # httpx.Client by process
        self._async_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncGenerator[Any], Any]]
        self._async_clients = WeakKeyDictionary()

    def end(self) -> float:
        """Return the time (of `time.monotonic`) at which a search that starts now must end."""
        return time.monotonic() + self._deadline

    def send(self, request: HttpRequest, end: float) -> bytes:
        """Return the body of the reply. Raises RetrieverError."""
        attempts = _Attempts(self, end)
        while True:
            try:
                return self._try(request, min(self._timeout, attempts.seconds_left()))
            except _Retryable as error:
                time.sleep(attempts.pause(error))

    async def asend(self, request: HttpRequest, end: float) -> bytes:
        """Return the body of the reply without blocking the event loop. Raises RetrieverError."""
        attempts = _Attempts(self, end)
        while True:
            try:
                return await self._atry(request, min(self._timeout, attempts.seconds_left()))
            except _Retryable as error:
                await asyncio.sleep(attempts.pause(error))

    def close(self) -> None:
        """Close the connections of this process. Those of an event loop are closed when the loop ends."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def failure(self, text: str) -> RetrieverError:
        """Make an error of the service, without secrets."""
        return RetrieverError(self._redact(f"{self._service} {text}"))

    def _try(self, request: HttpRequest, seconds: float) -> bytes:
        import httpx

        end, body = time.monotonic() + seconds, bytearray()
        try:
            with self._client().stream(**_arguments(request), timeout=seconds) as response:
                for chunk in response.iter_bytes():
                    self._add(body, chunk)
                    if time.monotonic() > end:
                        raise _Retryable(f"no complete answer within {seconds:.3g} s")
        except httpx.RequestError as error:
            raise _Retryable(f"{type(error).__name__}: {error}") from None
        return self._check(response, body)

    async def _atry(self, request: HttpRequest, seconds: float) -> bytes:
        import httpx

        client, body = await self._async_client(), bytearray()
        try:
            async with asyncio.timeout(seconds), client.stream(**_arguments(request)) as response:
                async for chunk in response.aiter_bytes():
                    self._add(body, chunk)
        except TimeoutError:
            raise _Retryable(f"no complete answer within {seconds:.3g} s") from None
        except httpx.RequestError as error:
            raise _Retryable(f"{type(error).__name__}: {error}") from None
        return self._check(response, body)

    def _add(self, body: bytearray, chunk: bytes) -> None:
        body += chunk
        if len(body) > _MAX_REPLY_BYTES:
            raise self.failure(f"answers with more than {_MAX_REPLY_BYTES:,} bytes")

    def _check(self, response: Any, body: bytearray) -> bytes:
        """Return the body if the status is 200. Raises RetrieverError, or _Retryable for a temporary error."""
        status = response.status_code
        if status == 200:
            return bytes(body)
        why = f"status {status}: {body[:300].decode(errors='replace')}"
        if status == 429 or status >= 500:
            raise _Retryable(why, _seconds(response.headers.get("retry-after")))
        hint = f"; {self._hints[status]}" if status in self._hints else ""
        raise self.failure(f"refused: {why}{hint}")

    def _client(self) -> Any:
        """Return the httpx.Client of this process; a forked process does not use the connections of its parent."""
        import httpx

        process = os.getpid()
        client = self._clients.get(process)
        if client is None:
            new = httpx.Client(headers=self._headers, verify=self._encrypted)
            client = self._clients.setdefault(process, new)
            if client is not new:  # another thread was faster
                new.close()
        return client

    async def _async_client(self) -> Any:
        """Return the httpx.AsyncClient of this event loop.

        An asynchronous generator holds it, because an event loop that ends closes its generators.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._async_clients:
            holder = self._hold_client()
            self._async_clients[loop] = holder, await anext(holder)
        return self._async_clients[loop][1]

    async def _hold_client(self) -> AsyncGenerator[Any]:
        import httpx

        try:
            async with httpx.AsyncClient(headers=self._headers, verify=self._encrypted, timeout=None) as client:
                yield client
        finally:  # the generator keeps its loop alive
            self._async_clients.pop(asyncio.get_running_loop(), None)


class _Attempts:
    """Counts the attempts at a request, and the time left."""

    def __init__(self, client: HttpClient, end: float) -> None:
        self._client, self._end, self._made, self._why = client, end, 0, "no request was sent"

    def seconds_left(self) -> float:
        """Seconds until the end. Raises RetrieverError if the end has passed."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self._give_up()
        return left

    def pause(self, why: _Retryable) -> float:
        """Seconds to wait before the next attempt. Raises RetrieverError if there is no next attempt."""
        self._why, self._made = str(why), self._made + 1
        seconds = max(why.wait, _FIRST_PAUSE * 2.0 ** (self._made - 1) * _random.uniform(0.5, 1.5))
        if self._made == _ATTEMPTS or self._end - time.monotonic() <= seconds:
            raise self._give_up()
        return seconds

    def _give_up(self) -> RetrieverError:
        within = f"within its {self._client._deadline:g} s"
        return self._client.failure(f"failed {self._made} times {within}; last error: {self._why}")


def _arguments(request: HttpRequest) -> dict[str, Any]:
    return {"method": request.method, "url": request.url, "content": request.body, "headers": request.headers}


def _seconds(retry_after: str | None) -> float:
    """The seconds of a Retry-After header; 0 if there is none, or if it is a date."""
    return float(retry_after) if retry_after and retry_after.isdecimal() else 0.0


def parse_server(url: str, path: str, what: str) -> Server:
    """Parse the URL of a service; `path` is added if it has none. Raises UsageError if it is not an HTTP URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"the URL of {what} is like http://127.0.0.1:8000{path}, not {url!r}")
    parts = parts._replace(path=parts.path.rstrip("/") or path)
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
    return Server(urlunsplit(parts), urlunsplit(shown), parts.scheme == "https")


async def gather_or_cancel(tasks: Sequence[asyncio.Task[T]]) -> list[T]:
    """Await all tasks. If one fails, or the caller is cancelled, cancel the others."""
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()

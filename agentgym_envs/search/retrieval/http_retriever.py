"""A search engine behind HTTP: Search-R1's retrieval server, ours, and others with a compatible protocol.

Source: https://github.com/PeterGriffinJin/Search-R1 (search_r1/search/retrieval_server.py)
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakKeyDictionary

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval.base import Hit, Retriever, check_queries
from agentgym_envs.search.retrieval.wire import DIALECTS, Dialect, read_results, write_requests

_ATTEMPTS = 5
_FIRST_PAUSE = 0.1
_MAX_REPLY_BYTES = 64_000_000
_random = random.SystemRandom()  # independent of the global seed, and different in forked processes


class _Retryable(Exception):
    """Raised when an attempt fails with a temporary error."""


class HttpRetriever(Retriever):
    """Queries a server. Threads, event loops and forked processes may share it; each has its own connections.

    Temporary errors (no connection, a timeout, status 429 or 5xx) are retried: at most five attempts, within the
    deadline. Any other unexpected reply raises RetrieverError.
    """

    waits: ClassVar[bool] = True

    def __init__(
        self,
        url: str,
        dialect: Dialect = "search-r1",
        timeout: float = 10.0,
        deadline: float = 60.0,
        token: str | None = None,
    ) -> None:
        """Set the server and its limits; connects at the first search.

        Args:
            url: the URL; without a path, /retrieve is appended.
            dialect: the form of requests.
            timeout: seconds for a request.
            deadline: seconds for a search, including all attempts.
            token: sent as a bearer token.

        Raises:
            UsageError: the dialect does not exist, or `url` is not an HTTP URL.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"the URL of a retrieval server is like http://127.0.0.1:8000/retrieve, not {url!r}")
        if dialect not in DIALECTS:
            raise UsageError(f"there is no dialect {dialect!r}; choose one of {', '.join(DIALECTS)}")
        parts = parts._replace(path=parts.path.rstrip("/") or "/retrieve")
        self.url = urlunsplit(parts)
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        self._shown = urlunsplit(shown)  # without credentials, for error messages
        self._encrypted = parts.scheme == "https"  # without TLS, the slow loading of certificates is skipped
        self._arguments = (url, dialect, timeout, deadline, token)
        self._dialect, self._timeout, self._deadline = dialect, timeout, deadline
        self._headers = {"content-type": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self._clients: dict[int, Any] = {}  # httpx.Client by process
        self._async_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncGenerator[Any], Any]]
        self._async_clients = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return HttpRetriever, self._arguments

    def __deepcopy__(self, memo: dict[int, Any]) -> HttpRetriever:
        return self

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Send the queries and return the results."""
        checked, indices = self._select(queries, k)
        attempts = _Attempts(self._shown, self._deadline)
        found = []
        for size, body in write_requests([checked[index] for index in indices], k, self._dialect):
            found += self._read(self._send(body, attempts), size, k)
        return _scatter(found, indices, len(checked))

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Send the queries concurrently and return the results."""
        checked, indices = self._select(queries, k)
        end = _Attempts(self._shown, self._deadline).end
        requests = write_requests([checked[index] for index in indices], k, self._dialect)
        tasks = [asyncio.create_task(self._asend(body, end)) for _, body in requests]
        try:
            replies = await asyncio.gather(*tasks)
        finally:  # if one failed or the caller was cancelled, stop the others
            for task in tasks:
                task.cancel()
        found = []
        for (size, _), reply in zip(requests, replies, strict=True):
            found += self._read(reply, size, k)
        return _scatter(found, indices, len(checked))

    def describe(self) -> dict[str, Any]:
        """Return the URL without credentials, and the dialect."""
        return {"engine": "http", "url": self._shown, "dialect": self._dialect}

    def close(self) -> None:
        """Close the connections of this process. Those of an event loop are closed when the loop ends."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def _select(self, queries: Sequence[str], k: int) -> tuple[list[str], list[int]]:
        """Return the queries, and the indices of those that are not blank."""
        checked = check_queries(queries, k)
        return checked, [index for index, query in enumerate(checked) if k > 0 and query.strip()]

    def _read(self, reply: bytes, queries: int, k: int) -> list[list[Hit]]:
        try:
            return read_results(reply, queries, k)
        except ValueError as error:
            raise RetrieverError(f"the retrieval server {self._shown} answered with {error}") from None

    def _send(self, body: bytes, attempts: _Attempts) -> bytes:
        attempts.begin()
        while True:
            try:
                return self._post(body, min(self._timeout, attempts.seconds_left()))
            except _Retryable as error:
                time.sleep(attempts.pause(error))

    async def _asend(self, body: bytes, end: float) -> bytes:
        attempts = _Attempts(self._shown, self._deadline, end)
        while True:
            try:
                return await self._apost(body, min(self._timeout, attempts.seconds_left()))
            except _Retryable as error:
                await asyncio.sleep(attempts.pause(error))

    def _post(self, body: bytes, seconds: float) -> bytes:
        import httpx

        end, reply = time.monotonic() + seconds, _Reply(self._shown)
        try:
            with self._client().stream("POST", self.url, content=body, timeout=seconds) as response:
                for chunk in response.iter_bytes():
                    reply.add(chunk)
                    if time.monotonic() > end:
                        raise _Retryable(f"no complete answer within {seconds:.3g} s")
        except httpx.RequestError as error:
            raise _Retryable(f"{type(error).__name__}: {error}") from None
        return reply.check(response.status_code)

    async def _apost(self, body: bytes, seconds: float) -> bytes:
        import httpx

        client, reply = await self._async_client(), _Reply(self._shown)
        try:
            async with asyncio.timeout(seconds), client.stream("POST", self.url, content=body) as response:
                async for chunk in response.aiter_bytes():
                    reply.add(chunk)
        except TimeoutError:
            raise _Retryable(f"no complete answer within {seconds:.3g} s") from None
        except httpx.RequestError as error:
            raise _Retryable(f"{type(error).__name__}: {error}") from None
        return reply.check(response.status_code)

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

    def __init__(self, url: str, deadline: float, end: float | None = None) -> None:
        """Set the end, by default `deadline` seconds from now."""
        self.end = time.monotonic() + deadline if end is None else end
        self._url, self._deadline, self._made, self._why = url, deadline, 0, "no request was sent"

    def begin(self) -> None:
        """Reset the count for another request."""
        self._made = 0

    def seconds_left(self) -> float:
        """Seconds until the end. Raises RetrieverError if the end has passed."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise self._give_up()
        return left

    def pause(self, why: _Retryable) -> float:
        """Seconds to wait before the next attempt. Raises RetrieverError if there is no next attempt."""
        self._why, self._made = str(why), self._made + 1
        seconds = _FIRST_PAUSE * 2.0 ** (self._made - 1) * _random.uniform(0.5, 1.5)
        if self._made == _ATTEMPTS or self.end - time.monotonic() <= seconds:
            raise self._give_up()
        return seconds

    def _give_up(self) -> RetrieverError:
        return RetrieverError(
            f"the retrieval server {self._url} failed {self._made} times within its {self._deadline:g} s; "
            f"last error: {self._why}"
        )


class _Reply:
    """The body of a server's reply, as far as it has been received."""

    def __init__(self, url: str) -> None:
        self._url, self._body = url, bytearray()

    def add(self, chunk: bytes) -> None:
        """Append a chunk. Raises RetrieverError if the body becomes too long."""
        self._body += chunk
        if len(self._body) > _MAX_REPLY_BYTES:
            raise RetrieverError(f"the retrieval server {self._url} answers with more than {_MAX_REPLY_BYTES:,} bytes")

    def check(self, status: int) -> bytes:
        """Return the body if the status is 200. Raises RetrieverError, or _Retryable for a temporary error."""
        if status == 200:
            return bytes(self._body)
        why = f"status {status}: {self._body[:300].decode(errors='replace')}"
        if status == 429 or status >= 500:
            raise _Retryable(why)
        raise RetrieverError(f"the retrieval server {self._url} refused: {why}")


def _scatter(found: list[list[Hit]], indices: list[int], size: int) -> list[list[Hit]]:
    results: list[list[Hit]] = [[] for _ in range(size)]
    for index, hits in zip(indices, found, strict=True):
        results[index] = hits
    return results

"""A search engine behind HTTP: Search-R1's retrieval server, those that speak as it does, and ours.

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
_MOST_BYTES = 64_000_000
_random = random.SystemRandom()  # touches nobody's seed, and differs between forked processes


class _Failed(Exception):
    """An attempt failed in a way that may pass."""


class HttpRetriever(Retriever):
    """Asks a server. Threads, event loops and forked processes may share it; each has connections of its own.

    What may pass (no connection, no answer in time, status 429 or 5xx) is tried again, up to five times in all and
    within the deadline. Whatever else a server may answer, only passages become results.
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
        """`url` without a path means its /retrieve. A request has `timeout` seconds, a search `deadline` in all.

        `token` is sent as a bearer's. Raises UsageError for another dialect or what is no URL of HTTP.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"a retrieval server has a URL like http://127.0.0.1:8000/retrieve, not {url!r}")
        if dialect not in DIALECTS:
            raise UsageError(f"there is no dialect {dialect!r}; choose one of {', '.join(DIALECTS)}")
        parts = parts._replace(path=parts.path.rstrip("/") or "/retrieve")
        self.url = urlunsplit(parts)
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        self._shown = urlunsplit(shown)  # without secrets: errors may be read by strangers
        self._encrypted = parts.scheme == "https"  # else no certificates need to be loaded, which takes a while
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
        """See `Retriever.search`."""
        asked, places = self._sort_out(queries, k)
        tries = _Tries(self._shown, self._deadline)
        found = []
        for size, body in write_requests([asked[place] for place in places], k, self._dialect):
            found += self._read(self._ask(body, tries), size, k)
        return _spread(found, places, len(asked))

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """See `Retriever.asearch`."""
        asked, places = self._sort_out(queries, k)
        end = _Tries(self._shown, self._deadline).end
        requests = write_requests([asked[place] for place in places], k, self._dialect)
        tasks = [asyncio.create_task(self._aask(body, end)) for _, body in requests]
        try:
            replies = await asyncio.gather(*tasks)
        finally:  # if one failed, or the caller was cancelled, the others are of no use
            for task in tasks:
                task.cancel()
        found = []
        for (size, _), reply in zip(requests, replies, strict=True):
            found += self._read(reply, size, k)
        return _spread(found, places, len(asked))

    def describe(self) -> dict[str, Any]:
        """See `Retriever.describe`."""
        return {"engine": "http", "url": self._shown, "dialect": self._dialect}

    def close(self) -> None:
        """Close the connections of this process's threads; those of an event loop are closed when it ends."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def _sort_out(self, queries: Sequence[str], k: int) -> tuple[list[str], list[int]]:
        """The queries, and the places of those that ask for something."""
        asked = check_queries(queries, k)
        return asked, [place for place, query in enumerate(asked) if k > 0 and query.strip()]

    def _read(self, reply: bytes, queries: int, k: int) -> list[list[Hit]]:
        try:
            return read_results(reply, queries, k)
        except ValueError as error:
            raise RetrieverError(f"the retrieval server {self._shown} answered with {error}") from None

    def _ask(self, body: bytes, tries: _Tries) -> bytes:
        tries.begin()
        while True:
            try:
                return self._post(body, min(self._timeout, tries.left()))
            except _Failed as error:
                time.sleep(tries.pause(error))

    async def _aask(self, body: bytes, end: float) -> bytes:
        tries = _Tries(self._shown, self._deadline, end)
        while True:
            try:
                return await self._apost(body, min(self._timeout, tries.left()))
            except _Failed as error:
                await asyncio.sleep(tries.pause(error))

    def _post(self, body: bytes, seconds: float) -> bytes:
        import httpx

        end, reply = time.monotonic() + seconds, _Reply(self._shown)
        try:
            with self._client().stream("POST", self.url, content=body, timeout=seconds) as response:
                for chunk in response.iter_bytes():
                    reply.add(chunk)
                    if time.monotonic() > end:
                        raise _Failed(f"no whole answer within {seconds:.3g} s")
        except httpx.RequestError as error:
            raise _Failed(f"{type(error).__name__}: {error}") from None
        return reply.check(response.status_code)

    async def _apost(self, body: bytes, seconds: float) -> bytes:
        import httpx

        client, reply = await self._async_client(), _Reply(self._shown)
        try:
            async with asyncio.timeout(seconds), client.stream("POST", self.url, content=body) as response:
                async for chunk in response.aiter_bytes():
                    reply.add(chunk)
        except TimeoutError:
            raise _Failed(f"no whole answer within {seconds:.3g} s") from None
        except httpx.RequestError as error:
            raise _Failed(f"{type(error).__name__}: {error}") from None
        return reply.check(response.status_code)

    def _client(self) -> Any:
        """This process's httpx.Client: connections that a fork inherited are its parent's."""
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
        """This event loop's httpx.AsyncClient, held by an asynchronous generator: a loop that ends closes those."""
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
        finally:  # the generator holds its loop
            self._async_clients.pop(asyncio.get_running_loop(), None)


class _Tries:
    """The attempts at a request that are left, and the time."""

    def __init__(self, url: str, deadline: float, end: float | None = None) -> None:
        """The time is up at `end`, or `deadline` seconds from now."""
        self.end = time.monotonic() + deadline if end is None else end
        self._url, self._deadline, self._made, self._why = url, deadline, 0, "nothing was asked"

    def begin(self) -> None:
        """Count the attempts at another request."""
        self._made = 0

    def left(self) -> float:
        """Seconds until the time is up. Raises RetrieverError if it is."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise self._given_up()
        return left

    def pause(self, why: _Failed) -> float:
        """Seconds to wait before the next attempt. Raises RetrieverError if there is none."""
        self._why, self._made = str(why), self._made + 1
        seconds = _FIRST_PAUSE * 2.0 ** (self._made - 1) * _random.uniform(0.5, 1.5)
        if self._made == _ATTEMPTS or self.end - time.monotonic() <= seconds:
            raise self._given_up()
        return seconds

    def _given_up(self) -> RetrieverError:
        return RetrieverError(
            f"the retrieval server {self._url} failed {self._made} times within its {self._deadline:g} s; "
            f"at last: {self._why}"
        )


class _Reply:
    """What a server has answered so far."""

    def __init__(self, url: str) -> None:
        self._url, self._body = url, bytearray()

    def add(self, chunk: bytes) -> None:
        """Raises RetrieverError if it becomes too much."""
        self._body += chunk
        if len(self._body) > _MOST_BYTES:
            raise RetrieverError(f"the retrieval server {self._url} answers with more than {_MOST_BYTES:,} bytes")

    def check(self, status: int) -> bytes:
        """The body, if it is results. Raises RetrieverError, and _Failed if that may pass."""
        if status == 200:
            return bytes(self._body)
        why = f"status {status}: {self._body[:300].decode(errors='replace')}"
        if status == 429 or status >= 500:
            raise _Failed(why)
        raise RetrieverError(f"the retrieval server {self._url} refused: {why}")


def _spread(found: list[list[Hit]], places: list[int], size: int) -> list[list[Hit]]:
    results: list[list[Hit]] = [[] for _ in range(size)]
    for place, hits in zip(places, found, strict=True):
        results[place] = hits
    return results

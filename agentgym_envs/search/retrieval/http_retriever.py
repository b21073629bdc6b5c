"""A search engine behind HTTP: Search-R1's retrieval server, ours, and others with a compatible protocol.

Source: https://github.com/PeterGriffinJin/Search-R1 (search_r1/search/retrieval_server.py)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Hit, Retriever, check_queries
from agentgym_envs.search.retrieval.http_client import HttpClient, HttpRequest, gather_or_cancel, parse_server
from agentgym_envs.search.retrieval.wire import DIALECTS, Dialect, read_results, write_requests


class HttpRetriever(Retriever):
    """Queries a server. Threads, event loops and forked processes may share it; each has its own connections.

    Temporary errors are retried (see `HttpClient`). Any other unexpected reply raises RetrieverError.
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
        if dialect not in DIALECTS:
            raise UsageError(f"there is no dialect {dialect!r}; choose one of {', '.join(DIALECTS)}")
        server = parse_server(url, "/retrieve", "a retrieval server")
        self.url, self._shown = server.url, server.shown
        self._arguments = (url, dialect, timeout, deadline, token)
        self._dialect = dialect
        headers = {"content-type": "application/json"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        self._http = HttpClient(
            f"the retrieval server {self._shown}",
            timeout=timeout,
            deadline=deadline,
            headers=headers,
            encrypted=server.encrypted,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return HttpRetriever, self._arguments

    def __deepcopy__(self, memo: dict[int, Any]) -> HttpRetriever:
        return self

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Send the queries and return the results."""
        checked, indices = self._select(queries, k)
        end, found = self._http.end(), list[list[Hit]]()
        for size, body in write_requests([checked[index] for index in indices], k, self._dialect):
            found += self._read(self._http.send(self._request(body), end), size, k)
        return _scatter(found, indices, len(checked))

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Send the queries concurrently and return the results."""
        checked, indices = self._select(queries, k)
        end = self._http.end()
        requests = write_requests([checked[index] for index in indices], k, self._dialect)
        tasks = [asyncio.create_task(self._http.asend(self._request(body), end)) for _, body in requests]
        replies = await gather_or_cancel(tasks)
        found = []
        for (size, _), reply in zip(requests, replies, strict=True):
            found += self._read(reply, size, k)
        return _scatter(found, indices, len(checked))

    def describe(self) -> dict[str, Any]:
        """Return the URL without credentials, and the dialect."""
        return {"engine": "http", "url": self._shown, "dialect": self._dialect}

    def close(self) -> None:
        """Close the connections of this process. Those of an event loop are closed when the loop ends."""
        self._http.close()

    def _request(self, body: bytes) -> HttpRequest:
        return HttpRequest("POST", self.url, body)

    def _select(self, queries: Sequence[str], k: int) -> tuple[list[str], list[int]]:
        """Return the queries, and the indices of those that are not blank."""
        checked = check_queries(queries, k)
        return checked, [index for index, query in enumerate(checked) if k > 0 and query.strip()]

    def _read(self, reply: bytes, queries: int, k: int) -> list[list[Hit]]:
        try:
            return read_results(reply, queries, k)
        except ValueError as error:
            raise self._http.failure(f"answered with {error}") from None


def _scatter(found: list[list[Hit]], indices: list[int], size: int) -> list[list[Hit]]:
    results: list[list[Hit]] = [[] for _ in range(size)]
    for index, hits in zip(indices, found, strict=True):
        results[index] = hits
    return results

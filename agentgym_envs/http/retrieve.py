"""Search-R1's `POST /retrieve` over any search engine, on the server of the environments.

    create_app(ids, mounts=[retrieve_routes(retriever)])

A request is `{"queries": [text, ...], "topk": 3, "return_scores": false}`, or `{"query": text}` from older clients of
SkyRL and verl. The reply `{"result": [[document, ...], ...]}` has a list for each query, best first. A document is
`{"id", "contents"}`, or with scores `{"document": {"id", "contents"}, "score": number}`.

Source: https://github.com/PeterGriffinJin/Search-R1, search_r1/search/retrieval_server.py at commit a14dc3a.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.routing import BaseRoute, Route

from agentgym_envs.errors import EnvError
from agentgym_envs.http import protocol
from agentgym_envs.http.app import EnvServer
from agentgym_envs.http.protocol import BadRequest, Malformed
from agentgym_envs.search.retrieval.base import Hit, Retriever
from agentgym_envs.search.retrieval.batching import BatchingRetriever
from agentgym_envs.search.retrieval.factory import uses_encoder

PATH = "/retrieve"
TOP_K, MOST_TOP_K, MOST_QUERIES = 3, 100, 4_096
MOST_PASSAGES = 20_000
"""The most passages of a request: the number of queries times the passages for each."""
_PARALLEL_SEARCHES = 4
"""The most slow requests that are searched at a time."""
_LARGE_CORPUS = 200_000
"""With more passages than this, a search runs in a thread."""
_MANY_QUERIES = 32
"""With more queries than this, a search runs in a thread, whatever the engine."""
_UNAVAILABLE = 503
_HEALTH_KEYS = ("engine", "corpus", "passages", "sha256")
_JSON = (b"content-type", b"application/json")
_log = logging.getLogger(__name__)


class RetrieveRequest(msgspec.Struct):
    """A request of Search-R1's clients; `topk` 0 or null means the default."""

    queries: Annotated[list[str], msgspec.Meta(max_length=MOST_QUERIES)] | None = None
    query: str | None = None
    topk: Annotated[int, msgspec.Meta(ge=0, le=MOST_TOP_K)] | None = None
    return_scores: bool = False


def retrieve_routes(
    retriever: Retriever, about: Mapping[str, Any] | None = None
) -> Callable[[EnvServer], list[BaseRoute]]:
    """Make a mount for `create_app`. `/health` then describes the corpus, with values of `about` or the retriever."""
    known = {**retriever.describe(), **(about or {})}

    def mount(server: EnvServer) -> list[BaseRoute]:
        server.about |= {key: known[key] for key in _HEALTH_KEYS if key in known}
        return [Route(PATH, _RetrieveApp(server, retriever))]

    return mount


class _RetrieveApp:
    """The ASGI application at the path."""

    def __init__(self, server: EnvServer, retriever: Retriever) -> None:
        about = retriever.describe()
        runs_a_model = uses_encoder(about.get("engine")) or "reranker" in about
        if runs_a_model and not retriever.waits:  # much faster for many queries at once than one by one
            retriever = BatchingRetriever(_InThread(retriever))
        self._server, self._retriever = server, retriever
        self._semaphore = asyncio.Semaphore(_PARALLEL_SEARCHES)
        self._slow = not retriever.waits and about.get("passages", 0) > _LARGE_CORPUS

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] != "POST":
            message = f"{PATH} takes POST with a JSON object that holds 'queries', a list of texts"
            raise HTTPException(405, message, {"Allow": "POST"})
        began = time.perf_counter()
        queries, request = _read(await self._server.body(HttpRequest(scope, receive)))
        try:
            body = await self._search(queries, request)
        except EnvError as error:
            _log.warning("the search engine failed: %s", error)
            failure = {"error": {"type": type(error).__name__, "message": str(error)}}
            await _reply(send, protocol.encode(failure), _UNAVAILABLE)
            return
        await _reply(send, body)
        self._server.metrics.called("retrieve", time.perf_counter() - began, len(queries))

    async def _search(self, queries: list[str], request: RetrieveRequest) -> bytes:
        """The body of the reply, computed in a thread if it would block the event loop for long."""
        k, scores = request.topk or TOP_K, request.return_scores
        if self._slow or (len(queries) > _MANY_QUERIES and not self._retriever.waits):
            async with self._semaphore:
                return await asyncio.to_thread(lambda: _body(self._retriever.search(queries, k), scores))
        return _body(await self._retriever.asearch(queries, k), scores)


class _InThread(Retriever):
    """A slow retriever, marked as one that waits so that its searches run in threads."""

    waits = True

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return self._inner.search(queries, k)

    def describe(self) -> dict[str, Any]:
        return self._inner.describe()


def _read(body: bytes) -> tuple[list[str], RetrieveRequest]:
    """Parse the queries and the request. Raises Malformed."""
    try:
        request = protocol.read(body, RetrieveRequest)
    except BadRequest as error:
        raise Malformed(str(error)) from None
    if (request.queries is None) == (request.query is None):
        raise Malformed("the body must hold either 'queries', a list of texts, or 'query', a text")
    queries = [request.query] if request.query is not None else request.queries or []
    if len(queries) * (request.topk or TOP_K) > MOST_PASSAGES:
        raise Malformed(f"a request can ask for {MOST_PASSAGES} passages in all; ask for fewer queries at a time")
    return queries, request


def _body(results: list[list[Hit]], scores: bool) -> bytes:
    return protocol.encode({"result": [_documents(hits, scores) for hits in results]})


def _documents(hits: list[Hit], scores: bool) -> list[dict[str, Any]]:
    if scores:
        return [{"document": {"id": p.id, "contents": p.contents}, "score": score} for p, score in hits]
    return [{"id": passage.id, "contents": passage.contents} for passage, _ in hits]


async def _reply(send: Any, body: bytes, status: int = 200) -> None:
    headers = [_JSON, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

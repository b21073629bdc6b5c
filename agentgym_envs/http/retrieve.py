"""Search-R1's `POST /retrieve` over any search engine, on the server of the environments.

    create_app(ids, mounts=[retrieve_routes(retriever)])

A request is `{"queries": [text, ...], "topk": 3, "return_scores": false}`, or `{"query": text}` as older clients of
SkyRL and verl send it; the reply `{"result": [[document, ...], ...]}` holds a list for each query, best first. A
document is `{"id", "contents"}`; with scores it is `{"document": {"id", "contents"}, "score": number}`.

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
from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from agentgym_envs.errors import EnvError
from agentgym_envs.http import protocol
from agentgym_envs.http.app import EnvServer
from agentgym_envs.http.protocol import BadRequest, Malformed
from agentgym_envs.search.retrieval.base import Hit, Retriever
from agentgym_envs.search.retrieval.batching import BatchingRetriever

PATH = "/retrieve"
TOP_K, MOST_TOP_K, MOST_QUERIES = 3, 100, 4_096
MOST_PASSAGES = 20_000
"""The most passages that a request can ask for: so many queries times so many passages each."""
_AT_ONCE = 4
"""How many requests of those that take long are searched at a time."""
_LARGE = 200_000
"""Above so many passages one search takes long enough to be worth a thread."""
_MANY = 32
"""And so do more queries than this, whatever the engine."""
_GAINING = frozenset({"dense", "hybrid"})
"""Engines whose encoder takes many queries at once in much less time than one by one."""
_UNWELL = 503
_TOLD = ("engine", "corpus", "passages", "sha256")
_JSON = (b"content-type", b"application/json")
_log = logging.getLogger(__name__)


class RetrieveRequest(msgspec.Struct):
    """What Search-R1's clients send; 0 or nothing for `topk` is the default."""

    queries: Annotated[list[str], msgspec.Meta(max_length=MOST_QUERIES)] | None = None
    query: str | None = None
    topk: Annotated[int, msgspec.Meta(ge=0, le=MOST_TOP_K)] | None = None
    return_scores: bool = False


def retrieve_routes(
    retriever: Retriever, about: Mapping[str, Any] | None = None
) -> Callable[[EnvServer], list[BaseRoute]]:
    """A mount of `create_app`. `/health` then tells what `about` or else the retriever say of the corpus."""
    known = {**retriever.describe(), **(about or {})}

    def mount(server: EnvServer) -> list[BaseRoute]:
        server.about |= {key: known[key] for key in _TOLD if key in known}
        return [Route(PATH, _Desk(server, retriever))]

    return mount


class _Desk:
    """The ASGI application under the path."""

    def __init__(self, server: EnvServer, retriever: Retriever) -> None:
        about = retriever.describe()
        if about.get("engine") in _GAINING:
            retriever = BatchingRetriever(_InThread(retriever))
        self._server, self._retriever = server, retriever
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._slow = not retriever.waits and about.get("passages", 0) > _LARGE

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] != "POST":
            told = f"{PATH} takes POST with a JSON object that holds 'queries', a list of texts"
            raise HTTPException(405, told, {"Allow": "POST"})
        began = time.perf_counter()
        queries, asked = _read(await self._server.body(Request(scope, receive)))
        try:
            body = await self._search(queries, asked)
        except EnvError as error:
            _log.warning("the search engine failed: %s", error)
            failure = {"error": {"type": type(error).__name__, "message": str(error)}}
            await _reply(send, protocol.encode(failure), _UNWELL)
            return
        await _reply(send, body)
        self._server.metrics.called("retrieve", time.perf_counter() - began, len(queries))

    async def _search(self, queries: list[str], asked: RetrieveRequest) -> bytes:
        """The body of the reply; it is made beside the event loop where that would be held up for long."""
        k = asked.topk or TOP_K
        if self._slow or (len(queries) > _MANY and not self._retriever.waits):
            async with self._gate:
                return await asyncio.to_thread(lambda: _body(self._retriever.search(queries, k), asked.return_scores))
        return _body(await self._retriever.asearch(queries, k), asked.return_scores)


class _InThread(Retriever):
    """A search that takes long, as one that is waited for."""

    waits = True

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return self._inner.search(queries, k)

    def describe(self) -> dict[str, Any]:
        return self._inner.describe()


def _read(body: bytes) -> tuple[list[str], RetrieveRequest]:
    """The queries and the request. Raises Malformed."""
    try:
        asked = protocol.read(body, RetrieveRequest)
    except BadRequest as error:
        raise Malformed(str(error)) from None
    if (asked.queries is None) == (asked.query is None):
        raise Malformed("the body must hold either 'queries', a list of texts, or 'query', a text")
    queries = [asked.query] if asked.query is not None else asked.queries or []
    if len(queries) * (asked.topk or TOP_K) > MOST_PASSAGES:
        raise Malformed(f"a request can ask for {MOST_PASSAGES} passages in all; ask for fewer queries at a time")
    return queries, asked


def _body(found: list[list[Hit]], scores: bool) -> bytes:
    return protocol.encode({"result": [_told(hits, scores) for hits in found]})


def _told(hits: list[Hit], scores: bool) -> list[dict[str, Any]]:
    if scores:
        return [{"document": {"id": p.id, "contents": p.contents}, "score": score} for p, score in hits]
    return [{"id": passage.id, "contents": passage.contents} for passage, _ in hits]


async def _reply(send: Any, body: bytes, status: int = 200) -> None:
    headers = [_JSON, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

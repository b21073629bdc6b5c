"""The wire formats of retrieval servers: writing requests and reading replies."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from typing import Any, Literal, get_args

from agentgym_envs.search.retrieval.base import Hit, Passage

Dialect = Literal["search-r1", "verl", "skyrl"]
"""The form of a request: "search-r1" and "verl" (identical) send a list of queries, "skyrl" a request for each query.

SkyRL's own client and server have used Search-R1's form since late 2025; "skyrl" is for earlier versions.
"""
DIALECTS: tuple[str, ...] = get_args(Dialect)
_FILLER = -1e38
"""The score of a missing hit. faiss pads short results with the lowest float. Search-R1's server sends these hits on,
each with the last passage of the corpus."""


def write_requests(queries: Sequence[str], k: int, dialect: Dialect) -> list[tuple[int, bytes]]:
    """Return the requests for all queries, as pairs of the number of queries and the body."""
    rest = {"topk": k, "return_scores": True}
    if dialect == "skyrl":
        return [(1, json.dumps({"query": query, **rest}).encode()) for query in queries]
    return [(len(queries), json.dumps({"queries": list(queries), **rest}).encode())] if queries else []


def read_results(reply: bytes, queries: int, k: int) -> list[list[Hit]]:
    """Return the hits for each query: at most `k` distinct ones, in the server's order.

    Raises ValueError, with the reason, if the reply does not hold results for all queries.
    """
    try:
        results = json.loads(reply)["result"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f'not JSON with a "result": {reply[:200]!r}') from None
    if queries == 1 and isinstance(results, list) and all(isinstance(item, dict) for item in results):
        results = [results]  # servers that take one query reply with a flat list
    if not isinstance(results, list) or len(results) != queries:
        found = f"{len(results)} results" if isinstance(results, list) else "something other than a list of results"
        raise ValueError(f"{found} for {queries} queries")
    return [_read_hits(items, k) for items in results]


def _read_hits(items: Any, k: int) -> list[Hit]:
    if not isinstance(items, list):
        raise ValueError(f"a result that is not a list of passages: {items!r:.100}")
    hits: dict[Passage, Hit] = {}
    for rank, item in enumerate(items):
        hit = _read_hit(item, rank)
        if hit.score > _FILLER and hit.passage.id != "-1":
            hits.setdefault(hit.passage, hit)
    return list(hits.values())[:k]


def _read_hit(item: Any, rank: int) -> Hit:
    document = item.get("document", item) if isinstance(item, dict) else item
    score: Any = item.get("score", 1 / (1 + rank)) if isinstance(item, dict) else None
    if not isinstance(document, dict) or type(score) not in (int, float) or not abs(score) <= sys.float_info.max:
        raise ValueError(f"an item that is not a passage with a score: {item!r:.100}")
    contents = document.get("contents")
    if contents is None and "text" in document:
        contents = f'"{document.get("title") or ""}"\n{document["text"]}'
    if not isinstance(contents, str):
        raise ValueError(f"a passage without text: {document!r:.100}")
    name = document.get("id")
    if not isinstance(name, str | int):
        name = hashlib.sha256(contents.encode(errors="surrogatepass")).hexdigest()[:16]
    # JSON can hold a lone surrogate, which cannot be encoded as UTF-8
    readable = (text.encode(errors="replace").decode() for text in (str(name), contents))
    return Hit(Passage(*readable), float(score))

"""Rerankers: models that read a query and a passage together, and score how well the passage answers the query.

A reranker is a cross-encoder in this process, or a server with one of the protocols in `PROTOCOLS`. `load_reranker`
takes the folder or name of a model, or the URL of a server:

    cross-encoder/ms-marco-MiniLM-L12-v2                              a model of transformers, as Search-R1's reranker
    http://127.0.0.1:8080                                             Hugging Face's text-embeddings-inference
    jina+http://127.0.0.1:8000/v1/rerank#BAAI/bge-reranker-v2-m3      vLLM, Jina AI, ...: the model follows the #
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import urldefrag

from agentgym_envs.errors import UsageError, missing_extra
from agentgym_envs.search.retrieval.http_client import HttpClient, HttpRequest, parse_server

MAX_TOKENS = 512
"""A query and a passage are truncated to this many tokens together, as in Search-R1's reranker."""


class Reranker(Protocol):
    """The protocol of rerankers. Threads may share one."""

    waits: ClassVar[bool]
    """True if it waits for a server."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, higher for a better answer. Raises RetrieverError."""

    async def ascores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the scores; if the reranker waits, without blocking the event loop. Raises RetrieverError."""

    def describe(self) -> dict[str, Any]:
        """Return a description (JSON)."""

    def close(self) -> None:
        """Free resources. Closing twice is allowed."""


class CrossEncoderReranker:
    """A sequence-classification model of transformers, run by sentence-transformers. A lock serializes threads."""

    waits: ClassVar[bool] = False

    def __init__(self, model: str, device: str | None = None) -> None:
        """Load a model from a folder, or by its name on the Hugging Face hub.

        `device` is "cpu", "cuda" or None for the best one. Raises MissingExtra, and UsageError if the model cannot be
        loaded or has more than one score.
        """
        try:
            from sentence_transformers import CrossEncoder
        except ModuleNotFoundError:
            raise missing_extra("this reranker", "sentence-transformers", "search-dense") from None
        try:
            self._model = CrossEncoder(model, device=device, max_length=MAX_TOKENS)
        except (OSError, ValueError, ImportError) as error:
            raise UsageError(f"the reranker {model!r} cannot be loaded: {str(error).strip()[:300]}") from error
        if self._model.num_labels != 1:
            raise UsageError(f"the reranker {model!r} has {self._model.num_labels} labels; a reranker has one score")
        self._name, self._lock = model, threading.Lock()

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Score the texts in batches."""
        pairs = [(_readable(query), _readable(text)) for text in texts]
        if not pairs:
            return []
        with self._lock:  # the tokenizer is not thread-safe
            scores = self._model.predict(pairs, show_progress_bar=False)
        return [float(score) for score in scores]

    async def ascores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Score the texts; the model takes CPU time, so an environment with it runs in a worker."""
        return self.scores(query, texts)

    def describe(self) -> dict[str, Any]:
        """Return the model's name."""
        return {"reranker": self._name}

    def close(self) -> None:
        """Do nothing: the memory is freed with the object."""


class RerankProtocol(NamedTuple):
    """The wire format of a server.

    Attributes:
        path: added to a URL without a path.
        environment: the variable with the key, sent as a bearer token if it is set.
        request: makes the body from the model (or ""), the query and the texts.
        read: returns pairs of (index, score) from the reply; raises KeyError, TypeError or ValueError.
        most: the most texts of a request.
    """

    path: str
    environment: str
    request: Callable[[str, str, Sequence[str]], dict[str, Any]]
    read: Callable[[Any], list[tuple[int, float]]]
    most: int


def _with_model(model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
    named = {"model": model} if model else {}
    return {**named, "query": query, "documents": list(texts), "top_n": len(texts)}


def _results(reply: Any) -> list[tuple[int, float]]:
    return [(item["index"], item["relevance_score"]) for item in reply["results"]]


PROTOCOLS: dict[str, RerankProtocol] = {
    "tei": RerankProtocol(
        path="/rerank",
        environment="TEI_API_KEY",
        request=lambda model, query, texts: {"query": query, "texts": list(texts), "truncate": True},
        read=lambda reply: [(item["index"], item["score"]) for item in reply],
        most=32,  # the server's --max-client-batch-size
    ),
    "jina": RerankProtocol("/v1/rerank", "JINA_API_KEY", _with_model, _results, most=1_000),
    "cohere": RerankProtocol("/v2/rerank", "COHERE_API_KEY", _with_model, _results, most=1_000),
}
"""Protocols by name; the first one is that of a URL without a prefix.

Sources: https://huggingface.github.io/text-embeddings-inference, https://api.jina.ai/redoc (also served by vLLM and
Xinference), https://docs.cohere.com/reference/rerank.
"""
_URL = re.compile(rf"(?:({'|'.join(PROTOCOLS)})\+)?(https?://.+)", re.DOTALL)


class HttpReranker:
    """Asks a server for scores. Threads, event loops and forked processes may share it."""

    waits: ClassVar[bool] = True

    def __init__(self, url: str, protocol: str = "tei", model: str = "", deadline: float = 60.0) -> None:
        """Set the server; connects at the first request.

        Args:
            url: the URL; without a path, that of the protocol is added.
            protocol: a name in `PROTOCOLS`. Its key is read from the environment.
            model: the model, if the server has several.
            deadline: seconds for the scores of a query, including all attempts.

        Raises:
            UsageError: the protocol does not exist, or `url` is not an HTTP URL.
        """
        if protocol not in PROTOCOLS:
            raise UsageError(f"there is no rerank protocol {protocol!r}; choose one of {', '.join(PROTOCOLS)}")
        self._protocol = PROTOCOLS[protocol]
        self._server = parse_server(url, self._protocol.path, "a reranker")
        self._about = {"reranker": self._server.shown, "protocol": protocol, **({"model": model} if model else {})}
        self._model = model
        self._http = HttpClient(
            f"the reranker {self._server.shown}",
            timeout=30.0,
            deadline=deadline,
            headers={"content-type": "application/json"},
            encrypted=self._server.encrypted,
            hints={status: f"the key is read from ${self._protocol.environment}" for status in (401, 403)},
            redact=self._redact,
        )

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Ask for the scores, in as many requests as the protocol needs."""
        end, scores = self._http.end(), list[float]()
        for some in self._batches(texts):
            scores += self._read(self._http.send(self._request(query, some), end), len(some))
        return scores

    async def ascores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Ask for the scores without blocking the event loop."""
        end, scores = self._http.end(), list[float]()
        for some in self._batches(texts):
            scores += self._read(await self._http.asend(self._request(query, some), end), len(some))
        return scores

    def describe(self) -> dict[str, Any]:
        """Return the URL without credentials, the protocol and the model."""
        return dict(self._about)

    def close(self) -> None:
        """Close the connections of this process."""
        self._http.close()

    def _batches(self, texts: Sequence[str]) -> list[Sequence[str]]:
        most = self._protocol.most
        return [texts[begin : begin + most] for begin in range(0, len(texts), most)]

    def _request(self, query: str, texts: Sequence[str]) -> HttpRequest:
        body = self._protocol.request(self._model, _readable(query), [_readable(text) for text in texts])
        return HttpRequest("POST", self._server.url, json.dumps(body).encode(), self._authorization())

    def _authorization(self) -> Mapping[str, str]:
        key = os.environ.get(self._protocol.environment)
        return {"authorization": f"Bearer {key}"} if key else {}

    def _redact(self, text: str) -> str:
        key = os.environ.get(self._protocol.environment)
        return text.replace(key, "***") if key else text

    def _read(self, reply: bytes, count: int) -> list[float]:
        try:
            found = dict(self._protocol.read(json.loads(reply)))
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._http.failure(f"answered with something other than scores: {reply[:200]!r}") from None
        scores = [found.get(number) for number in range(count)]
        if len(found) != count or not all(_is_finite(score) for score in scores):
            raise self._http.failure(f"did not answer with a score for each of {count} texts: {reply[:200]!r}")
        return [float(score) for score in scores if score is not None]


def load_reranker(spec: str) -> Reranker:
    """Load a reranker by the folder or name of a model, or by a URL (see the module). Raises UsageError."""
    if found := _URL.fullmatch(spec):
        url, model = urldefrag(found[2])
        return HttpReranker(url, found[1] or next(iter(PROTOCOLS)), model)
    return CrossEncoderReranker(spec)


def check_reranker(spec: object) -> str:
    """Return `spec` if `load_reranker` can read it. Raises UsageError."""
    if not isinstance(spec, str) or not spec.strip():
        raise UsageError(f"a reranker is the folder or name of a model, or the URL of a server, not {spec!r}")
    if "://" in spec and not _URL.fullmatch(spec):
        prefixes = ", ".join(f"{name}+http://..." for name in PROTOCOLS)
        raise UsageError(f"the URL of a reranker is like http://127.0.0.1:8080 or one of {prefixes}, not {spec!r}")
    return spec


def _readable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _is_finite(score: Any) -> bool:
    return type(score) in (int, float) and abs(score) <= sys.float_info.max

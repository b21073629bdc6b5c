"""A web search engine as a retriever: a result is a passage, whose id is its URL."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, quote_plus, urlsplit

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval.base import Hit, Passage, Retriever, check_queries
from agentgym_envs.search.retrieval.cache import CachedRetriever
from agentgym_envs.search.retrieval.http_client import HttpClient, HttpRequest, Server, gather_or_cancel, parse_server
from agentgym_envs.search.web.cassette import Cassette
from agentgym_envs.search.web.limits import Budget, RateLimit
from agentgym_envs.search.web.vendors import WEB_ENGINES, Unusable, WebEngine, WebResult

OPTIONS = ("url", "cassette", "replay", "budget", "ledger", "rate", "deadline")
"""The names of the options of `WebRetriever`."""
_PAGE = 10
"""The fewest results of a request. Engines charge for requests, so that a recording serves every smaller `top_k`."""
_LOCAL = ("localhost", "127.0.0.1", "::1")


class WebRetriever(Retriever):
    """Asks a web search engine. Threads, event loops and forked processes may share it.

    Keys are read from the environment when a request is sent. They are in no recording, log, error or pickle.
    """

    waits: ClassVar[bool] = True

    def __init__(
        self,
        engine: str,
        *,
        url: str | None = None,
        cassette: str | None = None,
        replay: bool = False,
        budget: int | None = None,
        ledger: str | None = None,
        rate: float | None = None,
        deadline: float = 60.0,
    ) -> None:
        """Set the engine and its limits; connects at the first search.

        Args:
            engine: a name in `WEB_ENGINES`.
            url: another address of the API, such as that of an instance of SearXNG.
            cassette: a file of recorded searches. Recorded ones are not sent again, and new ones are added.
            replay: use only the recorded ones, without a network and without a key; others are errors.
            budget: the most searches that are sent by this process.
            ledger: a file that counts searches, so that several processes and runs share the budget.
            rate: the most requests per second of this process; by default that of the engine; 0 for no limit.
            deadline: seconds for a search, including all attempts, without waiting for the rate.

        Raises:
            UsageError: an argument is invalid, a key is missing, or the cassette cannot be read.
        """
        self._name, self._engine = engine, _find(engine)
        self._server = _server(engine, self._engine, url)
        self._replay = _check_options(cassette, replay, budget, ledger, rate)
        if not replay:
            _secrets(engine, self._engine)
        self._cassette = None if cassette is None else _open_cassette(str(Path(cassette).resolve()))
        self._budget = Budget(budget, None if ledger is None else Path(ledger).resolve())
        self._rate = RateLimit(self._engine.rate if rate is None else rate)
        self._http = HttpClient(
            f"the web search engine {engine} ({self._server.shown})",
            deadline=deadline,
            encrypted=self._server.encrypted,
            hints={**dict.fromkeys((401, 403), _hint(self._engine)), **self._engine.hints},
            redact=self._redact,
        )

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search for the queries one after another."""
        return [self._best(query, k) for query in check_queries(queries, k)]

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Search for the queries concurrently."""
        checked = check_queries(queries, k)
        return await gather_or_cancel([asyncio.create_task(self._abest(query, k)) for query in checked])

    def describe(self) -> dict[str, Any]:
        """Return the engine and its address."""
        return {"engine": self._name, "url": self._server.shown, "replay": self._replay}

    def close(self) -> None:
        """Close the connections of this process."""
        self._http.close()

    def _best(self, query: str, k: int) -> list[Hit]:
        sent, count = self._prepare(query, k)
        results = self._recorded(sent, count)
        if results is None:
            request = self._request(sent, count)
            time.sleep(self._rate.reserve())
            results = self._keep(sent, count, self._http.send(request, self._http.end()))
        return _hits(results, k)

    async def _abest(self, query: str, k: int) -> list[Hit]:
        sent, count = self._prepare(query, k)
        results = self._recorded(sent, count)
        if results is None:
            request = self._request(sent, count)
            await asyncio.sleep(self._rate.reserve())
            results = self._keep(sent, count, await self._http.asend(request, self._http.end()))
        return _hits(results, k)

    def _prepare(self, query: str, k: int) -> tuple[str, int]:
        """Return the query as it is sent, and the number of results to ask for."""
        words = query.encode(errors="replace").decode().split()[: self._engine.most_words]
        sent = " ".join(words)[: self._engine.most_chars].strip()
        return sent, min(max(k, _PAGE), self._engine.most_results) if k > 0 else 0

    def _recorded(self, query: str, count: int) -> list[WebResult] | None:
        """Return what is known without a request. Raises RetrieverError if the query is not in a replayed cassette."""
        if not query or not count:
            return []
        found = None if self._cassette is None else self._cassette.find(self._name, query, count)
        if found is None and self._replay:
            raise RetrieverError(f"the cassette holds no search of {self._name} for {query!r:.200}")
        return found

    def _request(self, query: str, count: int) -> HttpRequest:
        secrets = _secrets(self._name, self._engine)
        self._budget.spend()
        return self._engine.request(self._server.url, query, count, secrets)

    def _keep(self, query: str, count: int, reply: bytes) -> list[WebResult]:
        """Read the results of a reply, and record them."""
        try:
            results = self._engine.read(json.loads(reply))[:count]
        except Unusable as error:
            raise self._http.failure(f"failed: {error!s:.300}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._http.failure(f"answered with something other than results: {reply[:200]!r}") from None
        results = [WebResult(*map(self._redact, result)) for result in results]
        if self._cassette is not None:
            self._cassette.record(self._name, query, count, results)
        return results

    def _redact(self, text: str) -> str:
        return redact(text, [os.environ.get(name, "") for name in self._engine.secrets])


class _SharedWeb(CachedRetriever):
    """The cached retriever of an engine, shared by all callers in a process, also after unpickling."""

    def __init__(self, engine: str, options: Mapping[str, Any]) -> None:
        super().__init__(WebRetriever(engine, **options))
        self._arguments = engine, dict(options)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_web, self._arguments


def open_web(engine: str, options: Mapping[str, Any]) -> Retriever:
    """Open a web search engine with a cache of results, once per process."""
    return _open(engine, json.dumps(options, sort_keys=True))


@lru_cache(maxsize=16)
def _open(engine: str, options: str) -> Retriever:
    return _SharedWeb(engine, json.loads(options))


@lru_cache(maxsize=16)
def _open_cassette(path: str) -> Cassette:
    return Cassette(Path(path))


def check_web(engine: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError if `open_web` would."""
    WebRetriever(engine, **options)


def redact(text: str, secrets: Sequence[str]) -> str:
    """Replace secrets, also as they are written in a URL."""
    for secret in filter(_is_secret, secrets):
        for form in (secret, quote_plus(secret), quote(secret, safe="")):
            text = text.replace(form, "***")
    return text


def _is_secret(value: str) -> bool:
    """Return true if a value is long enough to be a key; a shorter one would be found in any text."""
    return len(value) > 5


class _RedactKeys(logging.Filter):
    """Removes keys from the log of httpx, which holds the URLs of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        names = {name for engine in WEB_ENGINES.values() for name in engine.secrets}
        record.msg = redact(record.getMessage(), [os.environ.get(name, "") for name in names])
        record.args = ()
        return True


logging.getLogger("httpx").addFilter(_RedactKeys())


def _find(engine: str) -> WebEngine:
    if engine not in WEB_ENGINES:
        raise UsageError(f"there is no web search engine {engine!r}; choose one of {', '.join(WEB_ENGINES)}")
    return WEB_ENGINES[engine]


def _server(name: str, engine: WebEngine, url: str | None) -> Server:
    """Parse the address. Raises UsageError if there is none, or if it would send a key in the clear."""
    if not (address := url or engine.url):
        raise UsageError(f"the retriever {name!r} needs `url`, such as http://127.0.0.1:8888/search")
    server = parse_server(address, "/search", f"the engine {name}")
    if engine.secrets and not server.encrypted and urlsplit(server.url).hostname not in _LOCAL:
        raise UsageError(
            f"the key of {name} is sent to https addresses and to this machine only, not to {server.shown}"
        )
    return server


def _secrets(name: str, engine: WebEngine) -> tuple[str, ...]:
    """The values of the environment that the engine needs. Raises UsageError if one is missing."""
    values = {variable: os.environ.get(variable, "").strip() for variable in engine.secrets}
    if missing := [variable for variable, value in values.items() if not value]:
        raise UsageError(f"the retriever {name!r} needs its key in the environment: set {' and '.join(missing)}")
    return tuple(values.values())


def _hint(engine: WebEngine) -> str:
    return f"the key is read from ${' and $'.join(engine.secrets)}" if engine.secrets else "it needs no key of ours"


def _check_options(cassette: object, replay: object, budget: object, ledger: object, rate: object) -> bool:
    """Return `replay`. Raises UsageError for an invalid option."""
    if type(replay) is not bool or (replay and cassette is None):
        raise UsageError("`replay` is true or false, and true needs `cassette`, the file of recorded searches")
    if budget is not None and (type(budget) is not int or budget < 0):
        raise UsageError(f"`budget` must be a whole number of searches, got {budget!r}")
    if rate is not None and (type(rate) not in (int, float) or rate < 0):  # type: ignore[operator]
        raise UsageError(f"`rate` must be a number of requests per second, got {rate!r}")
    for name, path in (("cassette", cassette), ("ledger", ledger)):
        if path is not None and (not isinstance(path, str) or not path):
            raise UsageError(f"`{name}` must be the path of a file, got {path!r}")
    if replay and not Path(str(cassette)).is_file():
        raise UsageError(f"there is no cassette {cassette} to replay; record it first, without `replay`")
    return replay


def _hits(results: Sequence[WebResult], k: int) -> list[Hit]:
    """Convert results to hits, without repeated URLs; the score is 1 / rank."""
    hits = dict[str, Hit]()
    for rank, result in enumerate(results, 1):
        passage = Passage(result.url, f'"{result.title}"\n{result.snippet}')
        if result.url:
            hits.setdefault(result.url, Hit(passage, 1 / rank))
    return list(hits.values())[:k] if k > 0 else []

"""Rerankers: their protocols against a server of ours, a small model in this process, and the second stage."""

import asyncio
import copy
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import pytest

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval import http_client
from agentgym_envs.search.retrieval.base import MAX_TOP_K
from agentgym_envs.search.retrieval.factory import check_retriever, is_url, open_retriever, uses_encoder
from agentgym_envs.search.retrieval.rerankers import PROTOCOLS, HttpReranker, load_reranker
from agentgym_envs.search.retrieval.reranking import RerankingRetriever
from tests.search.protocol_server import ProtocolServer, Received, Reply, serving

KEY = "sk-very-secret"


def score(text: str) -> float:
    return text.count("e") - 10.5  # any number, also a negative one


def rerank(request: Received) -> Reply:
    """Answer as text-embeddings-inference, Jina and Cohere do: sorted by score, with the index of each text."""
    if request.path == "/rerank":
        assert request.body.keys() == {"query", "texts", "truncate"} and request.body["truncate"] is True
        if len(request.body["texts"]) > 32:
            error = {"error": f"batch size {len(request.body['texts'])} > maximum allowed batch size 32"}
            return Reply(413, {**error, "error_type": "Validation"})
        pairs = sorted(((score(text), i) for i, text in enumerate(request.body["texts"])), reverse=True)
        return Reply(200, [{"index": i, "score": value} for value, i in pairs])
    assert request.path in ("/v1/rerank", "/v2/rerank") and request.body["top_n"] == len(request.body["documents"])
    pairs = sorted(((score(text), i) for i, text in enumerate(request.body["documents"])), reverse=True)
    results = [{"index": i, "relevance_score": value, "document": {"text": "x"}} for value, i in pairs]
    return Reply(200, {"id": "1", "model": request.body.get("model"), "results": results, "usage": {}})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProtocolServer]:
    monkeypatch.setattr(http_client, "_FIRST_PAUSE", 0.005)
    with serving(rerank) as made:
        yield made


TEXTS = [f"text {'e' * (i * 7 % 11)} {i}" for i in range(70)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_gives_the_scores_in_the_order_of_the_texts(
    server: ProtocolServer, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, model = ("", "") if protocol == "tei" else (f"{protocol}+", "#some/model-v2")
    reranker = load_reranker(f"{prefix}{server.url}{model}")
    assert isinstance(reranker, HttpReranker)
    assert reranker.scores("q \ud800", TEXTS) == [score(text) for text in TEXTS]
    assert asyncio.run(reranker.ascores("q", TEXTS[:3])) == [score(text) for text in TEXTS[:3]]
    assert reranker.scores("q", []) == []
    assert len(server.received) == (4 if protocol == "tei" else 2)
    assert "authorization" not in server.received[0].headers
    assert server.received[0].body.get("model") == (None if protocol == "tei" else "some/model-v2")
    monkeypatch.setenv(PROTOCOLS[protocol].environment, KEY)
    reranker.scores("q", ["a"])
    assert server.received[-1].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(reranker.describe()) + repr(reranker.__dict__)
    reranker.close()


GOOD = {"index": 0, "score": 1.0}
WRONG = [
    b"<html>", [], {}, {"results": []}, [GOOD], [GOOD, {"index": 2, "score": 1}], [GOOD, {"index": 1, "score": "1"}],
    [GOOD, {"index": 1, "score": float("nan")}], [GOOD, {"index": [], "score": 1}], b"[" * 100_000,
]  # fmt: skip


def test_a_malformed_reply_is_an_error(server: ProtocolServer) -> None:
    reranker = HttpReranker(server.url)
    for wrong in WRONG:
        server.answer = lambda request, wrong=wrong: Reply(200, wrong)  # type: ignore[misc]
        with pytest.raises(RetrieverError, match=r"the reranker http://127.*answer"):
            reranker.scores("q", ["a", "b"])
    reranker.close()


def test_temporary_errors_are_retried_and_keys_are_not_shown(
    server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JINA_API_KEY", KEY)
    reranker = load_reranker(f"jina+{server.url}#m")
    server.script = [lambda request: Reply(503, "busy"), lambda request: Reply(429, "slow down", {"retry-after": "0"})]
    assert reranker.scores("q", ["e"]) == [score("e")]
    server.answer = lambda request: Reply(401, f"bad key: {request.headers['authorization']}")
    with pytest.raises(RetrieverError, match=r"status 401: .*Bearer \*\*\*.*read from \$JINA_API_KEY") as caught:
        reranker.scores("q", ["e"])
    assert KEY not in str(caught.value)
    server.script = [lambda request: Reply(429, "later", {"retry-after": "3600"})]
    with pytest.raises(RetrieverError, match="failed 1 times within its 60 s"):  # an hour is beyond the deadline
        reranker.scores("q", ["e"])
    reranker.close()


class Longest:
    """A reranker that prefers long texts; of two queries, "short" prefers short ones."""

    waits: ClassVar[bool] = False

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        return [-len(text) if query == "short" else len(text) // 30 for text in texts]

    async def ascores(self, query: str, texts: Sequence[str]) -> list[float]:
        return self.scores(query, texts)

    def describe(self) -> dict[str, Any]:
        return {"reranker": "longest"}

    def close(self) -> None:
        pass


def test_the_first_passages_are_sorted_by_the_reranker(small_index: Path) -> None:
    inner = open_retriever("tantivy", small_index)
    first = inner.search(["Peru capital mountain river"], 4)[0]
    retriever = RerankingRetriever(inner, Longest(), depth=4)
    for found in (
        retriever.search(["Peru capital mountain river", "zzz"], 2),
        asyncio.run(retriever.asearch(["Peru capital mountain river", "zzz"], 2)),
    ):
        texts = [f"{hit.passage.title}\n{hit.passage.text}" for hit in first]
        order = sorted(range(4), key=lambda i: (-(len(texts[i]) // 30), i))  # ties stay in the retriever's order
        assert [hit.passage for hit in found[0]] == [first[i].passage for i in order[:2]] and found[1] == []
        assert found[0][0].score == len(texts[order[0]]) // 30
    assert len(retriever.search(["Peru capital mountain river"], 4)[0]) == 4
    assert retriever.search(["Peru"], 0) == [[]]
    assert retriever.describe()["reranker"] == "longest" and not retriever.waits
    assert copy.deepcopy(retriever) is retriever
    assert RerankingRetriever(inner, Longest(), 1).search(["Peru mountain"], 1)[0][0].passage.id == "peru"
    with pytest.raises(UsageError, match="at most"):
        retriever.search(["a"], MAX_TOP_K + 1)


def test_every_engine_takes_a_reranker_as_an_option(server: ProtocolServer, small_index: Path) -> None:
    spec = {"engine": "tantivy", "reranker": server.url, "rerank_depth": 3}
    retriever = open_retriever(spec, small_index)
    assert retriever is open_retriever(dict(spec), small_index) is pickle.loads(pickle.dumps(retriever))
    assert retriever.waits and is_url(spec) and not uses_encoder(spec)
    env = gym.make("AgentGym/Search-v0", retriever=spec, index=small_index, top_k=2)
    env.reset(seed=1)
    env.step("<search>capital of Peru and Ecuador</search>")
    assert server.received[0].body["query"] == "capital of Peru and Ecuador"
    assert server.received[0].body["texts"][0].count("\n") == 1
    server.answer = lambda request: Reply(422, {"error": "`inputs` must have less than 512 tokens"})
    observation, *_, info = env.step("<search>Peru</search>")
    assert info["stop_reason"] == "env_error" and "512" not in observation and "status 422" in info["error"]
    env.close()
    for url in ("http://127.0.0.1:9", "skyrl+http://127.0.0.1:9"):
        assert open_retriever({"engine": url, "reranker": "http://127.0.0.1:9"}).describe()["rerank_depth"] == 20


def test_an_invalid_reranker_is_refused_before_it_is_loaded(small_index: Path) -> None:
    invalid: list[tuple[dict[str, Any], str]] = [
        ({"reranker": ""}, "the folder or name of a model"),
        ({"reranker": 7}, "the folder or name of a model"),
        ({"reranker": "gpt+http://x"}, r"jina\+http://"),
        ({"reranker": "ftp://x"}, r"tei\+http://"),
        ({"reranker": "m", "rerank_depth": 0}, "rerank_depth must be"),
        ({"rerank": "m"}, "has no option 'rerank'; it takes .*, reranker, rerank_depth"),
    ]
    for options, wrong in invalid:
        with pytest.raises(UsageError, match=wrong):
            check_retriever({"engine": "tantivy", **options}, small_index)
    with pytest.raises(UsageError, match="there is no rerank protocol"):
        HttpReranker("http://x", "gpt")
    with pytest.raises(UsageError, match="the URL of a reranker is like"):
        HttpReranker("http:///x")
    assert uses_encoder({"engine": "tantivy", "reranker": "cross-encoder/x"})

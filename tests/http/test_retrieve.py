"""`POST /retrieve` with requests of Search-R1's clients and of older clients of SkyRL."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest

from agentgym_envs.errors import RetrieverError
from agentgym_envs.http import retrieve
from agentgym_envs.http.app import create_app
from agentgym_envs.http.retrieve import retrieve_routes
from agentgym_envs.http.run import background_server
from agentgym_envs.search.retrieval.base import Hit, Passage, Retriever
from agentgym_envs.search.retrieval.index import build_index, open_index

from .tools import error

CITIES = [Passage(f"c{i}", f'"City {i}"\nCity {i} lies on the river "{i % 7}" é.') for i in range(60)]


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Retriever:
    folder = tmp_path_factory.mktemp("search") / "index"
    build_index(CITIES, folder, corpus="cities")
    return open_index(folder)


@pytest.fixture(scope="module")
def api(retriever: Retriever) -> Iterator[httpx.Client]:
    about = {"corpus": "cities", "sha256": "abc", "path": "/secret"}
    with (
        background_server([], mounts=[retrieve_routes(retriever, about)]) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=30) as client,
    ):
        yield client


def ask(api: httpx.Client, body: Any, status: int = 200) -> Any:
    reply = api.post("/retrieve", content=body if isinstance(body, bytes) else json.dumps(body))
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/json"
    return reply.json()


def test_scores_are_returned_on_request(api: httpx.Client, retriever: Retriever) -> None:
    queries = ["city 7", "city 9 river", "nothing of that"]
    found = retriever.search(queries, 2)
    assert [len(hits) for hits in found] == [2, 2, 0]
    documents = [[{"id": hit.passage.id, "contents": hit.passage.contents} for hit in hits] for hits in found]
    scored = [[{"document": {"id": p.id, "contents": p.contents}, "score": s} for p, s in hits] for hits in found]
    assert ask(api, {"queries": queries, "topk": 2, "return_scores": True}) == {"result": scored}
    assert ask(api, {"queries": queries, "topk": 2}) == {"result": documents}
    # Search-R1's own server replies with an error or, for two queries, with a wrong result
    for count in (1, 2, 3):
        assert ask(api, {"queries": queries[:count], "topk": 2, "return_scores": False})["result"] == documents[:count]


def test_an_old_client_of_skyrl_is_supported(api: httpx.Client) -> None:
    wanted = ask(api, {"queries": ["city 7"], "topk": 3, "return_scores": True})
    assert ask(api, {"query": "city 7", "topk": 3, "return_scores": True}) == wanted
    assert "City 7 lies" in wanted["result"][0][0]["document"]["contents"]


@pytest.mark.parametrize("more", [{}, {"topk": None}, {"topk": 0}, {"topk": 3}])
def test_three_passages_are_the_default(api: httpx.Client, more: dict[str, Any]) -> None:
    assert [len(hits) for hits in ask(api, {"queries": ["city", "river"], **more})["result"]] == [3, 3]


def test_a_large_topk_returns_each_passage_once(api: httpx.Client) -> None:
    found = [document["id"] for document in ask(api, {"queries": ["river"], "topk": 100})["result"][0]]
    assert sorted(found) == sorted(passage.id for passage in CITIES)


def test_unusual_queries_are_searched(api: httpx.Client) -> None:
    assert ask(api, {"queries": []}) == {"result": []}
    assert ask(api, {"queries": ["", " \n", "?!"]}) == {"result": [[], [], []]}
    long, surrogate = "river " * 20_000, "city \ud800 7"
    assert [len(hits) for hits in ask(api, {"queries": [long, surrogate, "奥斯陆 नदी river"]})["result"]] == [3, 3, 3]
    assert ask(api, {"queries": ["x"] * retrieve.MOST_QUERIES})["result"] == [[]] * retrieve.MOST_QUERIES


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        [],
        {},
        {"topk": 3},
        {"queries": "city"},
        {"queries": [1]},
        {"queries": None},
        {"query": ["city"]},
        {"query": "a", "queries": ["b"]},
        {"queries": ["city"], "topk": -1},
        {"queries": ["city"], "topk": 101},
        {"queries": ["city"], "topk": "3"},
        {"queries": ["city"], "return_scores": 1},
        {"queries": ["x"] * (retrieve.MOST_QUERIES + 1)},
        {"queries": ["x"] * (retrieve.MOST_PASSAGES // 100 + 1), "topk": 100},
    ],
)
def test_bad_input_is_refused_with_a_message(api: httpx.Client, body: Any) -> None:
    failure = ask(api, body, 422)["error"]
    assert failure["type"] == "Malformed" and len(failure["message"]) > 20


def test_other_methods_and_large_bodies_are_refused(api: httpx.Client) -> None:
    reply = api.get("/retrieve")
    assert error(reply, 405) == "BadRequest" and "takes POST" in reply.text
    assert error(api.post("/retrieve", content=b" " * 5_000_000), 413) == "TooLarge"


def test_health_and_metrics_describe_the_server(api: httpx.Client) -> None:
    health = api.get("/health").json()
    assert health["status"] == "ok"
    assert {key: health[key] for key in ("engine", "corpus", "passages", "sha256")} == {
        "engine": "tantivy",
        "corpus": "cities",
        "passages": 60,
        "sha256": "abc",
    }
    assert "secret" not in str(health)
    before = metric(api)
    ask(api, {"queries": ["city", "river"]})
    assert metric(api) == before + 2


def metric(api: httpx.Client) -> float:
    line = next(
        (line for line in api.get("/metrics").text.splitlines() if 'calls_total{method="retrieve"}' in line), "0"
    )
    return float(line.split()[-1])


def test_retrieve_needs_the_token(retriever: Retriever) -> None:
    with background_server([], mounts=[retrieve_routes(retriever)], token="secret") as url:
        body = {"queries": ["city"]}
        assert error(httpx.post(f"{url}/retrieve", json=body, trust_env=False), 401) == "Unauthorized"
        given = {"Authorization": "Bearer secret"}
        assert httpx.post(f"{url}/retrieve", json=body, headers=given, trust_env=False).status_code == 200


class Moody(Retriever):
    """A retriever that fails or is slow on demand."""

    release = threading.Event()
    begun = threading.Event()

    def __init__(self, passages: int = 1) -> None:
        self.passages = passages

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if "fail" in queries:
            raise RetrieverError("the disk is gone")
        if "wait" in queries:
            self.begun.set()
            assert self.release.wait(60)
        return [[Hit(Passage("a", query), 1.0)] for query in queries]

    def describe(self) -> dict[str, Any]:
        return {"engine": "moody", "passages": self.passages}


def test_a_failing_engine_is_503_and_not_a_result() -> None:
    with background_server([], mounts=[retrieve_routes(Moody())]) as url:
        reply = httpx.post(f"{url}/retrieve", json={"queries": ["fail"]}, trust_env=False)
        assert error(reply, 503) == "RetrieverError"
        assert "the disk is gone" in reply.text
        assert httpx.post(f"{url}/retrieve", json={"queries": ["fine"]}, trust_env=False).status_code == 200


@pytest.mark.parametrize(("passages", "queries"), [(10**6, ["wait"]), (1, ["wait"] * 100)])
def test_a_long_search_does_not_block_the_server(passages: int, queries: list[str]) -> None:
    Moody.release.clear()
    Moody.begun.clear()
    app = create_app([], mounts=[retrieve_routes(Moody(passages))])

    async def play() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            slow = asyncio.create_task(client.post("/retrieve", json={"queries": queries}))
            while not Moody.begun.is_set():
                await asyncio.sleep(0.01)
            assert (await client.get("/health")).status_code == 200
            assert not slow.done()
            Moody.release.set()
            assert len((await slow).json()["result"]) == len(queries)

    asyncio.run(play())


class Encoding(Retriever):
    """A slow substitute for an engine with a model that records the number of queries of each search."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        self.batches: list[int] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.batches.append(len(queries))
        time.sleep(0.02)
        return [[Hit(Passage(query, f"{query} {k}"), 1.0)] for query in queries]

    def describe(self) -> dict[str, Any]:
        return self.about


@pytest.mark.parametrize("about", [{"engine": "faiss"}, {"engine": "tantivy", "reranker": "a model"}])
def test_concurrent_requests_are_searched_together(about: dict[str, Any]) -> None:
    engine = Encoding(about)
    app = create_app([], mounts=[retrieve_routes(engine)])

    async def play() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            asked = [client.post("/retrieve", json={"queries": [f"q{i}"], "topk": 1 + i % 2}) for i in range(40)]
            replies = [reply.json()["result"] for reply in await asyncio.gather(*asked)]
        assert replies == [[[{"id": f"q{i}", "contents": f"q{i} {1 + i % 2}"}]] for i in range(40)]

    asyncio.run(play())
    assert sum(engine.batches) == 40 and len(engine.batches) < 20


def test_one_server_serves_an_index_and_environments(retriever: Retriever) -> None:
    with background_server(["AgentGym/TextCraft-v0"], mounts=[retrieve_routes(retriever)]) as url:
        assert httpx.get(f"{url}/envs", trust_env=False).json()["envs"][0]["id"] == "AgentGym/TextCraft-v0"
        assert httpx.get(f"{url}/health", trust_env=False).json()["engine"] == "tantivy"

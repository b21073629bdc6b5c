"""Retrievers around engines: fusion, the cache, batching, and opening by name."""

import asyncio
import copy
import os
import pickle
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import MissingExtra, RetrieverError, UsageError
from agentgym_envs.search.retrieval.base import Hit, Passage, Retriever, check_queries
from agentgym_envs.search.retrieval.batching import BatchingRetriever
from agentgym_envs.search.retrieval.cache import CachedRetriever
from agentgym_envs.search.retrieval.factory import check_retriever, is_url, open_retriever
from agentgym_envs.search.retrieval.hybrid import HybridRetriever
from agentgym_envs.search.retrieval.index import build_index, open_index
from tests.search.conftest import PASSAGES
from tests.waiting import until


def hit(name: str, score: float = 1.0) -> Hit:
    return Hit(Passage(name, name), score)


class Toy(Retriever):
    """Finds passages named after the query, or given ones, and records the queries."""

    waits = True

    def __init__(self, found: dict[str, str] | None = None) -> None:
        self.found, self.queries = found, list[list[str]]()
        self.gate, self.fails = threading.Event(), 0
        self.gate.set()

    def answer(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if self.fails:
            self.fails -= 1
            raise RetrieverError("the toy is broken")
        names = [
            list((self.found or {}).get(query, "")) if self.found else [f"{query}{i}" for i in range(k)]
            for query in queries
        ]
        return [[hit(name) for name in some[: max(k, 0)]] for some in names]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.queries.append(check_queries(queries, k))
        assert self.gate.wait(30)
        return self.answer(queries, k)

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.queries.append(check_queries(queries, k))
        while not self.gate.is_set():
            await asyncio.sleep(0.005)
        return self.answer(queries, k)

    def describe(self) -> dict[str, Any]:
        return {"engine": "toy"}


def names(hits: Sequence[Hit]) -> str:
    return "".join(hit.passage.id for hit in hits)


def in_threads(*calls: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    return threads


# Hybrid


def test_fusion_prefers_passages_found_by_several_engines() -> None:
    hybrid = HybridRetriever([Toy({"q": "abc"}), Toy({"q": "cbd"})])
    (hits,) = hybrid.search(["q"], 3)
    assert names(hits) == "cba"
    assert [hit.score for hit in hits] == pytest.approx([1 / 63 + 1 / 61, 2 / 62, 1 / 61])
    assert asyncio.run(hybrid.asearch(["q"], 3)) == [hits]


def test_fusion_breaks_ties_by_the_earlier_engine() -> None:
    assert names(HybridRetriever([Toy({"q": "ab"}), Toy({"q": "ba"})]).search(["q"], 2)[0]) == "ab"
    assert names(HybridRetriever([Toy({"q": "xa"}), Toy({"q": "yb"})]).search(["q"], 4)[0]) == "xyab"


def test_a_hybrid_requests_more_hits_than_it_returns() -> None:
    first, second = Toy({"q": "abcdefgh", "": "z"}), Toy({"q": "h"})
    hybrid = HybridRetriever([first, second])
    assert names(hybrid.search(["q"], 2)[0]) == "ha"
    assert hybrid.search(["q", "r"], 0) == hybrid.search(["q", "r"], -3) == [[], []]
    assert hybrid.search([], 3) == []
    with pytest.raises(UsageError, match="at most"):
        hybrid.search(["q"], 1_001)
    assert len(hybrid.search(["q"], 1_000)[0]) == 8
    with pytest.raises(UsageError, match="two"):
        HybridRetriever([first])


def test_a_hybrid_raises_the_error_of_an_engine() -> None:
    broken, waiting = Toy(), Toy()
    hybrid = HybridRetriever([broken, waiting])
    broken.fails = 1
    with pytest.raises(RetrieverError, match="broken"):
        hybrid.search(["q"], 1)
    broken.fails = 1
    waiting.gate.clear()
    with pytest.raises(RetrieverError, match="broken"):
        asyncio.run(hybrid.asearch(["q"], 1))
    assert hybrid.waits


# Cache


def test_cached_queries_are_not_searched_again() -> None:
    toy = Toy()
    cached = CachedRetriever(toy)
    first = cached.search(["a", "b", "a"], 2)
    assert names(first[0]) == names(first[2]) == "a0a1"
    assert cached.search(["b", "c", "a", "d"], 2)[::2] == [first[1], first[0]]
    assert asyncio.run(cached.asearch(["d", "e", "d"], 2))[0] == [hit("d0"), hit("d1")]
    assert toy.queries == [["a", "b"], ["c", "d"], ["e"]]
    cached.search(["a"], 3)
    assert toy.queries[-1] == ["a"], "another k is another query"
    first[0].clear()
    assert names(cached.search(["a"], 2)[0]) == "a0a1", "callers cannot change cached results"
    assert cached.search([], 2) == []
    with pytest.raises(UsageError):
        cached.search(["a"], 5_000)


def test_the_least_recently_used_query_is_evicted() -> None:
    toy = Toy()
    cached = CachedRetriever(toy, size=2)
    for query in "abaca":
        cached.search([query], 1)
    assert toy.queries == [["a"], ["b"], ["c"]]
    cached.search(["b"], 1)
    assert toy.queries[-1] == ["b"]
    assert names(cached.search(list("pqrst"), 1)[0]) == "p0", "a batch may be larger than the cache"


class Joined(CachedRetriever):
    """Counts the callers that wait for a pending search."""

    joined = 0

    def _sort_out(self, *arguments: Any) -> Any:
        own, others = super()._sort_out(*arguments)
        self.joined += bool(others)
        return own, others


def test_an_error_reaches_all_waiting_callers_and_is_not_cached() -> None:
    toy = Toy()
    cached, errors = Joined(toy), list[str]()

    def ask() -> None:
        try:
            cached.search(["a"], 1)
        except RetrieverError as error:
            errors.append(str(error))

    toy.gate.clear()
    toy.fails = 1
    threads = in_threads(ask)
    until(lambda: toy.queries)
    threads += in_threads(ask, ask)
    until(lambda: cached.joined == 2)
    toy.gate.set()
    for thread in threads:
        thread.join()
    assert errors == ["the toy is broken"] * 3 and toy.queries == [["a"]]
    assert names(cached.search(["a"], 1)[0]) == "a0"


def test_threads_and_tasks_share_a_pending_search() -> None:
    toy = Toy()
    cached, found = CachedRetriever(toy), list[list[list[Hit]]]()
    toy.gate.clear()
    threads = in_threads(lambda: found.append(cached.search(["a", "b"], 1)))
    until(lambda: toy.queries)
    threads += in_threads(lambda: found.append(cached.search(["b", "c"], 1)))
    until(lambda: len(toy.queries) == 2)

    async def play() -> list[list[list[Hit]]]:
        tasks = [asyncio.create_task(cached.asearch(["a", "c", "d"], 1)) for _ in range(3)]
        await asyncio.sleep(0.05)
        toy.gate.set()
        return await asyncio.gather(*tasks)

    found += asyncio.run(play())
    for thread in threads:
        thread.join()
    assert sorted(toy.queries) == [["a", "b"], ["c"], ["d"]]
    assert sorted(sorted(map(names, some)) for some in found) == [["a0", "b0"], *[["a0", "c0", "d0"]] * 3, ["b0", "c0"]]


def test_other_callers_get_the_result_if_the_first_is_cancelled() -> None:
    toy = Toy()
    cached = CachedRetriever(toy)

    async def play() -> list[list[Hit]]:
        toy.gate.clear()
        first = asyncio.create_task(cached.asearch(["a"], 1))
        await asyncio.sleep(0.02)
        second = asyncio.create_task(cached.asearch(["a"], 1))
        await asyncio.sleep(0.02)
        first.cancel()
        await asyncio.sleep(0.02)
        toy.gate.set()
        return await second

    assert names(asyncio.run(play())[0]) == "a0" and toy.queries == [["a"]]


def test_a_caller_searches_itself_if_the_other_event_loop_ended() -> None:
    toy = Toy()
    cached, found = CachedRetriever(toy), list[list[list[Hit]]]()
    toy.gate.clear()

    async def leave() -> None:
        task = asyncio.create_task(cached.asearch(["a"], 1))
        await asyncio.sleep(0.01)
        threads.extend(in_threads(lambda: found.append(cached.search(["a"], 1))))
        await asyncio.sleep(0.05)
        assert not task.done()

    threads = list[threading.Thread]()
    asyncio.run(leave())
    toy.gate.set()
    for thread in threads:
        thread.join(30)
    assert [names(some[0]) for some in found] == ["a0"] and toy.queries == [["a"], ["a"]]


def test_a_sync_search_does_not_deadlock_on_an_async_one_of_its_loop() -> None:
    toy = Toy()
    cached = CachedRetriever(toy)

    async def play() -> None:
        toy.gate.clear()
        task = asyncio.create_task(cached.asearch(["a"], 1))
        await asyncio.sleep(0.02)
        toy.gate.set()
        assert cached.search(["a"], 1) == await task

    asyncio.run(asyncio.wait_for(play(), 20))


def test_a_forked_process_does_not_wait_for_threads_of_its_parent() -> None:
    toy = Toy()
    cached = CachedRetriever(toy)
    toy.gate.clear()
    threads = in_threads(lambda: cached.search(["a"], 1))
    until(lambda: toy.queries)
    child = os.fork()
    if child == 0:
        toy.gate = threading.Event()
        toy.gate.set()
        os._exit(0 if names(cached.search(["a"], 1)[0]) == "a0" else 1)
    assert os.waitpid(child, 0)[1] == 0
    toy.gate.set()
    threads[0].join()


def test_many_threads_get_the_right_results() -> None:
    cached, wrong = CachedRetriever(Toy(), size=5), list[str]()

    def ask(seed: int) -> None:
        for i in range(300):
            queries = [str((seed * i + j) % 11) for j in range(3)]
            if [names(hits) for hits in cached.search(queries, 1)] != [f"{query}0" for query in queries]:
                wrong.append(str(queries))

    for thread in in_threads(*[lambda seed=seed: ask(seed) for seed in range(1, 7)]):
        thread.join()
    assert wrong == []


# Micro-batches


def test_concurrent_queries_are_batched_by_k() -> None:
    toy = Toy()
    batching = BatchingRetriever(toy, max_batch=4, max_wait_ms=20)

    async def play() -> list[list[list[Hit]]]:
        calls = [batching.asearch([name], 1) for name in "abcdef"] + [batching.asearch(["x", "y"], 2)]
        return await asyncio.gather(*calls)

    found = asyncio.run(play())
    assert [names(some[0]) for some in found] == [*(f"{name}0" for name in "abcdef"), "x0x1"]
    assert toy.queries == [list("abcd"), list("ef"), list("xy")]
    assert batching.search(["a", "b"], 1) == [[hit("a0")], [hit("b0")]]
    assert asyncio.run(batching.asearch([], 3)) == []
    with pytest.raises(UsageError):
        asyncio.run(batching.asearch(["a"], 5_000))


def test_a_single_query_waits_for_max_wait_only() -> None:
    batching = BatchingRetriever(Toy(), max_wait_ms=1)

    async def play() -> float:
        began = time.monotonic()
        for i in range(20):
            await batching.asearch([str(i)], 1)
        return time.monotonic() - began

    assert asyncio.run(play()) < 2


def test_a_large_call_is_split_into_batches() -> None:
    toy = Toy()
    found = asyncio.run(BatchingRetriever(toy, max_batch=64).asearch([str(i) for i in range(150)], 1))
    assert [names(hits) for hits in found] == [f"{i}0" for i in range(150)]
    assert [len(asked) for asked in toy.queries] == [64, 64, 22]


def test_a_cancelled_caller_leaves_the_batch() -> None:
    toy = Toy()
    batching = BatchingRetriever(toy, max_wait_ms=30)

    async def play() -> list[list[Hit]]:
        lost, stays = (asyncio.create_task(batching.asearch([name], 1)) for name in "ab")
        await asyncio.sleep(0)  # both ask; their time cannot be up yet
        lost.cancel()
        early = await stays
        toy.gate.clear()
        lost, stays = (asyncio.create_task(batching.asearch([name], 1)) for name in "cd")
        while len(toy.queries) < 2:
            await asyncio.sleep(0.005)
        lost.cancel()
        toy.gate.set()
        return early + await stays

    assert [names(hits) for hits in asyncio.run(play())] == ["b0", "d0"]
    assert toy.queries == [["b"], ["c", "d"]]


def test_an_error_reaches_all_callers_of_a_batch() -> None:
    toy = Toy()
    toy.fails = 1
    batching = BatchingRetriever(toy)

    async def play() -> list[Any]:
        calls = [batching.asearch([name, name], 1) for name in "abc"]
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [str(error) for error in asyncio.run(play())] == ["the toy is broken"] * 3
    assert names(asyncio.run(batching.asearch(["a"], 1))[0]) == "a0"


def test_a_wrong_number_of_results_is_an_error_for_the_whole_batch() -> None:
    class Odd(Toy):
        def answer(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            return super().answer([*queries, "x"] if "more" in queries else queries[1:], k)

    batching = BatchingRetriever(Odd())

    async def play(*queries: str) -> list[Any]:
        calls = [batching.asearch([query], 1) for query in queries]
        return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10)

    for queries, shown in ((("a", "b"), "1 results for 2"), (("more", "b"), "3 results for 2")):
        errors = asyncio.run(play(*queries))
        assert [type(error) for error in errors] == [RetrieverError] * 2
        assert all(shown in str(error) for error in errors)


# By name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("open") / "index"
    for engine in ("tantivy", "dense"):
        build_index(PASSAGES, path, corpus="small", engine=engine)
    return path


def test_engines_open_by_name_and_are_shared(folder: Path, small_index: Path) -> None:
    assert open_retriever("tantivy", folder) is open_retriever("tantivy", str(folder)) is open_index(folder, "tantivy")
    hybrid = open_retriever("hybrid", folder)
    assert hybrid is open_retriever("hybrid", folder)
    assert hybrid.search(["Lima, the city"], 1)[0][0].passage.id == "lima"
    assert [part["engine"] for part in hybrid.describe()["engines"]] == ["tantivy", "dense"]
    assert hybrid.describe()["passages"] == len(PASSAGES) and not hybrid.waits
    with pytest.raises(UsageError, match="not built for the engine 'dense'"):
        open_retriever("hybrid", small_index)
    toy = Toy()
    assert open_retriever(toy, folder) is toy


@pytest.mark.slow
def test_a_hybrid_uses_bm25s_if_the_index_has_it(folder: Path, tmp_path: Path) -> None:
    for engine in ("bm25s", "tantivy", "dense"):
        build_index(PASSAGES, tmp_path / "all", corpus="small", engine=engine)
    assert open_retriever("hybrid", tmp_path / "all").describe()["engines"][0]["engine"] == "bm25s"


def test_urls_select_a_server_and_its_dialect(folder: Path) -> None:
    for spec, dialect in [
        ("http://127.0.0.1:9", "search-r1"),
        ("search-r1+http://127.0.0.1:9", "search-r1"),
        ("verl+https://example.org/x", "verl"),
        ("skyrl+http://127.0.0.1:9/retrieve", "skyrl"),
    ]:
        server = open_retriever(spec, folder)
        assert isinstance(server, CachedRetriever) and server.waits
        assert server.describe()["dialect"] == dialect
        assert open_retriever(spec) is server is pickle.loads(pickle.dumps(server)) is copy.deepcopy(server)
        assert is_url(spec) and check_retriever(spec) == spec


@pytest.mark.parametrize("spec", ["", "google", "Tantivy", "gem+http://x", "ftp://x", "http//x", 7, None, ["tantivy"]])
def test_an_unknown_retriever_is_refused_with_the_choices(spec: Any, folder: Path) -> None:
    for ask in (open_retriever, check_retriever):
        with pytest.raises(
            UsageError, match=r"'tantivy', 'bm25s', 'dense', 'hybrid', 'faiss', .*'http://HOST:PORT', 'search-r1\+"
        ):
            ask(spec, folder)
    assert not is_url(spec)


def test_an_invalid_index_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    for spec in ("tantivy", "hybrid"):
        with pytest.raises(UsageError, match="is not an index"):
            check_retriever(spec, tmp_path)
    assert check_retriever("http://x", tmp_path) == "http://x"


@pytest.mark.parametrize(
    ("spec", "package", "extra"),
    [("tantivy", "tantivy", "search"), ("bm25s", "numba", "search-fast"), ("dense", "faiss", "search-dense")],
)
def test_the_error_names_a_missing_package(
    spec: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=re.escape(f"agentgym-envs[{extra}]")):
        check_retriever(spec, tmp_path)


@pytest.mark.parametrize("wrap", [CachedRetriever, BatchingRetriever, lambda inner: HybridRetriever([inner, inner])])
def test_wrapped_retrievers_can_be_pickled_and_copied(wrap: Callable[[Retriever], Retriever], folder: Path) -> None:
    wrapped = wrap(open_index(folder))
    other = pickle.loads(pickle.dumps(wrapped))
    assert type(other) is type(wrapped) and copy.deepcopy([wrapped])[0] is wrapped
    assert other.search(["Peru"], 2) == wrapped.search(["Peru"], 2)
    assert not wrapped.waits
    wrapped.close()

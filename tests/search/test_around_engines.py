"""Wrappers of engines: fusion, cache with single flight, micro-batches, and opening by name."""

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
    """Finds passages called after the query, or those it was given, and keeps what it was asked."""

    waits = True

    def __init__(self, found: dict[str, str] | None = None) -> None:
        self.found, self.asked = found, list[list[str]]()
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
        self.asked.append(check_queries(queries, k))
        assert self.gate.wait(30)
        return self.answer(queries, k)

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.asked.append(check_queries(queries, k))
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


def test_fusion_prefers_what_several_engines_find() -> None:
    hybrid = HybridRetriever([Toy({"q": "abc"}), Toy({"q": "cbd"})])
    (hits,) = hybrid.search(["q"], 3)
    assert names(hits) == "cba"
    assert [hit.score for hit in hits] == pytest.approx([1 / 63 + 1 / 61, 2 / 62, 1 / 61])
    assert asyncio.run(hybrid.asearch(["q"], 3)) == [hits]


def test_ties_of_a_fusion_go_to_the_earlier_engine() -> None:
    assert names(HybridRetriever([Toy({"q": "ab"}), Toy({"q": "ba"})]).search(["q"], 2)[0]) == "ab"
    assert names(HybridRetriever([Toy({"q": "xa"}), Toy({"q": "yb"})]).search(["q"], 4)[0]) == "xyab"


def test_a_hybrid_asks_deeper_than_it_answers() -> None:
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


def test_an_engine_of_a_hybrid_that_fails_fails_it() -> None:
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


def test_cached_queries_are_not_sent_again() -> None:
    toy = Toy()
    cached = CachedRetriever(toy)
    first = cached.search(["a", "b", "a"], 2)
    assert names(first[0]) == names(first[2]) == "a0a1"
    assert cached.search(["b", "c", "a", "d"], 2)[::2] == [first[1], first[0]]
    assert asyncio.run(cached.asearch(["d", "e", "d"], 2))[0] == [hit("d0"), hit("d1")]
    assert toy.asked == [["a", "b"], ["c", "d"], ["e"]]
    cached.search(["a"], 3)
    assert toy.asked[-1] == ["a"], "another k is another question"
    first[0].clear()
    assert names(cached.search(["a"], 2)[0]) == "a0a1", "nobody changes what is remembered"
    assert cached.search([], 2) == []
    with pytest.raises(UsageError):
        cached.search(["a"], 5_000)


def test_the_least_recently_used_is_forgotten() -> None:
    toy = Toy()
    cached = CachedRetriever(toy, size=2)
    for query in "abaca":
        cached.search([query], 1)
    assert toy.asked == [["a"], ["b"], ["c"]]
    cached.search(["b"], 1)
    assert toy.asked[-1] == ["b"]
    assert names(cached.search(list("pqrst"), 1)[0]) == "p0", "a batch may be larger than the memory"


class Joined(CachedRetriever):
    """Counts who waits for what another is asking."""

    joined = 0

    def _sort_out(self, *arguments: Any) -> Any:
        own, others = super()._sort_out(*arguments)
        self.joined += bool(others)
        return own, others


def test_a_failure_reaches_all_who_wait_and_is_not_remembered() -> None:
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
    until(lambda: toy.asked)
    threads += in_threads(ask, ask)
    until(lambda: cached.joined == 2)
    toy.gate.set()
    for thread in threads:
        thread.join()
    assert errors == ["the toy is broken"] * 3 and toy.asked == [["a"]]
    assert names(cached.search(["a"], 1)[0]) == "a0"


def test_threads_and_tasks_share_a_flight() -> None:
    toy = Toy()
    cached, found = CachedRetriever(toy), list[list[list[Hit]]]()
    toy.gate.clear()
    threads = in_threads(lambda: found.append(cached.search(["a", "b"], 1)))
    until(lambda: toy.asked)
    threads += in_threads(lambda: found.append(cached.search(["b", "c"], 1)))
    until(lambda: len(toy.asked) == 2)

    async def play() -> list[list[list[Hit]]]:
        tasks = [asyncio.create_task(cached.asearch(["a", "c", "d"], 1)) for _ in range(3)]
        await asyncio.sleep(0.05)
        toy.gate.set()
        return await asyncio.gather(*tasks)

    found += asyncio.run(play())
    for thread in threads:
        thread.join()
    assert sorted(toy.asked) == [["a", "b"], ["c"], ["d"]]
    assert sorted(sorted(map(names, some)) for some in found) == [["a0", "b0"], *[["a0", "c0", "d0"]] * 3, ["b0", "c0"]]


def test_a_first_asker_who_is_cancelled_does_not_take_the_answer_along() -> None:
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

    assert names(asyncio.run(play())[0]) == "a0" and toy.asked == [["a"]]


def test_a_waiter_of_a_closed_loop_asks_again() -> None:
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
    assert [names(some[0]) for some in found] == ["a0"] and toy.asked == [["a"], ["a"]]


def test_a_loop_that_asks_twice_in_both_ways_does_not_wait_for_itself() -> None:
    toy = Toy()
    cached = CachedRetriever(toy)

    async def play() -> None:
        toy.gate.clear()
        task = asyncio.create_task(cached.asearch(["a"], 1))
        await asyncio.sleep(0.02)
        toy.gate.set()
        assert cached.search(["a"], 1) == await task

    asyncio.run(asyncio.wait_for(play(), 20))


def test_a_forked_process_does_not_wait_for_its_parents_threads() -> None:
    toy = Toy()
    cached = CachedRetriever(toy)
    toy.gate.clear()
    threads = in_threads(lambda: cached.search(["a"], 1))
    until(lambda: toy.asked)
    child = os.fork()
    if child == 0:
        toy.gate = threading.Event()
        toy.gate.set()
        os._exit(0 if names(cached.search(["a"], 1)[0]) == "a0" else 1)
    assert os.waitpid(child, 0)[1] == 0
    toy.gate.set()
    threads[0].join()


def test_many_threads_get_what_they_ask_for() -> None:
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


def test_callers_are_asked_for_together_and_by_k() -> None:
    toy = Toy()
    batching = BatchingRetriever(toy, max_batch=4, max_wait_ms=20)

    async def play() -> list[list[list[Hit]]]:
        calls = [batching.asearch([name], 1) for name in "abcdef"] + [batching.asearch(["x", "y"], 2)]
        return await asyncio.gather(*calls)

    found = asyncio.run(play())
    assert [names(some[0]) for some in found] == [*(f"{name}0" for name in "abcdef"), "x0x1"]
    assert toy.asked == [list("abcd"), list("ef"), list("xy")]
    assert batching.search(["a", "b"], 1) == [[hit("a0")], [hit("b0")]]
    assert asyncio.run(batching.asearch([], 3)) == []
    with pytest.raises(UsageError):
        asyncio.run(batching.asearch(["a"], 5_000))


def test_one_query_waits_no_longer_than_it_must() -> None:
    batching = BatchingRetriever(Toy(), max_wait_ms=1)

    async def play() -> float:
        began = time.monotonic()
        for i in range(20):
            await batching.asearch([str(i)], 1)
        return time.monotonic() - began

    assert asyncio.run(play()) < 2


def test_a_large_call_is_cut_into_batches() -> None:
    toy = Toy()
    found = asyncio.run(BatchingRetriever(toy, max_batch=64).asearch([str(i) for i in range(150)], 1))
    assert [names(hits) for hits in found] == [f"{i}0" for i in range(150)]
    assert [len(asked) for asked in toy.asked] == [64, 64, 22]


def test_a_caller_who_is_cancelled_leaves_the_batch() -> None:
    toy = Toy()
    batching = BatchingRetriever(toy, max_wait_ms=30)

    async def play() -> list[list[Hit]]:
        lost, stays = (asyncio.create_task(batching.asearch([name], 1)) for name in "ab")
        await asyncio.sleep(0)  # both ask; their time cannot be up yet
        lost.cancel()
        early = await stays
        toy.gate.clear()
        lost, stays = (asyncio.create_task(batching.asearch([name], 1)) for name in "cd")
        while len(toy.asked) < 2:
            await asyncio.sleep(0.005)
        lost.cancel()
        toy.gate.set()
        return early + await stays

    assert [names(hits) for hits in asyncio.run(play())] == ["b0", "d0"]
    assert toy.asked == [["b"], ["c", "d"]]


def test_an_error_reaches_all_of_a_batch() -> None:
    toy = Toy()
    toy.fails = 1
    batching = BatchingRetriever(toy)

    async def play() -> list[Any]:
        calls = [batching.asearch([name, name], 1) for name in "abc"]
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [str(error) for error in asyncio.run(play())] == ["the toy is broken"] * 3
    assert names(asyncio.run(batching.asearch(["a"], 1))[0]) == "a0"


def test_an_answer_for_too_few_or_too_many_is_an_error_for_all_of_a_batch() -> None:
    class Odd(Toy):
        def answer(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            return super().answer([*queries, "x"] if "more" in queries else queries[1:], k)

    batching = BatchingRetriever(Odd())

    async def play(*queries: str) -> list[Any]:
        calls = [batching.asearch([query], 1) for query in queries]
        return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10)

    for queries, told in ((("a", "b"), "1 results for 2"), (("more", "b"), "3 results for 2")):
        errors = asyncio.run(play(*queries))
        assert [type(error) for error in errors] == [RetrieverError] * 2
        assert all(told in str(error) for error in errors)


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
def test_a_hybrid_takes_the_fast_engine_if_it_is_there(folder: Path, tmp_path: Path) -> None:
    for engine in ("bm25s", "tantivy", "dense"):
        build_index(PASSAGES, tmp_path / "all", corpus="small", engine=engine)
    assert open_retriever("hybrid", tmp_path / "all").describe()["engines"][0]["engine"] == "bm25s"


def test_urls_name_servers_and_their_dialects(folder: Path) -> None:
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
def test_unknown_retrievers_are_refused_with_the_choices(spec: Any, folder: Path) -> None:
    for ask in (open_retriever, check_retriever):
        with pytest.raises(
            UsageError, match=r"'tantivy', 'bm25s', 'dense', 'hybrid', 'http://HOST:PORT', 'search-r1\+"
        ):
            ask(spec, folder)
    assert not is_url(spec)


def test_other_folders_are_refused_before_they_are_opened(tmp_path: Path) -> None:
    for spec in ("tantivy", "hybrid"):
        with pytest.raises(UsageError, match="is not an index"):
            check_retriever(spec, tmp_path)
    assert check_retriever("http://x", tmp_path) == "http://x"


@pytest.mark.parametrize(
    ("spec", "package", "extra"),
    [("tantivy", "tantivy", "search"), ("bm25s", "numba", "search-fast"), ("dense", "faiss", "search-dense")],
)
def test_a_package_that_is_missing_is_named(
    spec: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=re.escape(f"agentgym-envs[{extra}]")):
        check_retriever(spec, tmp_path)


@pytest.mark.parametrize("wrap", [CachedRetriever, BatchingRetriever, lambda inner: HybridRetriever([inner, inner])])
def test_wrappers_of_an_engine_are_pickled_with_it(wrap: Callable[[Retriever], Retriever], folder: Path) -> None:
    wrapped = wrap(open_index(folder))
    other = pickle.loads(pickle.dumps(wrapped))
    assert type(other) is type(wrapped) and copy.deepcopy([wrapped])[0] is wrapped
    assert other.search(["Peru"], 2) == wrapped.search(["Peru"], 2)
    assert not wrapped.waits
    wrapped.close()

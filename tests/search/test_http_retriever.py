"""The HTTP retriever with servers that are correct, slow, broken or unreachable."""

import asyncio
import copy
import gc
import json
import os
import pickle
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import RetrieverError, UsageError
from agentgym_envs.search.retrieval import http_client
from agentgym_envs.search.retrieval.base import Hit, Passage
from agentgym_envs.search.retrieval.http_retriever import HttpRetriever
from agentgym_envs.search.retrieval.wire import read_results
from tests.quiet_http import QuietHTTPServer
from tests.trying import examples

Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def document(name: str) -> dict[str, Any]:
    return {"document": {"id": name, "contents": f'"{name}"\nAll about {name}.'}, "score": 1.5}


def hit(name: str) -> Hit:
    return Hit(Passage(name, f'"{name}"\nAll about {name}.'), 1.5)


def reply(handler: BaseHTTPRequestHandler, value: Any, status: int = 200) -> None:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    handler.send_response(status)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def find(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    """Reply like Search-R1's server, with `k` passages named after each query."""
    reply(handler, {"result": [[document(f"{q}{i}") for i in range(request["topk"])] for q in request["queries"]]})


class Server:
    """A real server. `script` has its first replies; later requests are answered by `find`."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.otherwise: Answer = find
        self.requests: list[dict[str, Any]] = []
        self.seen: list[tuple[str, str | None, int]] = []
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(request)
                outer.seen.append((self.path, self.headers["authorization"], self.client_address[1]))
                (outer.script.pop(0) if outer.script else outer.otherwise)(self, request)

            def log_message(self, *args: object) -> None:
                pass

        class Listener(QuietHTTPServer):
            daemon_threads = True
            request_queue_size = 64

        self.http = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.over.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def hang(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        handler.close_connection = True
        self.over.wait(20)

    def trickle(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        handler.close_connection = True
        for _ in range(1_000):
            if self.over.wait(0.02):
                break
            handler.wfile.write(b" ")
            handler.wfile.flush()


def status(code: int, text: bytes = b"no") -> Answer:
    return lambda handler, request: reply(handler, text, code)


def says(value: Any) -> Answer:
    return lambda handler, request: reply(handler, value)


def drop(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    handler.close_connection = True


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_FIRST_PAUSE", 0.005)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


Search = Callable[[HttpRetriever, list[str], int], list[list[Hit]]]


@pytest.fixture(params=["search", "asearch"])
def search(request: pytest.FixtureRequest) -> Iterator[Search]:
    """Search in both ways, sync and async, and close the retrievers at the end."""
    used = list[HttpRetriever]()

    def ask(retriever: HttpRetriever, queries: list[str], k: int) -> list[list[Hit]]:
        used.append(retriever)
        if request.param == "search":
            return retriever.search(queries, k)
        return asyncio.run(retriever.asearch(queries, k))

    yield ask
    for retriever in used:
        retriever.close()


def test_a_batch_is_one_request_in_search_r1s_format(server: Server, search: Search) -> None:
    for dialect in ("search-r1", "verl"):
        found = search(HttpRetriever(server.url, dialect), ["a", "ü 東京"], 2)
        assert found == [[hit("a0"), hit("a1")], [hit("ü 東京0"), hit("ü 東京1")]]
    assert server.requests == [{"queries": ["a", "ü 東京"], "topk": 2, "return_scores": True}] * 2
    assert {path for path, _, _ in server.seen} == {"/retrieve"}


@pytest.mark.parametrize("flat", [True, False])
def test_skyrl_sends_a_request_per_query(server: Server, search: Search, flat: bool) -> None:
    def one(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        hits = [document(request["query"])]
        reply(handler, {"result": hits if flat else [hits]})

    server.otherwise = one
    assert search(HttpRetriever(server.url, "skyrl"), ["a", "", "b", "c"], 3) == [
        [hit("a")],
        [],
        [hit("b")],
        [hit("c")],
    ]
    assert sorted(request["query"] for request in server.requests) == ["a", "b", "c"]
    assert server.requests[0].keys() == {"query", "topk", "return_scores"}


def test_paths_and_tokens_are_sent(server: Server, search: Search) -> None:
    for path in ("", "/", "/retrieve", "/v2/find", "/find?x=1"):
        search(HttpRetriever(server.url + path, token="secret"), ["a"], 1)
    paths = [path for path, _, _ in server.seen]
    assert paths == ["/retrieve", "/retrieve", "/retrieve", "/v2/find", "/find?x=1"]
    assert {token for _, token, _ in server.seen} == {"Bearer secret"}


def test_no_request_is_sent_without_queries(server: Server, search: Search) -> None:
    retriever = HttpRetriever(server.url)
    assert search(retriever, [], 3) == []
    assert search(retriever, ["a", "b"], 0) == search(retriever, ["", " \n"], 3) == [[], []]
    assert server.requests == []
    assert search(retriever, ["", "x" * 100_000, " "], 1)[::2] == [[], []]
    assert [len(query) for query in server.requests[0]["queries"]] == [4_096]
    with pytest.raises(UsageError, match="at most"):
        search(retriever, ["a"], 10_000)


@pytest.mark.parametrize("fault", [status(503), status(500), status(429), drop])
def test_temporary_errors_are_retried(server: Server, search: Search, fault: Answer) -> None:
    server.script = [fault, fault]
    assert search(HttpRetriever(server.url), ["a"], 1) == [[hit("a0")]]
    assert len(server.requests) == 3


def test_it_gives_up_and_reports_the_last_error(server: Server, search: Search) -> None:
    server.otherwise = status(503, b"out of memory")
    with pytest.raises(RetrieverError) as caught:
        search(HttpRetriever(server.url), ["a"], 1)
    assert f"{server.url}/retrieve failed 5 times" in str(caught.value)
    assert "status 503: out of memory" in str(caught.value)
    assert len(server.requests) == 5


@pytest.mark.parametrize("code", [301, 400, 401, 404, 422, 204])
def test_permanent_errors_are_not_retried(server: Server, search: Search, code: int) -> None:
    server.otherwise = status(code, b"" if code == 204 else b"see the manual")
    with pytest.raises(RetrieverError, match=f"status {code}"):
        search(HttpRetriever(server.url), ["a"], 1)
    assert len(server.requests) == 1


@pytest.mark.slow
def test_a_hanging_server_raises_within_the_timeout(server: Server, search: Search) -> None:
    server.script = [server.hang]
    assert search(HttpRetriever(server.url, timeout=1.0), ["a"], 1) == [[hit("a0")]]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hang", pytest.param("trickle", marks=pytest.mark.slow)])
def test_one_deadline_covers_all_attempts(server: Server, search: Search, how: str) -> None:
    server.otherwise = getattr(server, how)
    began = time.monotonic()
    with pytest.raises(RetrieverError, match=r"within its 1\.2 s"):
        search(HttpRetriever(server.url, timeout=0.5, deadline=1.2), ["a"], 1)
    assert time.monotonic() - began < 12
    assert 1 < len(server.requests) <= 3


def test_a_refused_connection_is_an_error(search: Search) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(RetrieverError, match=rf"{url}/retrieve failed .*ConnectError"):
            search(HttpRetriever(url), ["a"], 1)


GOOD = document("a")
WRONG = [
    b"<html>504 gateway</html>", b"", b"\xff\xfe", b"[" * 100_000, [], {}, {"error": "x"}, {"result": None},
    {"result": "Search error: down"}, {"result": []}, {"result": [[GOOD]]}, {"result": [[GOOD], [GOOD], [GOOD]]},
    {"result": [[GOOD], None]}, {"result": [[GOOD], ["text"]]}, {"result": [[GOOD], [{"document": "x", "score": 1}]]},
    {"result": [[GOOD], [{"document": {"id": "a"}, "score": 1}]]}, {"result": [[GOOD], GOOD]},
    {"result": [[GOOD], [{**GOOD, "score": "high"}]]}, {"result": [[GOOD], [{**GOOD, "score": float("nan")}]]},
    {"result": [[GOOD], [{"document": None, "score": 1}]]}, {"result": {"0": [GOOD], "1": [GOOD]}},
]  # fmt: skip


def test_a_malformed_reply_is_an_error_and_never_text(server: Server, search: Search) -> None:
    for wrong in WRONG:
        server.otherwise = says(wrong)
        with pytest.raises(RetrieverError, match=f"{server.url}/retrieve answered with"):
            search(HttpRetriever(server.url), ["a", "b"], 3)
    assert len(server.requests) == len(WRONG), "permanent errors are not retried"


def test_surplus_hits_are_dropped_and_missing_ones_are_not_padded(server: Server, search: Search) -> None:
    fewer, filler = [document("x")], {**document("last"), "score": -3.4028234663852886e38}
    many = [document(name) for name in "abbacd"] + [{"document": {"id": -1, "contents": "last"}, "score": 0.1}]
    server.otherwise = says({"result": [many, fewer, [], [GOOD, filler, filler]]})
    found = search(HttpRetriever(server.url), ["1", "2", "3", "4"], 3)
    assert found == [[hit("a"), hit("b"), hit("c")], [hit("x")], [], [hit("a")]]


def test_documents_may_lack_fields_that_can_be_derived(server: Server, search: Search) -> None:
    bare = [{"id": 7, "contents": "one"}, {"contents": "two"}, {"title": "T", "text": "three"}, {"contents": "two"}]
    server.otherwise = says({"result": [bare]})
    (hits,) = search(HttpRetriever(server.url), ["q"], 9)
    assert [found.passage.contents for found in hits] == ["one", "two", '"T"\nthree']
    assert hits[0].passage.id == "7" and hits[2].passage.title == "T"
    assert [found.score for found in hits] == [1, 1 / 2, 1 / 3]
    server.otherwise = says({"result": [bare[1:]]})
    assert search(HttpRetriever(server.url), ["q"], 1)[0][0].passage == hits[1].passage, (
        "an id does not depend on the position"
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.just(GOOD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["result", "document", "id"]), inner),
)


@examples(60)
@given(json_values, st.integers(1, 3), st.integers(1, 3))
def test_any_json_gives_results_or_an_error(value: Any, queries: int, k: int) -> None:
    try:
        results = read_results(json.dumps({"result": value}).encode(), queries, k)
    except ValueError:
        return
    assert len(results) == queries
    assert all(len(hits) <= k and len(set(hits)) == len(hits) for hits in results)


def test_connections_are_reused(server: Server) -> None:
    retriever = HttpRetriever(server.url)
    for _ in range(3):
        retriever.search(["a"], 1)
    retriever.close()
    retriever.close()

    async def three() -> None:
        for _ in range(3):
            await retriever.asearch(["a"], 1)

    asyncio.run(three())
    ports = [port for _, _, port in server.seen]
    assert [len(set(ports[:3])), len(set(ports[3:]))] == [1, 1]


@pytest.mark.slow
def test_an_event_loop_that_ends_closes_its_connections(server: Server) -> None:
    retriever = HttpRetriever(server.url)
    loops = list[weakref.ref[asyncio.AbstractEventLoop]]()

    async def ask() -> Any:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await asyncio.gather(*(retriever.asearch([str(i)], 1) for i in range(5)))
        return await retriever._http._async_client()

    clients = [asyncio.run(ask()) for _ in range(3)]
    assert all(client.is_closed for client in clients)
    del clients
    gc.collect()
    assert [loop() for loop in loops] == [None] * 3, "the client does not keep its event loop alive"


def test_a_cancelled_caller_does_not_affect_others(server: Server) -> None:
    retriever = HttpRetriever(server.url)

    async def play() -> list[list[Hit]]:
        server.script = [server.hang]
        lost = asyncio.create_task(retriever.asearch(["a"], 1))
        while not server.requests:
            await asyncio.sleep(0.01)
        lost.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lost
        return await retriever.asearch(["b"], 1)

    began = time.monotonic()
    assert asyncio.run(play()) == [[hit("b0")]]
    assert time.monotonic() - began < 20  # the server hangs for longer


def test_a_search_does_not_block_the_event_loop(server: Server) -> None:
    slow = threading.Event()

    def wait(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        slow.wait(20)
        find(handler, request)

    server.script = [wait]
    retriever = HttpRetriever(server.url)
    assert retriever.waits

    async def play() -> list[list[Hit]]:
        task = asyncio.create_task(retriever.asearch(["a"], 1))
        while not server.requests:
            await asyncio.sleep(0.01)
        slow.set()
        return await task

    assert asyncio.run(play()) == [[hit("a0")]]


def test_threads_share_a_retriever(server: Server) -> None:
    retriever, found = HttpRetriever(server.url), dict[str, list[list[Hit]]]()

    def ask(name: str) -> None:
        found[name] = retriever.search([name], 1)

    threads = [threading.Thread(target=ask, args=(f"t{i}-",)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    retriever.close()
    assert found == {f"t{i}-": [[hit(f"t{i}-0")]] for i in range(12)}


def test_a_forked_process_has_connections_of_its_own(server: Server) -> None:
    retriever = HttpRetriever(server.url)
    retriever.search(["parent"], 1)
    child = os.fork()
    if child == 0:
        right = retriever.search(["child"], 1) == [[hit("child0")]]
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert retriever.search(["parent"], 1) == [[hit("parent0")]]
    retriever.close()
    first, of_child, again = (port for _, _, port in server.seen)
    assert first == again != of_child


def test_it_is_pickled_by_its_arguments(server: Server) -> None:
    retriever = HttpRetriever(server.url, "verl", timeout=1.0, deadline=2.0, token="t")
    retriever.search(["a"], 1)
    other = pickle.loads(pickle.dumps(retriever))
    assert other._arguments == retriever._arguments and other is not retriever
    assert copy.deepcopy(retriever) is retriever
    assert other.search(["a"], 1) == [[hit("a0")]]
    assert retriever.describe() == {"engine": "http", "url": f"{server.url}/retrieve", "dialect": "verl"}
    retriever.close()
    other.close()


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x", "http://", "http:///retrieve"])
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="the URL of a retrieval server is like"):
        HttpRetriever(url)
    with pytest.raises(UsageError, match="search-r1, verl, skyrl"):
        HttpRetriever("http://x", "gem")  # type: ignore[arg-type]


def test_errors_do_not_show_credentials_of_the_url() -> None:
    retriever = HttpRetriever("http://user:secret@127.0.0.1:1/retrieve?key=secret", deadline=1.0)
    assert retriever.describe()["url"] == "http://127.0.0.1:1/retrieve"
    with pytest.raises(RetrieverError) as raised:
        retriever.search(["a"], 1)
    assert "secret" not in str(raised.value) and "127.0.0.1:1" in str(raised.value)

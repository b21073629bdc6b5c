"""The client's own connections: one segment per request, odd replies, and connections that the server closed."""

import contextlib
import select
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import httpx
import pytest

from agentgym_envs.errors import SessionLost
from agentgym_envs.http.plain_client import OddReply, ReplyHead, read_head
from agentgym_envs.http.run import background_server
from agentgym_envs.http.server_connection import ServerConnection
from tests.http.tools import COUNT
from tests.ports import free_port
from tests.waiting import SECONDS, until

BODY = b'{"observation":"x"}'
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n" + BODY
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n" + BODY + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "read"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5", ReplyHead(200, 5, True)),
        (b"HTTP/1.1 404\r\ncontent-length:\t05 \r\nX: \xe9", ReplyHead(404, 5, True)),
        (b"HTTP/1.1 204 No Content", ReplyHead(204, 0, True)),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: Close", ReplyHead(502, 0, False)),
        (b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5", ReplyHead(200, 5, True)),
    ],
)
def test_plain_heads_are_read(head, read):
    assert read_head(head) == read


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5",
        b"HTTP/2 200\r\nContent-Length: 5",
        b"HTTP/1.1 100 Continue\r\nContent-Length: 5",
        b"HTTP/1.1 302 Found\r\nContent-Length: 5",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 5",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 5",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Encoding: gzip",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1" + b"0" * 20,
        b"HTTP/1.1 200 OK\r\nContent-Length : 5",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 5",
        b"HTTP/1.1 200 OK\nContent-Length: 5",
        b"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 5",
        b"HTTP/1.1 200 OK\r\nX: \x00\r\nContent-Length: 5",
    ],
)
def test_odd_heads_are_left_to_httpx(head):
    with pytest.raises(OddReply):
        read_head(head)


class Scripted:
    """A server of raw replies: `answer` returns the bytes for a request, and whether the connection ends then."""

    def __init__(self, answer: Callable[[int, bytes], tuple[bytes, bool]]) -> None:
        self._answer = answer
        self.requests: list[bytes] = []
        self.segments: list[bytes] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.clients: list[socket.socket] = []

    def __enter__(self) -> ServerConnection:
        threading.Thread(target=self._accept, daemon=True).start()
        return connection(f"http://127.0.0.1:{self._listener.getsockname()[1]}")

    def __exit__(self, *error: object) -> None:
        self._listener.close()
        for client in self.clients:
            client.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.clients.append(client)
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            while request := self._read(client):
                self.requests.append(request)
                reply, ends = self._answer(len(self.requests), request)
                client.sendall(reply)
                if ends:
                    return

    def _read(self, client: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < length_of(data):
            segment = client.recv(65536)
            if not segment:
                return b""
            self.segments.append(segment)
            data += segment
        return data


def length_of(request: bytes) -> int:
    return int(request.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


def connection(url: str, **settings: Any) -> ServerConnection:
    made = ServerConnection(url, **settings)
    made._numbers["s"] = 0
    return made


def step(to: ServerConnection) -> Any:
    return to.call("s", "step", {"action": "up"})


def body(request: bytes) -> bytes:
    return request.partition(b"\r\n\r\n")[2]


def test_a_call_is_one_segment_on_one_connection():
    server = Scripted(lambda number, request: (PLAIN, False))
    with server as client:
        for _ in range(3):
            assert step(client) == {"observation": "x"}
    assert server.segments == server.requests and server.connections == 1
    assert [body(each) for each in server.requests] == [b'{"action":"up","seq":%d}' % seq for seq in (1, 2, 3)]


def test_a_request_of_httpx_is_one_segment():
    reply = b'{"results":[{"observation":"x"}]}'
    server = Scripted(
        lambda number, request: (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(reply), reply), False)
    )
    with server as client:
        for _ in range(3):
            assert client.submit_and_wait("s", "step", {"action": "up"}) == {"observation": "x"}
    assert server.segments == server.requests and server.connections == 1
    assert all(each.startswith(b"POST /v2/batch ") for each in server.requests)


@pytest.mark.parametrize(
    "odd",
    [
        CHUNKED,
        b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN,
        b"HTTP/1.1 200 OK\r\nContent-Length: 19\r\nX: a\r\n b\r\n\r\n" + BODY,
    ],
)
def test_odd_replies_are_read_by_httpx(odd):
    server = Scripted(lambda number, request: (odd, False))
    with server as client:
        for _ in range(3):
            assert step(client) == {"observation": "x"}
    assert [body(each)[-2:] for each in server.requests] == [b"1}", b"1}", b"2}", b"3}"], "only the first one twice"


@pytest.mark.parametrize(
    "wrong",
    [
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 19\r\nContent-Length: 5\r\n\r\n" + BODY,
        b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + BODY,
        b"",
    ],
)
def test_wrong_replies_lose_the_session(wrong, monkeypatch):
    monkeypatch.setattr("agentgym_envs.http.server_connection.BACKOFF_SECONDS", 0.01)
    server = Scripted(lambda number, request: (wrong, True))
    with server as client, pytest.raises(SessionLost, match="cannot be reached"):
        step(client)
    assert {body(each) for each in server.requests} == {b'{"action":"up","seq":1}'}


def test_bytes_after_a_reply_never_become_the_next_reply():
    injected = PLAIN.replace(b'"x"', b'"y"')
    server = Scripted(lambda number, request: (PLAIN + injected, False) if number == 1 else (PLAIN, False))
    with server as client:
        assert [step(client)["observation"] for _ in range(3)] == ["x", "x", "x"]


def test_a_late_second_reply_never_becomes_the_next_reply():
    server = Scripted(lambda number, request: (PLAIN, False))
    with server as client:
        step(client)
        server.clients[0].sendall(PLAIN.replace(b'"x"', b'"y"'))
        assert client._plain is not None
        kept = client._plain._pool._idle[0]._socket
        assert kept is not None and select.select([kept], [], [], SECONDS)[0]
        assert step(client) == {"observation": "x"}
    assert server.connections == 2


@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"])
def test_a_connection_that_the_server_closed_is_replaced(header):
    reply = PLAIN.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n")
    server = Scripted(lambda number, request: (reply, True))
    with server as client:
        for _ in range(3):
            assert step(client) == {"observation": "x"}
    assert [body(each)[-2:] for each in server.requests] == [b"1}", b"2}", b"3}"]
    assert server.connections == 3


def test_a_connection_that_ends_as_the_request_arrives_is_replaced_at_once(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it paused"))
    server = Scripted(lambda number, request: (b"", True) if number == 2 else (PLAIN, False))
    with server as client:
        assert [step(client), step(client)] == [{"observation": "x"}] * 2
    assert [body(each)[-2:] for each in server.requests] == [b"1}", b"2}", b"2}"]


def test_a_server_that_replies_no_more_loses_the_session(monkeypatch):
    monkeypatch.setattr("agentgym_envs.http.server_connection.BACKOFF_SECONDS", 0.01)
    server = Scripted(lambda number, request: (PLAIN, False) if number == 1 else (b"", True))
    with server as client:
        step(client)
        with pytest.raises(SessionLost, match="cannot be reached"):
            step(client)
    assert [body(each)[-2:] for each in server.requests] == [b"1}"] + [b"2}"] * 5, "a stale connection and 4 attempts"


def test_the_proxies_of_the_environment_are_not_used(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with background_server([COUNT]) as url:
        env = gym.make(COUNT, base_url=url)
        env.reset(seed=0, options={"task": "count/9"})
        assert env.step("up")[0] == "1"
        env.close()


@pytest.mark.parametrize("session", ["", "a b", "a/b", "a?b", "a%2fb", "a\\r\\nX: b", "\\ud800"])
def test_a_session_that_cannot_be_in_a_path_is_refused(session):
    reply = b'{"session":"%b","description":{},"load":{}}' % session.encode()
    server = Scripted(
        lambda number, request: (b"HTTP/1.1 201 C\r\nContent-Length: %d\r\n\r\n%b" % (len(reply), reply), False)
    )
    with server as client, pytest.raises(SessionLost, match="does not answer as a server of this suite"):
        client.open(COUNT, {})


def test_threads_share_a_connection_one_at_a_time():
    server = Scripted(lambda number, request: (PLAIN.replace(b'"x"', body(request)[-2:-1].join([b'"', b'"'])), False))
    with server as client:
        for number in range(8):
            client._numbers[str(number)] = number
        found: dict[int, set[str]] = {}

        def play(number: int) -> None:
            found[number] = {client.call(str(number), "status", {})["observation"] for _ in range(20)}

        threads = [threading.Thread(target=play, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    assert len(found) == 8 and server.connections <= 8


@pytest.mark.parametrize("timeout", [0.1, 1e-9])
def test_a_silent_server_is_given_up(monkeypatch, timeout):
    monkeypatch.setattr("agentgym_envs.http.server_connection.BACKOFF_SECONDS", 0.01)
    silent = threading.Event()

    def wait(number: int, request: bytes) -> tuple[bytes, bool]:
        silent.wait(SECONDS)
        return b"", True

    server = Scripted(wait)
    with server as client:
        with pytest.raises(SessionLost, match=r"did not reply in time|timed out"):
            step(connection(client.url, timeout=timeout))
        until(lambda: timeout < 0.1 or len(server.requests) == 4)
        silent.set()


def test_a_server_that_stops_in_the_middle_of_a_reply_is_given_up(monkeypatch):
    monkeypatch.setattr("agentgym_envs.http.server_connection.BACKOFF_SECONDS", 0.01)
    server = Scripted(lambda number, request: (PLAIN[:-5], False))
    with server as client, pytest.raises(SessionLost, match="did not reply in time"):
        step(connection(client.url, timeout=0.1))


def test_the_longest_timeout_is_accepted():
    with Scripted(lambda number, request: (PLAIN, False)) as client:
        assert step(connection(client.url, timeout=threading.TIMEOUT_MAX)) == {"observation": "x"}


def test_a_signal_interrupts_the_wait_for_a_reply():
    asked, silent, main = threading.Event(), threading.Event(), threading.get_ident()

    def wait(number: int, request: bytes) -> tuple[bytes, bool]:
        asked.set()
        silent.wait(SECONDS)
        return b"", True

    def interrupt() -> None:
        asked.wait(SECONDS)
        signal.pthread_kill(main, signal.SIGINT)

    with Scripted(wait) as client:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            step(client)
        silent.set()


def test_a_server_without_the_fast_path_serves_httpx_alike():
    with background_server([COUNT], fast_steps=False) as url:
        env = gym.make(COUNT, base_url=url)
        env.reset(seed=0, options={"task": "count/9"})
        assert env.step("up")[0] == "1"
        env.close()
        assert httpx.get(f"{url}/health", trust_env=False).json()["sessions"] == 0

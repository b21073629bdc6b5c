"""The fast path of the server: the same bytes get the same replies, metrics and state as on the general path."""

import asyncio
import json
import re
import socket
import threading
import time
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_envs.http.app import EnvServer, create_app
from agentgym_envs.http.protocol import ServerLimits
from agentgym_envs.http.run import background_server, make_server
from tests.http.test_server import connect
from tests.http.tools import COUNT, TOYS, TRICKY, Api, listens
from tests.ports import free_port
from tests.trying import examples
from tests.waiting import SECONDS, until

TOKEN = "sesame"
LIMITS = ServerLimits(body_bytes=1000, header_bytes=8192, episode_bytes=400)
BEARER = f"Authorization: Bearer {TOKEN}"
END = f"GET /nowhere HTTP/1.1\r\nHost: x\r\n{BEARER}\r\nConnection: close\r\n\r\n".encode()
"""A last request: the server closes the connection after its reply."""


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose timers can be made to fire without waiting."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


class Wire(asyncio.Transport):
    """The server's end of a connection, without a network."""

    def __init__(self, side: "Side") -> None:
        super().__init__()
        self.sent, self.closed = b"", False
        self._protocol: Any = side.protocol()
        self._protocol.connection_made(self)

    async def receive(self, data: bytes) -> None:
        """Pass a segment to the server, and let it work until it has nothing to do."""
        if not self.closed:
            self._protocol.data_received(data)
        await settled()

    def write(self, data: Any) -> None:
        if not self.closed:
            self.sent += bytes(data)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def set_protocol(self, protocol: Any) -> None:  # a WebSocket's
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def settled() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


class Side:
    """A server without a network."""

    def __init__(self, fast_steps: bool) -> None:
        app = create_app(TOYS, token=TOKEN, limits=LIMITS)
        self.server: EnvServer = app.state.server
        self.sessions = self.server.sessions
        self.fast: list[int] = []
        original = self.server.step_now

        def step_now(request: Any) -> Any:
            response = original(request)
            if response is not None:
                self.fast.append(response.status_code)
            return response

        self.server.step_now = step_now
        self._uvicorn = make_server(app, "127.0.0.1", 0, fast_steps=fast_steps)
        self._uvicorn.config.load()

    def protocol(self) -> Any:
        made = self._uvicorn.config.http_protocol_class
        return made(config=self._uvicorn.config, server_state=self._uvicorn.server_state, app_state={})  # type: ignore[call-arg]

    def counted(self) -> dict[str, float]:
        text = self.server.metrics.text(self.sessions)[0].decode()
        rows = re.findall(r"^(agentgym_(?:calls_total|request_seconds_count)\S+) (\S+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in rows}


@pytest.fixture(scope="module")
def loop():
    clock = Clock()
    yield clock
    clock.close()


@pytest.fixture(scope="module")
def sides(loop):
    asyncio.set_event_loop(loop)
    made = Side(True), Side(False)
    yield made
    for side in made:
        loop.run_until_complete(side.sessions.shut_down())
    asyncio.set_event_loop(None)


def step(
    body: bytes = b'{"action":"up","seq":2}',
    *more: str,
    line: str = "POST /v2/sessions/SESSION/step HTTP/1.1",
    host: str | None = "Host: x",
    access: str | None = BEARER,
    length: str | None = "Content-Length: {}",
) -> bytes:
    lines = [line, host, access, *more, None if length is None else length.format(len(body))]
    head = "".join(f"{each}\r\n" for each in lines if each is not None)
    return head.encode("latin-1") + b"\r\n" + body


class Played(NamedTuple):
    """The effects of some bytes: the replies, the state of the session, and the counted calls."""

    replies: bytes
    closed: bool
    state: Any
    counted: dict[str, float]


async def play(side: Side, env: str, segments: list[bytes]) -> Played:
    """Send segments, then a last request, and wait until the server closes the connection."""
    session = await side.sessions.open(env, {})
    await side.sessions.call(session.token, "reset", {"seed": 0, "options": {"task": "count/9"}}, 1)
    before, wire = side.counted(), Wire(side)
    for segment in [*segments, END]:
        await wire.receive(segment.replace(b"SESSION", session.token.encode()))
    clock = asyncio.get_running_loop()
    for _ in range(3):  # past all time limits
        if not wire.closed:
            clock.skipped += 20.0  # type: ignore[attr-defined]
            await asyncio.sleep(0.001)
            await settled()
    counts = {name: value - before.get(name, 0.0) for name, value in side.counted().items()}
    status = await side.sessions.call(session.token, "status", {})
    state = session.seq, session.action_bytes, status
    side.sessions.close(session.token)
    replies = re.sub(rb"date: [^\r]*", b"date", wire.sent.replace(session.token.encode(), b"SESSION"))
    return Played(replies, wire.closed, state, counts)


METHODS_AND_PATHS = st.sampled_from(
    [
        "POST /v2/sessions/SESSION/step HTTP/1.1",
        "POST /v2/sessions/SESSION/step HTTP/1.0",
        "POST /v2/sessions/SESSION/step HTTP/2.0",
        "POST /v2/sessions/SESSION/step?a=b HTTP/1.1",
        "POST /v2/sessions/SESSION/step/ HTTP/1.1",
        "POST /v2/sessions/%53ESSION/step HTTP/1.1",
        "POST /v2/sessions/other/step HTTP/1.1",
        "POST /v2/sessions/SESSION/status HTTP/1.1",
        "POST /v2/sessions/SESSION/fly HTTP/1.1",
        "POST //v2/sessions/SESSION/step HTTP/1.1",
        "GET /v2/sessions/SESSION/step HTTP/1.1",
        "PUT /v2/sessions/SESSION/step HTTP/1.1",
        "post /v2/sessions/SESSION/step HTTP/1.1",
        "POST /v2/sessions/SESSION/step",
        "POST  /v2/sessions/SESSION/step HTTP/1.1",
    ]
)
BODIES = st.sampled_from(
    [
        b'{"action":"up","seq":2}',
        b'{"action":"up"}',
        b'{"action":"up","seq":2,"seed":3,"options":{"task":"count/2"}}',
        b'{"action":"up","seq":1}',
        b'{"action":"up","seq":9}',
        b'{"action":"raise","seq":2}',
        b'{"action":"odd","seq":2}',
        b'{"action":"cancelled"}',
        b'{"action":"nonsense \\ud800 \\u00e9","seq":2}',
        b'{"action":"' + b"n" * 300 + b'","seq":2}',
        b'{"action":"' + b"n" * 500 + b'","seq":2}',
        b'{"action":"' + b"n" * 1200 + b'","seq":2}',
        b'{"action":5,"seq":2}',
        b'{"action":"up","seq":2,"other":1}',
        b'{"action":"up","\\ud800":1}',
        b'{"action":"up","seq":NaN}',
        b'{"seq":2}',
        b'{"action":"\xff"}',
        b"[]",
        b"{",
        b"",
    ]
)
ACCESS = st.sampled_from(
    [
        BEARER,
        BEARER.lower(),
        "authorization:Bearer  sesame",
        "Authorization: bearer sesame",
        "Authorization: Basic YW55Ym9keTpzZXNhbWU=",
        "Authorization: Basic ???",
        "Authorization: Bearer wrong",
        "Authorization: sesame",
        "Authorization: B\xe9arer",
        f"{BEARER}\r\nAuthorization: Bearer wrong",
        f"Authorization: Bearer wrong\r\n{BEARER}",
        None,
    ]
)
LENGTHS = st.sampled_from(
    [
        "Content-Length: {}",
        "content-length:{}",
        "Content-Length: 0{}",
        "Content-Length: {0}\r\nContent-Length: {0}",
        "Content-Length: {}\r\nContent-Length: 3",
        "Content-Length: 3\r\nContent-Length: {}",
        "Content-Length: {0}, {0}",
        "Content-Length: +{}",
        "Content-Length: 0x{}",
        "Content-Length: 9{}",
        "Content-Length: 9999999999{}",
        "Content-Length: 3",
        "Content-Length:",
        "Content-Length : {}",
        "Content-Length: {}\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: {}",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: identity\r\nContent-Length: {}",
        None,
    ]
)
MORE = st.lists(
    st.sampled_from(
        [
            "Connection: keep-alive",
            "Connection: close",
            "Connection: upgrade\r\nUpgrade: websocket",
            "Connection: upgrade\r\nUpgrade: h2c",
            "Expect: 100-continue",
            "User-Agent: a",
            "Content-Type: text/plain",
            "Content-Encoding: gzip",
            "X-Forwarded-For: 10.0.0.1",
            "Accept: a\r\n folded",
            "Accept: a\nX: b",
            "Accept : a",
            "Accept: \x00",
            "Long: " + "x" * 5000,
            "nothing",
        ]
    ),
    max_size=2,
)
PLAIN = step()
HIDDEN = b"POST /v2/sessions/SESSION/step HTTP/1.1\r\nHost: x\r\n" + BEARER.encode() + b"\r\nContent-Length: 15\r\n\r\n"
HIDDEN += b'{"action":"up"}'
AFTER = st.sampled_from([b"", b"", b"", b"\r\n", b"garbage\r\n\r\n", b"\x00", PLAIN, step(b'{"action":"up","seq":3}')])


@st.composite
def requests(draw: st.DrawFn) -> list[bytes]:
    """A plain step with at most two changes, perhaps something after it, in up to four segments."""
    changes = {"line": METHODS_AND_PATHS, "access": ACCESS, "length": LENGTHS}
    chosen = draw(st.lists(st.sampled_from(sorted(changes)), max_size=2, unique=True))
    data = step(draw(BODIES), *draw(MORE), **{name: draw(changes[name]) for name in chosen})  # type: ignore[arg-type]
    data += draw(AFTER)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=3)))
    return [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if begin < end]


@pytest.mark.slow
@examples(400, deadline=None)
@given(first=requests(), second=requests() | st.just([PLAIN]), env=st.sampled_from([COUNT, TRICKY]))
@example(first=[PLAIN], second=[PLAIN], env=COUNT)
@example(first=[PLAIN], second=[step(b'{"action":"up","seq":3}')], env=COUNT)
@example(first=[step(b'{"action":"raise","seq":2}')], second=[step(b'{"action":"raise","seq":2}')], env=TRICKY)
@example(first=[step(b'{"action":"odd","seq":2}')], second=[step(b'{"action":"odd","seq":2}')], env=TRICKY)
@example(first=[step(b'{"action":"' + b"n" * 500 + b'"}')], second=[step(b'{"action":"up"}')], env=TRICKY)
@example(first=[PLAIN + PLAIN[:60]], second=[PLAIN[60:]], env=COUNT)
@example(first=[b"GET /health HTTP/1.1\r\nHost: x\r\nA: "], second=[PLAIN], env=COUNT)
@example(first=[b"\r"], second=[PLAIN], env=COUNT)
@example(first=[step(b"", "Connection: upgrade\r\nUpgrade: h2c", length=None)], second=[PLAIN], env=COUNT)
@example(first=[PLAIN[:-5]], second=[HIDDEN], env=COUNT)
def test_both_paths_do_the_same(loop, sides, first, second, env):
    fast, general = (loop.run_until_complete(play(side, env, [*first, *second])) for side in sides)
    assert fast == general


def test_plain_steps_take_the_fast_path(loop, sides):
    fast, general = sides
    before = len(fast.fast), len(general.fast)
    for side in sides:
        segments = [PLAIN, PLAIN, step(b'{"action":"up","seq":3}'), step(b'{"action":"up","seq":7}')]
        loop.run_until_complete(play(side, COUNT, segments))
    assert fast.fast[before[0] :] == [200, 200, 200, 409]
    assert len(general.fast) == before[1]


@pytest.mark.parametrize(
    "first",
    [
        step(length="Content-Length: 3"),
        step(length="Content-Length: {}\r\nContent-Length: 3"),
        step(length="Content-Length: 3\r\nContent-Length: {}"),
        step(length="Content-Length: {}\r\nTransfer-Encoding: chunked"),
        step(b"0\r\n\r\n", "Transfer-Encoding: chunked", length=None),
        step(length="Content-Length: {}\r\nTransfer-Encoding : chunked"),
        step(length="Content-Length: {}\nX: a"),
        step(length="X: a\rContent-Length: {}"),
        step(length="Content-Length: 9999"),
        b"POST /v2/sessions/SESSION/step HTTP/1.1\r\nHost: x\r\nX: ",
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_no_request_is_smuggled_past_a_proxy(loop, sides, first, together):
    """A proxy may see one request where the server sees two: only a request of its own takes a step."""
    segments = [first + HIDDEN] if together else [first, HIDDEN]
    played = [loop.run_until_complete(play(side, COUNT, segments)) for side in sides]
    assert played[0] == played[1]
    assert played[0].replies.count(b'"observation"') == played[0].state[2]["turn"]


@pytest.mark.slow
def test_a_slow_step_after_fast_ones_times_out():
    with background_server([COUNT], limits=ServerLimits(header_seconds=0.5)) as url:
        session = Api(url).begin(COUNT)
        data = step(access=None).replace(b"SESSION", session.encode())
        with connect(url) as client:
            for _ in range(3):
                client.sendall(data)
                assert client.recv(4096).startswith(b"HTTP/1.1 200 OK")
            with pytest.raises(OSError):
                for byte in data.replace(b"Host: x", b"Host: " + b"x" * 3000):
                    client.sendall(bytes([byte]))
                    time.sleep(0.02)
        assert Api(url).call(session, "status").json()["turn"] == 1


@pytest.mark.slow
def test_an_idle_connection_is_closed_after_a_fast_step():
    port = free_port()
    server = make_server(create_app([COUNT], limits=ServerLimits(header_seconds=600)), "127.0.0.1", port)
    server.config.timeout_keep_alive = 1
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: listens(port))
    session = Api(f"http://127.0.0.1:{port}").begin(COUNT)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
        client.sendall(step(access=None).replace(b"SESSION", session.encode()))
        assert b"".join(iter(lambda: client.recv(4096), b"")).startswith(b"HTTP/1.1 200 OK")
    server.should_exit = True
    thread.join(SECONDS)


async def idle_times(side: Side, seconds: list[int]) -> list[bool]:
    """True for each pause after a step that the connection survived."""
    session = await side.sessions.open(COUNT, {})
    await side.sessions.call(session.token, "reset", {"seed": 0, "options": {"task": "count/9"}})
    clock, wire, open_after = asyncio.get_running_loop(), Wire(side), list[bool]()
    for pause in seconds:
        await wire.receive(step(b'{"action":"up"}').replace(b"SESSION", session.token.encode()))
        clock.skipped += pause  # type: ignore[attr-defined]
        await asyncio.sleep(0.001)
        await settled()
        open_after.append(not wire.closed)
    side.sessions.close(session.token)
    wire.close()
    return open_after


def test_the_idle_time_of_a_connection_begins_with_its_last_step(loop, sides):
    for pauses in ([50, 50, 50, 74, 76], [50, 26, 76]):
        for side in sides:
            assert loop.run_until_complete(idle_times(side, pauses)) == [pause < 75 for pause in pauses]


@pytest.mark.slow
def test_other_middleware_turns_the_fast_path_off():
    app = create_app([COUNT])
    seen: list[str] = []

    class Watching:
        def __init__(self, app: Any) -> None:
            self._app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            seen.append(scope.get("path", ""))
            await self._app(scope, receive, send)

    app.add_middleware(Watching)
    port = free_port()
    server = make_server(app, "127.0.0.1", port)
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: listens(port))
    api = Api(f"http://127.0.0.1:{port}")
    session = api.begin(COUNT)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
        client.sendall(step(access=None).replace(b"SESSION", session.encode()))
        assert json.loads(client.recv(65536).partition(b"\r\n\r\n")[2])["observation"] == "1"
    assert f"/v2/sessions/{session}/step" in seen
    server.should_exit = True
    thread.join(SECONDS)


def test_a_bug_in_a_fast_step_closes_the_connection(capfd):
    def broken(server: EnvServer) -> list[Any]:
        def step_now(request: Any) -> None:
            raise KeyError("/secret/path.py")

        server.step_now = step_now  # type: ignore[method-assign]
        return []

    with background_server([COUNT], mounts=[broken]) as url, connect(url) as client:
        client.sendall(step(access=None))
        reply = b"".join(iter(lambda: client.recv(4096), b""))
    assert reply.startswith(b"HTTP/1.1 500 ") and b"SessionLost" in reply and b"secret" not in reply
    assert "/secret/path.py" in capfd.readouterr().err

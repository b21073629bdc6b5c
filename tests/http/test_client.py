"""The client: pools of servers, batches, threads, forks, and replies of other kinds of servers."""

import asyncio
import gc
import http.server
import json
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs import make_vec
from agentgym_envs.core import text_env
from agentgym_envs.errors import EnvError, OutOfOrder, UsageError
from agentgym_envs.hosting.connection import PendingCall
from agentgym_envs.http.client import remote_env
from agentgym_envs.http.protocol import ServerLimits
from agentgym_envs.http.run import background_server
from agentgym_envs.http.server_connection import ServerConnection
from tests.http.tools import COUNT, SLOW, TOYS, TRICKY, Api
from tests.ports import free_port
from tests.quiet_http import QuietHTTPServer
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow  # too slow for the fast run


@pytest.fixture(scope="module")
def url():
    with background_server(TOYS, workers=1, limits=ServerLimits(body_bytes=2**20)) as address:
        yield address


class Odd:
    """A server of another kind, with scripted replies in order."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        left = list(answers)
        self.asked = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.asked += 1
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, body = left.pop(0) if len(left) > 1 else left[0]
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_DELETE = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self._server = QuietHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def submit(connection, calls):
    """Submit steps and wait for their results."""
    outcomes, left = {}, threading.Semaphore(0)

    def done_for(index):
        def done(outcome):
            outcomes[index] = outcome
            left.release()

        return done

    connection.submit([PendingCall(s, v, a, done_for(index)) for index, (s, v, a) in enumerate(calls)])
    for _ in calls:
        assert left.acquire(timeout=SECONDS)
    return [outcomes[index] for index in range(len(calls))]


def opened(connection: ServerConnection, count: int, env: str = COUNT) -> list[str]:
    sessions = [connection.open(env, {})[0].session for _ in range(count)]
    for session in sessions:
        connection.call(session, "reset", {"seed": 0, "options": {"task": "count/9"}})
    return sessions


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"detail": "Not Found"}', b"[]", b"\xff", b'{"a": 1}'])
@pytest.mark.parametrize("status", [200, 201, 404, 500])
def test_a_server_of_another_kind_raises_env_error(status, body):
    with Odd((status, body)) as odd, pytest.raises(EnvError, match=odd.url):
        gym.make(COUNT, base_url=odd.url, connect_timeout=0.1)


def test_requests_are_repeated_if_a_gateway_fails():
    with Odd((502, b"bad"), (503, b""), (200, b'{"observation": "x"}')) as odd:
        connection = ServerConnection(odd.url)
        connection._numbers["s"] = 0
        assert connection.call("s", "step", {"action": "up"}) == {"observation": "x"}
        assert odd.asked == 3


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"results": []}', b'{"results": 5}', b"null"])
def test_batch_replies_of_another_kind_of_server_raise(body):
    with Odd((200, body)) as odd:
        connection = ServerConnection(odd.url)
        connection._numbers.update(a=0, b=0)
        outcomes = submit(connection, [("a", "step", {"action": "up"}), ("b", "step", {"action": "up"})])
        assert all(isinstance(outcome, EnvError) for outcome in outcomes)


def test_only_calls_that_were_carried_out_advance_the_sequence_number(url):
    connection = ServerConnection(url)
    (session,) = opened(connection, 1, TRICKY)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("restore", {"task_id": "count/9", "seed": 0, "actions": [5]}),
        ("reset", {"seed": -1}),
        ("step", {"action": "x" * 2**21}),
        ("reset", {"seed": 1, "options": {"task": "nobody"}}),
        ("reset", {"seed": 1, "options": {"task": 5}}),
    ]
    for method, arguments in wrong:
        with pytest.raises(UsageError) as caught:
            connection.call(session, method, arguments)
        assert not isinstance(caught.value, OutOfOrder)
    with pytest.raises(EnvError):
        connection.call(session, "step", {"action": "raise"})
    assert connection.call(session, "reset", {"seed": 0})["task"]


def test_one_call_that_is_too_large_fails_alone(url):
    connection = ServerConnection(url)
    sessions = opened(connection, 20)
    calls: list[tuple[str, str, dict[str, Any]]] = [(s, "step", {"action": "up"}) for s in sessions]
    calls[7] = (sessions[7], "step", {"action": "x" * 2**21})
    calls[13] = (sessions[13], "reset", {"seed": -4})
    outcomes = submit(connection, calls)
    assert {index for index, outcome in enumerate(outcomes) if isinstance(outcome, UsageError)} == {7, 13}
    assert {outcome["observation"] for outcome in outcomes if isinstance(outcome, dict)} == {"1"}
    again = submit(connection, [(s, "step", {"action": "up"}) for s in sessions])
    assert [row["observation"] for row in again] == ["1" if index in (7, 13) else "2" for index in range(20)]


def test_too_large_batches_are_split(url):
    connection = ServerConnection(url)
    sessions = opened(connection, 8)
    outcomes = submit(connection, [(s, "step", {"action": "y" * 300_000}) for s in sessions])
    assert all("too long" in outcome["observation"] for outcome in outcomes)


def test_slow_environments_do_not_delay_fast_ones(url, tmp_path):
    connection = ServerConnection(url)
    slow, fast = opened(connection, 12, SLOW), opened(connection, 12, SLOW)
    late: list[object] = []
    for session in slow:  # one request each, more than there are threads for fast environments
        connection.submit([PendingCall(session, "step", {"action": f"await {tmp_path}/go"}, late.append)])
        time.sleep(0.01)
    for turn in range(1, 4):
        rows = submit(connection, [(s, "step", {"action": "up"}) for s in fast])
        assert [row["observation"] for row in rows] == [str(turn)] * 12
    assert not late
    (tmp_path / "go").touch()
    until(lambda: len(late) == 12)


@pytest.mark.rotating
def test_64_threads_play_512_sessions(url):
    before = Api(url).sessions()

    def play(number: int) -> int:
        envs = [gym.make(COUNT, base_url=url) for _ in range(8)]
        for env in envs:
            env.reset(seed=number, options={"task": "count/3"})
        total = sum(float(env.step("up")[1]) for _ in range(3) for env in envs)
        for env in envs:
            env.close()
        return round(total)

    with ThreadPoolExecutor(64) as threads:
        assert list(threads.map(play, range(64))) == [8] * 64
    assert Api(url).sessions() == before


def test_one_vector_environment_plays_512_sessions(url):
    before = Api(url).sessions()
    vec = make_vec(COUNT, 512, base_url=url)
    vec.reset(seed=0, options={"task": "count/9"})
    for turn in range(1, 4):
        assert set(vec.step(["up"] * 512)[0]) == {str(turn)}
    vec.close()
    assert Api(url).sessions() == before


def test_one_event_loop_plays_512_sessions(url):
    vec = make_vec(COUNT, 512, base_url=url)
    envs = [text_env(env) for env in vec.envs]

    async def play() -> list[str]:
        await asyncio.gather(*(env.areset(seed=0, options={"task": "count/9"}) for env in envs))
        for _ in range(2):
            rows = await asyncio.gather(*(env.astep("up") for env in envs))
        return [row[0] for row in rows]

    assert set(asyncio.run(play())) == {"2"}
    vec.close()


def senders() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "agentgym-sender"}


def test_threads_and_connections_end_with_the_environments():
    before = senders()
    with background_server([COUNT]) as url:
        vec = make_vec(COUNT, 8, base_url=url)
        vec.reset(seed=0)
        vec.step(["up"] * 8)
        mine = senders() - before
        assert mine
        vec.close()
        del vec
        gc.collect()
        until(lambda: not mine & senders())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_client_opens_its_own_sessions(url):
    env = gym.make(COUNT, base_url=url)
    env.reset(seed=0, options={"task": "count/9"})
    env.step("up")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            lost = env.step("up")[4]["stop_reason"]
            env.reset(seed=0, options={"task": "count/9"})
            found = [lost, env.step("up")[0], gym.make(COUNT, base_url=url).reset(seed=1)[0]]
            env.close()
            os.write(writer, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(writer)
    found = json.loads(os.read(reader, 4096))
    os.waitpid(pid, 0)
    os.close(reader)
    assert found[:2] == ["env_error", "1"] and found[2].startswith("Count to")
    assert env.step("up")[0] == "2"
    env.close()


def test_a_pickled_environment_continues_its_episode(url):
    env = gym.make(COUNT, base_url=url).unwrapped
    env.reset(seed=0, options={"task": "count/9"})
    env.step("up")
    copy = pickle.loads(pickle.dumps(env))
    assert (copy.step("up")[0], copy.step("up")[0], env.step("up")[0]) == ("2", "3", "2")
    for one in (env, copy):
        one.close()


def test_sessions_are_spread_by_load():
    with background_server([COUNT], max_sessions=100) as one, background_server([COUNT], max_sessions=50) as two:
        with ThreadPoolExecutor(16) as threads:
            envs = list(threads.map(lambda _: gym.make(COUNT, base_url=[one, two]), range(60)))
        counts = [Api(url).sessions() for url in (one, two)]
        assert sum(counts) == 60 and abs(counts[0] - 40) <= 10
        for env in envs:
            env.close()


def test_a_dead_server_is_excluded_and_used_again_later():
    port = free_port()
    dead = f"http://127.0.0.1:{port}"
    with background_server([COUNT]) as alive:
        envs = [gym.make(COUNT, base_url=[dead, alive]) for _ in range(4)]
        assert Api(alive).sessions() == 4
        with background_server([COUNT], port=port):
            time.sleep(1.1)
            envs += [gym.make(COUNT, base_url=[dead, alive]) for _ in range(4)]
            assert Api(dead).sessions() == 4
            for env in envs:
                env.close()


def test_no_server_raises_env_error_with_all_addresses():
    urls = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
    began = time.monotonic()
    with pytest.raises(EnvError) as caught:
        gym.make(COUNT, base_url=urls, connect_timeout=0.5)
    assert 0.4 < time.monotonic() - began < 15 and all(url in str(caught.value) for url in urls)


def test_a_client_waits_for_a_full_server():
    with background_server([COUNT], max_sessions=1) as url:
        first = gym.make(COUNT, base_url=url)
        with pytest.raises(EnvError, match="holds 1 sessions"):
            gym.make(COUNT, base_url=url, connect_timeout=0.2)
        threading.Timer(0.3, first.close).start()
        second = gym.make(COUNT, base_url=url, connect_timeout=SECONDS)
        second.close()


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "ftp://x",
        [],
        [5],
        "127.0.0.1:8000",
        8000,
        None,
        "http://",
        "http://x:port",
        "http://x:70000",
        "http://x/?a=b",
    ],
)
def test_invalid_addresses_are_refused(wrong):
    with pytest.raises(UsageError, match="base_url"):
        remote_env(COUNT, base_url=wrong)


@pytest.mark.parametrize("url", ["HTTP://127.0.0.1:9", "https://[::1]:9/below/"])
def test_valid_addresses_are_accepted(url):
    with pytest.raises(EnvError, match="cannot be reached"):
        gym.make(COUNT, base_url=url, connect_timeout=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("timeout", 0), ("timeout", "5"), ("timeout", None), ("timeout", float("inf")), ("connect_timeout", -1),
     ("connect_timeout", True), ("token", "a b"), ("token", "é"), ("token", "a\n"), ("token", 5)],
)  # fmt: skip
def test_invalid_settings_are_refused(name, value):
    with pytest.raises(UsageError, match=name):
        gym.make(COUNT, base_url="http://127.0.0.1:1", **{"timeout": 1, "connect_timeout": 0, name: value})


def test_an_address_with_a_wrong_path_raises(url):
    with pytest.raises(EnvError, match=f"{url}/docs: there is no POST /docs/v2/sessions on this server"):
        gym.make(COUNT, base_url=f"{url}/docs", connect_timeout=0)


def test_a_wrong_token_raises_at_once():
    with background_server([COUNT], token="sesame") as url:
        began = time.monotonic()
        with pytest.raises(UsageError, match="token"):
            gym.make(COUNT, base_url=url, token="wrong", connect_timeout=SECONDS)
        assert time.monotonic() - began < SECONDS / 2
        gym.make(COUNT, base_url=url, token="sesame").close()

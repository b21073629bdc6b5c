"""Sockets that die, idle, send invalid messages or have no token: no session is lost or leaks."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from agentgym_envs.http.dialects.openenv import openenv_routes
from agentgym_envs.http.protocol import ServerLimits
from agentgym_envs.http.run import background_server
from tests.http.openenv_dialect.tools import COUNT, TASK, ask, ask_text, base, check_episode, held, raw, wait_until_held
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow  # too slow for the fast run


@pytest.fixture(autouse=True)
def earlier() -> set[int]:
    """The worker processes before the test's server started; those of other tests may still be ending."""
    return _workers()


Find = Callable[[], psutil.Process]


@pytest.fixture
def worker(earlier: set[int], isolated: str) -> Find:
    """Find the worker process of the test's server."""

    def find() -> psutil.Process:
        until(lambda: len(_workers() - earlier) == 1)
        return psutil.Process(*(_workers() - earlier))

    return find


def _workers() -> set[int]:
    return {child.pid for child in psutil.Process().children() if _is_worker(child)}


def _is_worker(child: psutil.Process) -> bool:
    try:
        return any("worker_main" in part for part in child.cmdline())
    except psutil.Error:  # the process has just ended
        return False


def test_a_worker_that_dies_ends_the_episode(openenv: Any, isolated: str, worker: Find) -> None:
    with openenv(base_url=isolated).sync() as client:
        check_episode(client, "textcraft/7", 1)
        client.reset(task="textcraft/7", seed=1)
        client.step({"message": "inventory"})
        worker().kill()
        dead = client.step({"message": "inventory"})
        assert dead.done and dead.reward is None and dead.metadata["stop_reason"] == "env_error"
        assert dead.metadata["turn"] == 2 and dead.metadata["task_id"] == "textcraft/7"
        check_episode(client, "textcraft/7", 1)  # in a session of a new worker
        worker().kill()
        check_episode(client, "textcraft/7", 1)  # a reset does not need the lost session
    wait_until_held(isolated, 0)


def test_the_session_of_a_killed_client_is_closed(toys: str) -> None:
    script = f"""
import json, sys, time
from websockets.sync.client import connect
websocket = connect({(base(toys, COUNT) + "/ws").replace("http", "ws", 1)!r}, proxy=None)
websocket.send(json.dumps({{"type": "reset"}}))
websocket.recv()
print("ready", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        wait_until_held(toys, 1)
        process.kill()
    wait_until_held(toys, 0)


def test_a_session_closes_at_once_if_its_client_leaves_a_long_step(isolated: str, worker: Find) -> None:
    with raw(isolated) as websocket:
        ask(websocket, "reset", task="textcraft/7")
        worker().suspend()
        websocket.send(json.dumps({"type": "step", "data": {"message": "inventory"}}))
        time.sleep(0.2)
        assert held(isolated) == 1
        websocket.socket.shutdown(socket.SHUT_RDWR)
    wait_until_held(isolated, 0)
    worker().resume()
    with raw(isolated) as websocket:
        assert ask(websocket, "reset")["type"] == "observation"


def test_messages_during_a_long_step_wait(isolated: str, worker: Find) -> None:
    with raw(isolated) as websocket:
        ask(websocket, "reset", task="textcraft/7")
        worker().suspend()
        for _ in range(3):
            websocket.send(json.dumps({"type": "step", "data": {"message": "inventory"}}))
        time.sleep(0.1)
        worker().resume()
        assert [json.loads(websocket.recv(SECONDS))["data"]["metadata"]["turn"] for _ in range(3)] == [1, 2, 3]


def test_a_full_server_refuses_with_capacity_reached(openenv: Any) -> None:
    with background_server([COUNT], max_sessions=1, mounts=[openenv_routes]) as url:
        with openenv(base_url=url).sync() as first:
            first.reset(task=TASK)
            second = openenv(base_url=url).sync()
            with pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
                second.reset()
            second.close()
            with raw(url) as websocket:
                refused = json.loads(websocket.recv(10))["data"]
                assert (refused["active_sessions"], refused["max_sessions"]) == (1, 1)
                with pytest.raises(ConnectionClosed):
                    websocket.recv(10)
            assert httpx.post(f"{url}/reset", json={}).status_code == 429
            assert first.step({"message": "up"}).metadata["turn"] == 1
        wait_until_held(url, 0)
        with openenv(base_url=url).sync() as third:
            assert not third.reset().done


@pytest.mark.rotating
def test_an_idle_socket_is_closed_and_a_busy_one_is_not() -> None:
    with background_server([COUNT], idle_seconds=3.0, mounts=[openenv_routes]) as url:
        with raw(url) as idle, raw(url) as busy:
            ask(idle, "reset")
            ask(busy, "reset", task=TASK)
            until(lambda: ask(busy, "state")["type"] == "state" and held(url) == 1)
            with pytest.raises(ConnectionClosed) as closed:
                idle.recv(SECONDS)
            assert closed.value.rcvd and closed.value.rcvd.code == 4408 and "idle" in closed.value.rcvd.reason
            assert ask(busy, "step", message="up")["data"]["metadata"]["turn"] == 1
        assert 'agentgym_reaped_sessions_total{env="' + COUNT + '"} 1.0' in httpx.get(f"{url}/metrics").text


def test_a_half_open_socket_expires() -> None:
    """The peer neither sends nor closes nor answers; the server closes the session and the connection."""
    with background_server([COUNT], idle_seconds=1.5, mounts=[openenv_routes]) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as peer:
            lines = ["GET /ws HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"]
            lines += ["Sec-WebSocket-Key: " + "A" * 22 + "==", "Sec-WebSocket-Version: 13", "", ""]
            peer.sendall("\r\n".join(lines).encode())
            assert b"101" in peer.recv(4096).split(b"\r\n")[0]
            wait_until_held(url, 1)
            wait_until_held(url, 0)


def test_an_idle_client_must_reset_after_reconnecting(openenv: Any) -> None:
    server = background_server([COUNT], idle_seconds=1.0, mounts=[openenv_routes])
    with server as url, openenv(base_url=url).sync() as client:
        client.reset(task=TASK)
        time.sleep(1.8)
        with pytest.raises(RuntimeError, match="EXECUTION_ERROR"):
            client.step({"message": "up"})
        assert client.reset(task=TASK).observation["text"].startswith("Count to 3")


@pytest.mark.parametrize(
    "message, code",
    [
        ("nonsense", "INVALID_JSON"),
        ("", "INVALID_JSON"),
        ("[" * 3_900, "INVALID_JSON"),
        (b'{"type": "state"}', "INVALID_JSON"),
        ("[]", "VALIDATION_ERROR"),
        ("null", "VALIDATION_ERROR"),
        ("{}", "VALIDATION_ERROR"),
        ('{"type": 3}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": []}', "VALIDATION_ERROR"),
        ('{"type": "step"}', "VALIDATION_ERROR"),
        ('{"type": "mcp", "data": {}}', "UNKNOWN_TYPE"),
        ('{"type": "' + "x" * 1000 + '"}', "UNKNOWN_TYPE"),
        ('{"type": "reset", "data": {"seed": NaN}}', "INVALID_JSON"),
        ('{"type": "reset", "data": {"seed": 1e400}}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"message": "' + "x" * 5000 + '"}}', "VALIDATION_ERROR"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_unreadable_messages_are_refused(limited: str, message: str | bytes, code: str) -> None:
    with raw(limited) as websocket:
        reply = ask_text(websocket, message)
        assert reply["type"] == "error" and reply["data"]["code"] == code, reply
        assert reply["data"]["message"] and len(reply["data"]["message"]) < 500
        assert ask(websocket, "reset", task=TASK)["type"] == "observation"


@pytest.fixture(scope="module")
def limited() -> Iterator[str]:
    with background_server([COUNT], limits=ServerLimits(body_bytes=4000), mounts=[openenv_routes]) as url:
        yield url


def test_invalid_text_closes_the_socket_and_the_session(toys: str) -> None:
    with raw(base(toys, COUNT)) as websocket:
        websocket.send(b"\xff\xfe", text=True)
        with pytest.raises(ConnectionClosed):
            websocket.recv(10)
    with raw(base(toys, COUNT)) as websocket:  # an escape can encode invalid Unicode text
        ask(websocket, "reset", task=TASK)
        reply = ask_text(websocket, '{"type": "step", "data": {"message": "\\ud800"}}')
        assert reply["data"]["metadata"]["invalid_action"]
        reply = ask_text(websocket, '{"type": "reset", "data": {"task": "\\ud800"}}')
        assert reply["data"]["type"] == "UnknownTask"
    wait_until_held(toys, 0)


def test_openenv_needs_the_token(openenv: Any) -> None:
    with background_server([COUNT], token="s3cret", mounts=[openenv_routes]) as url:
        for options in ({}, {"headers": {"Authorization": "Bearer wrong"}}):
            with pytest.raises(ConnectionError), openenv(base_url=url, **options).sync():
                pass
        with pytest.raises(InvalidStatus), raw(url):
            pass
        with_user = url.replace("http://", "http://agentgym:s3cret@")
        bearer = {"headers": {"Authorization": "Bearer s3cret"}}
        for client in (openenv(base_url=url, **bearer).sync(), openenv(base_url=with_user).sync()):
            with client:
                assert not client.reset(task=TASK).done
        assert httpx.get(f"{url}/schema").status_code == 401
        assert httpx.get(f"{with_user}/schema").status_code == 200
        for wrong in ("http://agentgym:wrong@", "http://s3cret@"):
            assert httpx.get(url.replace("http://", wrong) + "/schema").status_code == 401
        for header in ("Basic !", "Basic", "s3cret", "", "Basic czNjcmV0"):
            assert httpx.get(f"{url}/schema", headers={"Authorization": header}).status_code == 401


def test_no_session_is_left_after_many_sockets(toys: str) -> None:
    """Clients that close, disconnect or never send, from several threads, leave no session."""

    def visit(number: int) -> None:
        for turn in range(10):
            with raw(base(toys, COUNT)) as websocket:
                if (number + turn) % 3:
                    ask(websocket, "reset", task=TASK)
                if (number + turn) % 3 == 1:
                    websocket.socket.shutdown(socket.SHUT_RDWR)

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until_held(toys, 0)

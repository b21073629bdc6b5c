"""The server with raw requests: replies, errors and limits."""

import json
import logging
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import httpx
import psutil
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.http.app import create_app
from agentgym_envs.http.protocol import ServerLimits
from agentgym_envs.http.run import background_server, is_loopback, make_server
from tests.children import ended
from tests.http.tools import COUNT, SLOW, TOYS, TRICKY, Api, error, listens, server_process
from tests.ports import free_port
from tests.trying import examples
from tests.waiting import SECONDS, until

TEXTCRAFT = "AgentGym/TextCraft-v0"
LIMITS = ServerLimits(body_bytes=2**20, body_seconds=0.5, header_bytes=4096, header_seconds=0.5, restore_actions=5)


@pytest.fixture(scope="module")
def url():
    with background_server([*TOYS, TEXTCRAFT], limits=LIMITS, workers=1) as address:
        yield address


@pytest.fixture
def api(url):
    return Api(url)


def test_a_session_plays_an_episode(api):
    session = api.create()
    assert api.http.get(f"/v2/sessions/{session}").json()["stop_reason"] == "closed"
    first = api.call(session, "reset", seq=1, seed=3, options={"task": "count/2"}).json()
    assert first["observation"].startswith("Count to 2") and first["task"]["id"] == "count/2"
    step = api.step(session, seq=2).json()
    assert (step["observation"], step["reward"], step["terminated"]) == ("1", 0.5, False)
    assert api.call(session, "oracle").json() == ["up"]
    status = api.http.get(f"/v2/sessions/{session}").json()
    assert (status["turn"], status["seq"], status["env"]) == (1, 2, COUNT)
    assert api.step(session, seq=3).json()["terminated"]
    assert error(api.step(session, seq=4), 409) == "EpisodeOver"
    assert error(api.call(session, "oracle"), 409) == "NoOracle"
    assert [api.http.delete(f"/v2/sessions/{session}").status_code for _ in range(3)] == [204] * 3
    assert error(api.step(session, seq=5), 404) == "SessionLost"


@pytest.mark.parametrize("env", [COUNT, SLOW])
def test_sessions_support_snapshot_restore_and_fork(api, env):
    session = api.begin(env)
    api.step(session, seq=2)
    snapshot = api.call(session, "snapshot").json()
    assert snapshot == {"task_id": "count/9", "seed": 0, "actions": ["up"]}
    forked = api.http.post(f"/v2/sessions/{session}/fork")
    assert forked.status_code == 201
    copy = forked.json()["session"]
    assert api.step(copy, seq=1).json()["observation"] == "2"
    assert api.step(session, seq=3).json()["observation"] == "2"
    assert api.call(copy, "restore", seq=2, **snapshot).json()["turn"] == 1
    assert api.step(copy, seq=3).json()["observation"] == "2"
    assert error(api.call(copy, "restore", seq=4, **{**snapshot, "actions": ["up"] * 6}), 413) == "TooLarge"
    assert error(api.http.post("/v2/sessions/nobody/fork"), 404) == "SessionLost"
    assert error(api.http.post(f"/v2/sessions/{api.create()}/fork"), 409) == "EpisodeOver"


@pytest.mark.parametrize("env", [COUNT, SLOW])
def test_a_batch_returns_a_result_per_call(api, env):
    here = [api.begin(env) for _ in range(3)]
    calls = [{"session": session, "method": "step", "action": "up", "seq": 2} for session in [*here, "nobody"]]
    results = api.batch(*calls)
    assert [row["observation"] for row in results[:3]] == ["1"] * 3
    assert results[3]["error"]["type"] == "SessionLost"
    assert api.batch(*calls[:3]) == results[:3]
    late = api.batch({**calls[0], "seq": 7}, {"session": here[1], "method": "step"}, {**calls[2], "seq": 3})
    assert [row.get("error", {}).get("type") for row in late] == ["OutOfOrder", "Malformed", None]
    twice = api.http.post("/v2/batch", json={"calls": [calls[0], calls[0]]})
    assert error(twice, 422) == "Malformed"


@pytest.mark.slow
def test_a_stream_returns_finished_results_first(api, tmp_path):
    fast, slow, other = api.begin(SLOW), api.begin(SLOW), api.begin(COUNT)
    calls = [
        {"session": slow, "method": "step", "action": f"await {tmp_path}/go"},
        {"session": fast, "method": "step", "action": "up"},
        {"session": other, "method": "step", "action": "up"},
    ]
    came = []
    with api.http.stream("POST", "/v2/batch", json={"calls": calls, "stream": True}) as reply:
        for line in reply.iter_lines():
            came.append(json.loads(line)["index"])
            if len(came) == 2:
                (tmp_path / "go").touch()  # so that the lines cannot have arrived together
    assert came == [2, 1, 0]


@pytest.mark.slow_after(6)
@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"\xff\xfe", 400, "BadRequest"),
        (b'{"env": "Toy', 400, "BadRequest"),
        (b"[" * 100_000, 400, "BadRequest"),
        (b'{"env": NaN}', 400, "BadRequest"),
        (b"", 422, "Malformed"),
        (b"[]", 422, "Malformed"),
        (b'{"env": 5}', 422, "Malformed"),
        (b'{"env": ""}', 422, "Malformed"),
        (b'{"env": "Toy/Count-v0", "other": 1}', 422, "Malformed"),
        (b'{"env": "Toy/Count-v0", "options": []}', 422, "Malformed"),
        (b'{"env": "Toy/Missing-v0"}', 422, "UsageError"),
        (b'{"env": "os:system"}', 422, "UsageError"),
        (b'{"env": "Toy/Count-v0", "options": {"split": "moon"}}', 404, "UnknownTask"),
        (b'{"env": "Toy/Count-v0", "options": {"groups": [1, 2]}}', 422, "UsageError"),
        (b'{"env": "Toy/Count-v0", "options": {"grammar": "klingon"}}', 422, "UsageError"),
        (b'{"env": "AgentGym/TextCraft-v0", "options": {"recipe_table": "/etc/passwd"}}', 422, "UsageError"),
        (b'{"env": "Toy/Count-v0", "options": {"instructions": "' + b"x" * 20_000 + b'"}}', 422, "UsageError"),
        (b'{"env": "Toy/Count-v0", "options": {"groups": ' + b"[" * 500 + b"]" * 500 + b"}}", 422, "Malformed"),
    ],
)
def test_invalid_creations_are_refused(api, body, status, kind):
    before = api.sessions()
    assert error(api.http.post("/v2/sessions", content=body), status) == kind
    assert api.sessions() == before


@pytest.mark.slow_after(6)
@pytest.mark.parametrize(
    ("method", "body", "status", "kind"),
    [
        ("step", b"{}", 422, "Malformed"),
        ("step", b'{"action": "\xff"}', 400, "BadRequest"),
        ("step", b'{"action": 5}', 422, "Malformed"),
        ("step", b'{"action": "up", "seq": 0}', 422, "Malformed"),
        ("step", b'{"action": "up", "seq": "2"}', 422, "Malformed"),
        ("step", b'{"action": "up", "seq": 1' + b"0" * 5000 + b"}", 400, "BadRequest"),
        ("step", b'{"action": "up", "seq": 1' + b"0" * 500 + b"}", 409, "OutOfOrder"),
        ("reset", b'{"seed": -1}', 422, "Malformed"),
        ("reset", b'{"seed": 1.5}', 422, "Malformed"),
        ("reset", b'{"seed": "1"}', 422, "Malformed"),
        ("reset", b'{"options": {"task": "count/77"}}', 404, "UnknownTask"),
        ("reset", b'{"options": {"task": 5}}', 422, "UsageError"),
        ("reset", b'{"options": {"task": "\\ud800"}}', 404, "UnknownTask"),
        ("reset", b'{"options": {"path": "/etc"}}', 422, "UsageError"),
        ("reset", b'{"options": {"task": ' + b'{"a":' * 800 + b"1" + b"}" * 800 + b"}}", 422, "Malformed"),
        ("restore", b'{"task_id": "count/9", "seed": 1, "actions": [5]}', 422, "Malformed"),
        ("random_command", b'{"rng": [3, [1], null]}', 422, "UsageError"),
        ("sample", b'{"count": 1000000000}', 422, "Malformed"),
        ("sample", b'{"count": 1000}', 422, "UsageError"),
        ("task", b'{"id": "nobody"}', 404, "UnknownTask"),
    ],
)
def test_invalid_calls_are_refused(api, method, body, status, kind):
    session = api.begin()
    assert error(api.http.post(f"/v2/sessions/{session}/{method}", content=body), status) == kind
    assert api.step(session, seq=2).json()["observation"] == "1"


TEXT = st.text(st.characters(exclude_categories=()), max_size=5)  # lone surrogates, too
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(["env", "options", "seq", "action", "seed", "session", "calls", "method", "state", "task"])


@examples(60)
@given(
    path=st.sampled_from(["sessions", "batch", "step", "reset", "restore"]), body=st.dictionaries(FIELDS | TEXT, JSON)
)
@example(path="sessions", body={"env": COUNT, "\ud800": 1})
@example(path="step", body={"seq": 1, "action": "up", "\ud800": 1})
@example(path="batch", body={"calls": [{"\ud800": 1}]})
def test_no_body_is_an_error_of_the_server(url, session_of_all, path, body):
    at = f"sessions/{session_of_all}/{path}" if path in ("step", "reset", "restore") else path
    reply = httpx.post(f"{url}/v2/{at}", content=json.dumps(body), trust_env=False)
    assert reply.status_code < 500, reply.text
    if reply.status_code == 201:
        httpx.delete(f"{url}/v2/sessions/{reply.json()['session']}", trust_env=False)


@pytest.fixture(scope="module")
def session_of_all(url):
    session = Api(url).create()
    Api.made.pop().http.close()
    return session


def test_unknown_paths_and_methods_are_refused(api):
    session = api.begin()
    assert error(api.call(session, "fly"), 404) == "NotFound"
    assert error(api.call(session, "__class__"), 404) == "NotFound"
    assert error(api.http.get("/nowhere"), 404) == "NotFound"
    assert "there is no GET /nowhere" in api.http.get("/nowhere").json()["error"]["message"]
    assert error(api.http.put("/health"), 405) == "BadRequest"
    assert error(api.http.get(f"/v2/sessions/{session}/step"), 405) == "BadRequest"
    assert error(api.step("no/such"), 404) == "NotFound"
    assert error(api.step("%00"), 404) == "SessionLost"


def test_every_page_responds(api):
    assert {row["id"] for row in api.http.get("/envs").json()["envs"]} == {COUNT, TRICKY, SLOW, TEXTCRAFT}
    api.step(api.begin())
    text = api.http.get("/metrics").text
    assert 'agentgym_calls_total{method="step"}' in text and "agentgym_sessions" in text
    assert api.http.get("/openapi.json").json()["openapi"].startswith("3.")
    root = api.http.get("/", follow_redirects=True)
    assert (root.status_code, root.url.path, root.headers["content-type"][:9]) == (200, "/docs", "text/html")


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("env", [TEXTCRAFT, SLOW])
@pytest.mark.parametrize("action", ["x" * 1_000_000, "\ud800", "\x00", "é漢🙂", "a\u2028b", ""])
def test_any_text_is_an_action(api, env, action):
    local = gym.make(env)
    session = api.create(env)
    assert api.call(session, "reset", seq=1, seed=5).json()["observation"] == local.reset(seed=5)[0]
    observation, _, _, _, info = local.step(action)
    reply = json.loads(api.step(session, action, seq=2).content)
    assert (reply["observation"], reply["info"]) == (observation, json.loads(json.dumps(info)))


def test_too_large_bodies_are_refused(api):
    session = api.begin()
    for size in (LIMITS.body_bytes, 7 * LIMITS.body_bytes, 40 * LIMITS.body_bytes):
        assert error(api.step(session, "x" * size), 413) == "TooLarge"
    pieces = (b"x" * 65536 for _ in range(40))
    chunked = api.http.post(f"/v2/sessions/{session}/step", content=pieces)
    assert error(chunked, 413) == "TooLarge"
    assert api.step(session, seq=2).json()["observation"] == "1"


def test_a_reply_that_is_not_json_does_not_affect_others(api, caplog):
    odd, well = api.begin(TRICKY), api.begin(TRICKY)
    assert error(api.step(odd, "odd", seq=2), 500) == "EnvError"
    results = api.batch(
        {"session": odd, "method": "step", "action": "odd", "seq": 3},
        {"session": well, "method": "step", "action": "up", "seq": 2},
    )
    assert results[0]["error"]["type"] == "EnvError" and results[1]["observation"] == "1"


def test_a_bug_is_reported_without_its_traceback(api, caplog):
    session = api.begin(TRICKY)
    with caplog.at_level(logging.ERROR):
        assert error(api.step(session, "raise", seq=2), 500) == "EnvError"
    assert "ZeroDivisionError" in caplog.text and "Traceback" in caplog.text
    assert api.call(session, "reset", seq=3, seed=1).status_code == 200


def test_a_bug_of_the_server_is_hidden_from_the_client(capfd, monkeypatch):
    def broken(*arguments: object) -> None:
        raise KeyError("/secret/path.py")

    monkeypatch.setattr("agentgym_envs.http.sessions.Sessions.get", broken)
    with background_server(TOYS) as url:
        assert error(Api(url).step("any"), 500) == "SessionLost"
    assert "Traceback" in (log := capfd.readouterr().err) and "/secret/path.py" in log


def test_every_path_except_health_needs_the_token():
    with background_server([COUNT], token="sesame") as url:
        for headers in ({}, {"Authorization": "Bearer sesam"}, {"Authorization": "sesame"}, {"Authorization": "é"}):
            api = Api(url, headers={name: value.encode() for name, value in headers.items()})
            for path in ("/envs", "/metrics", "/nowhere", "/docs"):
                assert error(api.http.get(path), 401) == "Unauthorized"
            assert error(api.http.post("/v2/sessions", content=b"\xff"), 401) == "Unauthorized"
            assert api.http.get("/health").status_code == 200
            assert "Basic" in api.http.get("/docs").headers["WWW-Authenticate"]
        assert httpx.get(f"{url}/docs", auth=("anybody", "sesame")).status_code == 200
        assert Api(url, headers={"Authorization": "Bearer sesame"}).create()


def test_a_full_server_accepts_sessions_after_one_is_closed():
    with background_server([COUNT], max_sessions=2) as url:
        api = Api(url)
        first, _ = api.create(), api.begin()
        reply = api.http.post("/v2/sessions", json={"env": COUNT})
        assert error(reply, 429) == "ServerFull" and int(reply.headers["Retry-After"]) > 0
        api.http.delete(f"/v2/sessions/{first}")
        assert api.create()


@pytest.mark.parametrize("settings", [{"max_sessions": 0}, {"idle_seconds": 0}, {"call_seconds": -1}, {"workers": -1}])
def test_invalid_settings_are_refused(settings):
    with pytest.raises(UsageError):
        create_app([COUNT], **settings)


@pytest.mark.parametrize("name", ["Toy/Missing-v0", "nowhere:Toy/Count-v0", "CartPole-v1"])
def test_invalid_ids_are_refused(name):
    with pytest.raises(UsageError):
        create_app([name])


def connect(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=SECONDS)
    return connection


HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\n"
TRICKLE = HEAD + b"X-Slow: " + b"x" * 1000
"""A correct request header, sent slowly."""


@pytest.mark.slow
@pytest.mark.parametrize("second", [False, True], ids=["first request", "second request"])
def test_a_slow_header_times_out_and_delays_no_other_client(url, api, second):
    with connect(url) as loris:
        if second:
            loris.sendall(HEAD + b"\r\n")
            assert b"200 OK" in loris.recv(4096)
        with pytest.raises(OSError):
            for byte in TRICKLE:
                loris.sendall(bytes([byte]))
                assert api.sessions() >= 0
                time.sleep(0.02)


def test_an_endless_header_is_refused(url):
    with connect(url) as endless, pytest.raises(OSError):
        endless.sendall(HEAD)
        for _ in range(200):
            endless.sendall(b"X-Header: " + b"x" * 1000 + b"\r\n")
            time.sleep(0.001)


@pytest.mark.slow
def test_a_slow_body_times_out_and_delays_no_other_client(url, api):
    with connect(url) as slow:
        slow.sendall(b"POST /v2/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        slow.sendall(b'{"env"')
        assert api.create()
        reply = b"".join(iter(lambda: slow.recv(4096), b""))
        assert b"400 Bad Request" in reply and b"BadRequest" in reply


@pytest.mark.slow
def test_a_session_is_closed_if_its_client_disconnects_before_it_is_ready():
    with background_server(["tests.http.tools:Toy/Late-v0"], workers=1) as url:
        api = Api(url)
        with connect(url) as hasty:
            body = b'{"env": "Toy/Late-v0"}'
            hasty.sendall(b"POST /v2/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            until(lambda: api.sessions() == 1)
        until(lambda: api.sessions() == 0)


@pytest.mark.slow
def test_sigterm_lets_the_running_call_finish(tmp_path):
    port = free_port()
    with server_process(port, workers=2) as process:
        api = Api(f"http://127.0.0.1:{port}")
        session, _ = api.begin(SLOW), api.begin(SLOW)
        workers = psutil.Process(process.pid).children(recursive=True)
        assert len(workers) == 2
        replies: list[httpx.Response] = []
        thread = threading.Thread(target=lambda: replies.append(api.step(session, f"await {tmp_path}/go", seq=2)))
        thread.start()
        until((tmp_path / "go.begun").exists)
        os.kill(process.pid, signal.SIGTERM)
        until(lambda: not listens(port))
        (tmp_path / "go").touch()
        process.wait(SECONDS)
        thread.join()
        assert replies[0].json()["observation"] == "slept"
        until(lambda: ended(workers))


@pytest.mark.slow
def test_a_call_cancelled_by_shutdown_is_logged_in_one_line(capfd, monkeypatch):
    monkeypatch.setattr("agentgym_envs.hosting.worker.GRACE_SECONDS", 0.2)
    port = free_port()
    server = make_server(create_app([TRICKY], isolate=True), "127.0.0.1", port, timeout_graceful_shutdown=1)
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    api = Api(f"http://127.0.0.1:{port}")
    session = api.begin(TRICKY)
    with ThreadPoolExecutor() as threads:
        reply = threads.submit(api.step, session, "sleep 30", seq=2)
        until(lambda: server.server_state.tasks)
        server.should_exit = True
        thread.join(SECONDS)
        assert reply.result().status_code == 500
    log = capfd.readouterr().err
    assert "Cancel 1 running task" in log and "Traceback" not in log


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("::1234", False), ("127.0.0.1.example.com", False), ("localhost.example.com", False), ("10.0.0.1", False)],
)  # fmt: skip
def test_loopback_addresses_are_recognized(host, own):
    assert is_loopback(host) is own


def test_a_port_in_use_raises_env_error():
    with background_server([COUNT]) as url:
        second = background_server([COUNT], port=int(url.rpartition(":")[2]))
        with pytest.raises(EnvError, match="cannot listen on"):
            second.__enter__()

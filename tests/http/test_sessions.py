"""Sessions: sequence numbers, expiry, workers and limits."""

import asyncio
import gc
import itertools
import os
import random
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from agentgym_envs.errors import EpisodeOver, UsageError
from agentgym_envs.hosting.session_host import SessionHost
from agentgym_envs.http.app import EnvServer
from agentgym_envs.http.protocol import ServerLimits
from agentgym_envs.http.run import background_server
from agentgym_envs.http.sessions import Sessions
from tests.children import lives
from tests.http.tools import COUNT, LATE, SLOW, TOYS, TRICKY, Api, error
from tests.trying import examples
from tests.waiting import until

pytestmark = pytest.mark.slow  # too slow for the fast run


@pytest.fixture(scope="module")
def url():
    with background_server(TOYS, workers=1) as address:
        yield address


@pytest.fixture
def api(url):
    return Api(url)


@pytest.mark.parametrize("env", [COUNT, SLOW])
def test_a_repeated_step_returns_the_kept_reply(api, env):
    session = api.begin(env)
    first = api.step(session, seq=2)
    assert [api.step(session, seq=2).content for _ in range(5)] == [first.content] * 5
    call = {"session": session, "method": "step", "action": "up", "seq": 2}
    assert api.batch(call) == [first.json()]
    assert api.step(session, seq=3).json()["observation"] == "2"


@pytest.mark.parametrize("env", [COUNT, SLOW])
def test_sequence_numbers_out_of_order_are_refused_without_effect(api, env):
    session = api.begin(env)
    api.step(session, seq=2)
    for seq, action in ((1, "up"), (4, "up"), (2, "other"), (99, "up")):
        assert error(api.step(session, action, seq=seq), 409) == "OutOfOrder"
    assert error(api.call(session, "reset", seq=2, seed=0), 409) == "OutOfOrder"
    assert api.step(session, seq=3).json()["observation"] == "2"
    assert api.http.get(f"/v2/sessions/{session}").json()["seq"] == 3


@pytest.mark.parametrize("env", [TRICKY, SLOW])
def test_an_error_is_kept_for_a_repeated_call(api, env):
    session = api.begin(env)
    first = api.call(session, "reset", seq=2, options={"task": "nobody"})
    assert error(first, 404) == "UnknownTask"
    assert api.call(session, "reset", seq=2, options={"task": "nobody"}).content == first.content
    assert error(api.step(session, "raise", seq=3), 500) == "EnvError"
    assert error(api.step(session, "raise", seq=3), 500) == "EnvError"


def test_a_duplicate_of_a_running_call_waits_for_its_reply(url, api):
    session = api.begin(SLOW)
    api.step(session, seq=2)
    call = {"session": session, "method": "step", "action": "sleep 0.4", "seq": 3}
    with ThreadPoolExecutor(4) as threads:
        ways = [lambda: Api(url).step(session, "sleep 0.4", seq=3).json(), lambda: Api(url).batch(call)[0]] * 2
        replies = [future.result() for future in [threads.submit(way) for way in ways]]
    assert all(reply == replies[0] for reply in replies) and replies[0]["info"]["turn"] == 2
    assert api.step(session, seq=4).json()["info"]["turn"] == 3


def test_closing_a_session_during_a_call_drops_queued_calls(url, api, tmp_path):
    session = api.begin(SLOW)
    with ThreadPoolExecutor(2) as threads:
        running = threads.submit(lambda: Api(url).step(session, f"await {tmp_path}/go", seq=2))
        until((tmp_path / "go.begun").exists)
        queued = threads.submit(lambda: Api(url).step(session, "up", seq=3))
        time.sleep(0.2)  # until it waits for the running call
        assert api.http.delete(f"/v2/sessions/{session}").status_code == 204
        (tmp_path / "go").touch()
        assert running.result().json()["observation"] == "slept"
        assert error(queued.result(), 404) == "SessionLost"


def test_idle_sessions_expire_and_busy_ones_do_not(tmp_path):
    with background_server(TOYS, idle_seconds=1.0, workers=1) as url:
        api = Api(url)
        idle, idle_in_worker, busy = api.begin(COUNT), api.begin(SLOW), api.begin(SLOW)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(lambda: Api(url).step(busy, f"await {tmp_path}/go", seq=2).json()["observation"])
            until(lambda: api.sessions() == 1)
            (tmp_path / "go").touch()
            assert waiting.result() == "slept"
        for session in (idle, idle_in_worker):
            assert error(api.step(session), 404) == "SessionLost"
        assert api.step(busy, seq=3).status_code == 200
        until(lambda: api.sessions() == 0)
        assert 'agentgym_reaped_sessions_total{env="Toy/Slow-v0"} 2.0' in api.http.get("/metrics").text


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "dies", "hangs"])
def test_a_lost_worker_loses_only_its_own_sessions(how):
    servers: list[EnvServer] = []

    def keep(server: EnvServer) -> list[Any]:
        servers.append(server)
        return []

    with background_server(TOYS, workers=2, max_sessions=3, mounts=[keep]) as url:
        api = Api(url)
        here, lost, other = api.begin(TRICKY), api.begin(SLOW), api.begin(SLOW)
        pid = int(api.step(lost, "who", seq=2).json()["observation"].split()[0])
        if how == "killed":
            os.kill(pid, signal.SIGKILL)
            until(lambda: not lives(pid))
        action = {"killed": "up", "dies": "die", "hangs": "hang"}[how]
        servers[0].sessions.call_seconds = 1.0 if how == "hangs" else 300.0
        results = api.batch(
            {"session": here, "method": "step", "action": "up", "seq": 2},
            {"session": lost, "method": "step", "action": action, "seq": 3},
            {"session": other, "method": "step", "action": "up", "seq": 2},
        )
        assert [row.get("observation") for row in results] == ["1", None, "1"]
        assert results[1]["error"]["type"] == "SessionLost"
        assert error(api.step(lost, seq=4), 404) == "SessionLost"
        servers[0].sessions.call_seconds = 300.0
        again = api.begin(SLOW)
        assert int(api.step(again, "who", seq=2).json()["observation"].split()[0]) != pid
        assert api.step(other, seq=3).json()["observation"] == "2"


def test_the_sessions_of_a_dead_worker_make_room():
    with background_server(TOYS, workers=1, max_sessions=2) as url:
        api = Api(url)
        one, _ = api.begin(SLOW), api.begin(SLOW)
        api.step(one, "die")
        until(lambda: api.http.post("/v2/sessions", json={"env": SLOW}).status_code == 201)
        assert api.begin(SLOW)


def allocated_blocks() -> int:
    """Blocks of memory that Python's objects occupy. The process's memory also grows with threads, hence with load."""
    gc.collect()
    return sys.getallocatedblocks()


def test_memory_does_not_grow_over_many_resets():
    """Reset sessions without the network, so that there can be many."""

    async def play() -> int:
        sessions, seq = Sessions(TOYS), itertools.count(1)
        token = (await sessions.open(COUNT, {})).token

        async def reset(count: int) -> int:
            for _ in range(count):
                await sessions.call(token, "reset", {"seed": 0}, next(seq))
            return allocated_blocks()

        growth = -await reset(5_000) + await reset(50_000)
        assert (len(sessions), sessions.get(token).seq) == (1, 55_000)
        await sessions.shut_down()
        return growth

    assert asyncio.run(play()) < 1_000


def test_memory_does_not_grow_over_many_resets_over_http(api):
    sessions = [api.create() for _ in range(100)]

    def reset(count: int) -> None:
        for round in range(count // 100):
            api.batch(*({"session": s, "method": "reset", "seed": round} for s in sessions))

    reset(5_000)
    before = allocated_blocks()
    reset(10_000)
    assert allocated_blocks() - before < 1_000
    assert api.call(sessions[0], "status").json()["turn"] == 0


def test_many_clients_play_concurrently(url):
    def play(number: int) -> list[str]:
        mine = Api(url)
        session = mine.begin(random.Random(number).choice([COUNT, SLOW]))
        return [mine.step(session, seq=seq).json()["observation"] for seq in range(2, 8)]

    before = threading.active_count()  # servers of other tests may still have threads
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(play, range(32))) == [["1", "2", "3", "4", "5", "6"]] * 32
    assert threading.active_count() < before + 100


class OneSession(RuleBasedStateMachine):
    """A session under duplicated, reordered and closing calls, compared with a model."""

    url = ""
    env = COUNT

    def __init__(self) -> None:
        super().__init__()
        self.api = Api(self.url)
        self.session = self.api.begin(self.env)
        self.seq, self.turn = 1, 0

    @rule(again=st.integers(0, 3), batched=st.booleans())
    def step(self, again, batched):
        if self.turn == 8:
            return
        self.seq, self.turn = self.seq + 1, self.turn + 1
        for _ in range(again + 1):
            reply = self.send("up", self.seq, batched)
            assert reply["observation"] == str(self.turn)

    @rule(offset=st.sampled_from([-3, -2, -1, 2, 3]), batched=st.booleans())
    def stale(self, offset, batched):
        if self.seq + offset >= 1:
            assert self.send("up", self.seq + offset, batched)["error"]["type"] == "OutOfOrder"

    @rule(batched=st.booleans())
    def mismatch(self, batched):
        assert self.send("another", self.seq, batched)["error"]["type"] == "OutOfOrder"

    @rule()
    def reset(self):
        self.seq, self.turn = self.seq + 1, 0
        for _ in range(2):
            reply = self.api.call(self.session, "reset", seq=self.seq, seed=0, options={"task": "count/9"})
            assert reply.status_code == 200

    @rule()
    def close(self):
        for _ in range(2):
            assert self.api.http.delete(f"/v2/sessions/{self.session}").status_code == 204
        assert self.send("up", self.seq + 1, False)["error"]["type"] == "SessionLost"
        self.session = self.api.begin(self.env)
        self.seq, self.turn = 1, 0

    @rule()
    def status(self):
        status = self.api.http.get(f"/v2/sessions/{self.session}").json()
        assert (status["turn"], status["seq"]) == (self.turn, self.seq)

    def send(self, action, seq, batched):
        if batched:
            return self.api.batch({"session": self.session, "method": "step", "action": action, "seq": seq})[0]
        return self.api.step(self.session, action, seq=seq).json()

    def teardown(self):
        self.api.http.delete(f"/v2/sessions/{self.session}")
        self.api.http.close()


@pytest.mark.parametrize("env", [COUNT, SLOW])
def test_no_call_is_carried_out_twice(url, env):
    machine = type("Machine", (OneSession,), {"url": url, "env": env})
    run_state_machine_as_test(machine, settings=examples(20, stateful_step_count=20))


def test_an_environment_that_is_not_ready_in_time_raises_env_error():
    with background_server(["tests.http.tools:Toy/Late-v0"], workers=1, call_seconds=0.4) as url:
        api = Api(url)
        assert error(api.http.post("/v2/sessions", json={"env": "Toy/Late-v0"}), 500) == "EnvError"
        assert api.sessions() == 0


def test_the_traceback_of_a_kept_error_does_not_grow():
    """The kept error must not keep the tracebacks of all requests for which it was raised."""

    async def play() -> int:
        sessions = Sessions([TOYS[0]])
        session = await sessions.open(COUNT, {})
        for _ in range(20):
            with pytest.raises(EpisodeOver):
                await sessions.call(session.token, "step", {"action": "up"}, 1)
        await sessions.shut_down()
        return sum(1 for _ in traceback.walk_tb(session.outcome.__traceback__))

    assert asyncio.run(play()) < 10


def test_a_failed_description_leaves_no_session(api):
    host = SessionHost()
    for options in ({"grammar": ["react"]}, {"groups": 5}):
        with pytest.raises(UsageError):
            host.open("s", TOYS[0], options)
        assert error(api.http.post("/v2/sessions", json={"env": COUNT, "options": options}), 422) == "UsageError"
    assert len(host) == 0


def test_a_fork_has_the_limit_of_a_restore():
    with background_server(TOYS, limits=ServerLimits(restore_actions=3)) as url:
        api = Api(url)
        session = api.begin()
        for seq in range(2, 5):
            api.step(session, seq=seq)
        assert api.http.post(f"/v2/sessions/{session}/fork").status_code == 201
        api.step(session, seq=5)
        assert error(api.http.post(f"/v2/sessions/{session}/fork"), 413) == "TooLarge"
        assert api.sessions() == 2


@pytest.mark.parametrize("env", [COUNT, SLOW])
def test_an_endless_episode_is_bounded_until_the_next_reset(env):
    with background_server(TOYS, workers=1, limits=ServerLimits(episode_bytes=1_000)) as url:
        api = Api(url)
        session = api.begin(env)
        replies = [api.step(session, "nonsense", seq=seq).status_code for seq in range(2, 16)]
        allowed = replies.count(200)
        assert allowed == 13 and replies[13] == 413, "64 bytes and the text for each"
        assert api.step(session, "up", seq=2 + allowed).status_code == 413
        assert api.call(session, "reset", seq=2 + allowed, seed=0).status_code == 200
        assert api.step(session, "nonsense", seq=3 + allowed).status_code == 200


def test_the_fingerprint_of_a_call_is_small(url, api):
    session = api.begin(COUNT)
    long = "x" * 1_000_000
    assert api.step(session, long, seq=2).content == api.step(session, long, seq=2).content
    assert error(api.step(session, long[1:], seq=2), 409) == "OutOfOrder"


def test_a_hanging_creation_ends_its_worker():
    with background_server([LATE, *TOYS], workers=1, call_seconds=0.5) as url:
        api = Api(url)
        reply = api.http.post("/v2/sessions", json={"env": LATE})
        assert error(reply, 500) == "EnvError" and "not ready within 0.5 s" in reply.text

"""Failures of clients, servers and networks: no call hangs or is carried out twice, and no session is left."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time

import gymnasium as gym
import pytest

from agentgym_envs import make_vec
from agentgym_envs.http.run import background_server
from tests.http.tools import COUNT, ROOT, SLOW, TOYS, TRICKY, Api, Proxy, server_process
from tests.ports import free_port
from tests.waiting import until

TEXTCRAFT = "AgentGym/TextCraft-v0"


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@pytest.mark.slow
def test_no_step_is_repeated_when_the_network_drops_replies():
    local = gym.make(TEXTCRAFT)
    with background_server([TEXTCRAFT]) as url:
        proxy = Proxy(port_of(url), itertools.cycle([10, 6000, 200, 9000, 900, 20_000]).__next__)
        with proxy as way:
            remote = gym.make(TEXTCRAFT, base_url=way)
            for seed in range(5):
                assert remote.reset(seed=seed) == local.reset(seed=seed)
                plan = list(local.unwrapped.oracle())  # type: ignore[attr-defined]
                for action in [*["inventory", "nonsense"] * 10, *plan]:
                    assert remote.step(action) == local.step(action)
            remote.close()
        assert proxy.dropped > 3


@pytest.mark.slow
@pytest.mark.parametrize("env", [COUNT, SLOW])
def test_no_step_is_repeated_when_the_network_drops_batches(env):
    with background_server(TOYS, workers=1) as url:
        proxy = Proxy(port_of(url), itertools.cycle([20, 12_000, 150, 20_000, 3000, 15_000]).__next__)
        with proxy as way:
            vec = make_vec(env, 16, base_url=way, infos="list")
            vec.reset(seed=0, options={"task": "count/9"})
            for turn in range(1, 9):
                observations, _, _, _, infos = vec.step(["up"] * 16)
                assert set(observations) == {str(turn)}, infos
            vec.close()
        assert proxy.dropped > 3


@pytest.mark.slow
def test_a_closed_connection_ends_the_episode_but_not_the_run():
    open_way = threading.Event()
    with background_server(TOYS) as url, Proxy(port_of(url), lambda: 0 if open_way.is_set() else None) as way:
        env = gym.make(COUNT, base_url=way, connect_timeout=0.3)
        env.reset(seed=0, options={"task": "count/9"})
        env.step("up")
        open_way.set()
        connection = env.unwrapped._sessions.require().connection  # type: ignore[attr-defined]
        connection._plain.close()
        began = time.monotonic()
        _, reward, terminated, truncated, info = env.step("up")
        assert (reward, terminated, truncated, info["stop_reason"]) == (0.0, False, True, "env_error")
        assert way in info["error"] and time.monotonic() - began < 30
        assert env.reset(seed=0)[1]["stop_reason"] == "env_error"
        open_way.clear()
        assert env.reset(seed=0)[1]["stop_reason"] is None
        env.close()


_STEP_FOR_EVER = """
import sys, gymnasium as gym, agentgym_envs, tests.http.tools
env = gym.make("Toy/Slow-v0", base_url=sys.argv[1])
env.reset(seed=0)
print("begun", flush=True)
env.step("sleep 30")
"""


@pytest.mark.slow
def test_the_session_of_a_killed_client_expires():
    with background_server(TOYS, workers=1, idle_seconds=2.0, call_seconds=6.0) as url:
        client = subprocess.Popen([sys.executable, "-c", _STEP_FOR_EVER, url], cwd=ROOT, stdout=subprocess.PIPE)
        assert client.stdout is not None and client.stdout.readline() == b"begun\n"
        api = Api(url)
        assert api.sessions() == 1
        client.kill()
        client.wait()
        client.stdout.close()
        until(lambda: api.sessions() == 0)
        assert api.begin(SLOW)


@pytest.mark.slow
def test_a_restarted_server_serves_the_next_episode():
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with server_process(port) as process:
        env, other = (gym.make(COUNT, base_url=url) for _ in range(2))
        vec = make_vec(COUNT, 4, base_url=url, infos="list")
        vec.reset(seed=0)
        for one in (env, other):
            one.reset(seed=0, options={"task": "count/9"})
            one.step("up")
        process.send_signal(signal.SIGKILL)
        process.wait()
        began = time.monotonic()
        assert env.step("up")[4]["stop_reason"] == "env_error"
        assert time.monotonic() - began < 30, "it waited for an unreachable server"
    with server_process(port):
        assert other.step("up")[4]["stop_reason"] == "env_error"
        assert [info["stop_reason"] for info in vec.step(["up"] * 4)[4]] == ["env_error"] * 4
        assert [info["turn"] for info in vec.step(["up"] * 4)[4]] == [0] * 4
        for one in (env, other):
            one.reset(seed=0, options={"task": "count/9"})
            assert one.step("up")[0] == "1"
            one.close()
        vec.close()
        assert Api(url).sessions() == 0


@pytest.mark.slow
def test_a_frozen_server_ends_the_episode():
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with server_process(port) as process:
        env = gym.make(COUNT, base_url=url, timeout=0.5, connect_timeout=0.2)
        vec = make_vec(COUNT, 4, base_url=url, infos="list", timeout=120.0, step_seconds=1.0)
        env.reset(seed=0)
        vec.reset(seed=0)
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        assert env.step("up")[4]["stop_reason"] == "env_error"
        assert time.monotonic() - began < 45
        assert env.reset(seed=0)[1]["stop_reason"] == "env_error"
        began = time.monotonic()
        assert [info["stop_reason"] for info in vec.step(["up"] * 4)[4]] == ["env_error"] * 4
        assert time.monotonic() - began < 30
        process.send_signal(signal.SIGCONT)
        until(lambda: env.reset(seed=0)[1]["stop_reason"] is None)
        assert env.step("up")[0] == "1"
        vec.close()
        env.close()


@pytest.mark.slow
def test_a_vector_environment_survives_dead_workers():
    with background_server(TOYS, workers=3) as url:
        vec = make_vec(SLOW, 3, base_url=url, infos="list")
        vec.reset(seed=0, options={"task": "count/9"})
        ends = [info["stop_reason"] for info in vec.step(["die", "up", "die"])[4]]
        assert ends == ["env_error", None, "env_error"]
        observations, *_ = vec.step(["up"] * 3)
        assert observations[1] == "2" and all(
            text.startswith("Count to") for text in (observations[0], observations[2])
        )
        assert vec.step(["up"] * 3)[0] == ("1", "3", "1")
        vec.close()
        until(lambda: Api(url).sessions() == 0)


def test_a_client_survives_bugs_and_lost_sessions():
    with background_server(TOYS) as url:
        env = gym.make(TRICKY, base_url=url)
        env.reset(seed=0, options={"task": "count/9"})
        assert "ZeroDivisionError" in env.step("raise")[4]["error"]
        assert env.reset(seed=0, options={"task": "count/9"})[1]["stop_reason"] is None
        Api(url).http.delete(f"/v2/sessions/{env.unwrapped._sessions.require().session}")  # type: ignore[attr-defined]
        assert env.step("up")[4]["stop_reason"] == "env_error"
        assert env.reset(seed=0, options={"task": "count/9"})[1]["turn"] == 0
        assert env.step("up")[0] == "1"
        env.close()
        assert Api(url).sessions() == 0


_IN_A_THREAD = """
import json, sys, gymnasium as gym, agentgym_envs
from agentgym_envs.http.run import background_server
with background_server(["AgentGym/TextCraft-v0"]) as url:
    env = gym.make("AgentGym/TextCraft-v0", base_url=url)
    vec = gym.make_vec("AgentGym/TextCraft-v0", 4, base_url=url)
    env.reset(seed=0); vec.reset(seed=0); vec.step(["inventory"] * 4)
print(json.dumps("ended"))
"""


@pytest.mark.slow
def test_a_program_can_end_with_open_environments():
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_THREAD], capture_output=True, timeout=180, text=True, check=False
    )
    assert (json.loads(done.stdout), done.stderr, done.returncode) == ("ended", "", os.EX_OK)

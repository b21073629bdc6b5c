"""Environments on the second of two Ray nodes equal local ones, and a crash ends no more than it must."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import psutil
import pytest

pytest.importorskip("ray")

import ray

from agentgym_envs import make_vec, register
from agentgym_envs.errors import EnvError, EpisodeOver, NoOracle, SessionLost, UnknownTask, UsageError
from agentgym_envs.hosting import RemoteEnv
from agentgym_envs.hosting.connection import Request
from agentgym_envs.vector import EnvRunner, RunnerPool
from agentgym_verl.ray_hosts import RayPool
from tests.adapters.verl.two_nodes import ENVS, TwoNodes, two_nodes
from tests.children import lives
from tests.toy_envs import HERE
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow

TRICKY = HERE + "Toy/Tricky-v0"
SLOW = HERE + "Toy/Slow-v0"
NINE = {"task": "count/9"}


@pytest.fixture(scope="module")
def nodes() -> Iterator[TwoNodes]:
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture
def pool(nodes: TwoNodes) -> Iterator[RayPool]:
    with closing(RayPool(1, 2, ENVS)) as pool:
        yield pool


def begun(pool: RayPool, env_id: str = TRICKY) -> RemoteEnv:
    remote = RemoteEnv(env_id, pool, {})
    assert remote.reset(seed=0, options=NINE)[1]["stop_reason"] is None
    return remote


def pid_of(remote: RemoteEnv) -> int:
    return int(remote.step("who")[0].split()[0])


def whole_episode(env: gym.Env[str, str], task: str) -> list[Any]:
    """All output of an environment while its oracle solves a task, and of one more task."""
    outputs: list[Any] = [env.reset(seed=3, options={"task": task})]
    plan = list(env.unwrapped.oracle())  # type: ignore[attr-defined]
    outputs += [plan, *(env.step(command) for command in ["no such command", *plan])]
    assert outputs[-1][4]["success"] and outputs[-1][2]
    return [*outputs, env.reset(seed=4)]


@pytest.mark.parametrize(
    ("env_id", "task"),
    [
        ("TextCraft", "textcraft/214"),
        pytest.param("BabyAI", None, marks=pytest.mark.rotating),
        pytest.param("SciWorld", None, marks=pytest.mark.rotating),
    ],
)
def test_whole_episodes_equal_those_of_a_local_environment(
    nodes: TwoNodes, pool: RayPool, env_id: str, task: str | None
) -> None:
    with closing(gym.make(f"AgentGym/{env_id}-v0")) as local, closing(RemoteEnv(local.spec.id, pool, {})) as remote:  # type: ignore[union-attr]
        task = task or local.unwrapped.tasks.sample(1, split="test", seed=1)[0].id  # type: ignore[attr-defined]
        ours, theirs = whole_episode(remote, task), whole_episode(local, task)
    assert json.dumps(ours) == json.dumps(theirs)
    assert [host.node for host in pool.hosts] == [nodes.second.node_id]


def test_errors_keep_their_class(pool: RayPool) -> None:
    remote = RemoteEnv(TRICKY, pool, {})
    with pytest.raises(UnknownTask, match="no task"):
        remote.reset(options={"task": "count/77"})
    with pytest.raises(EpisodeOver):
        remote.step("up")
    with pytest.raises(NoOracle):
        remote.oracle()
    assert remote.reset(seed=0, options={"task": "count/0"})[1]["error"] == "EnvError: no power"
    for env_id, options in (("AgentGym/NoSuch-v0", {}), (TRICKY, {"colour": "red"}), (TRICKY, {"split": "dev"})):
        with pytest.raises(UsageError):
            RemoteEnv(env_id, pool, options)
    assert [len(host.sessions) for host in pool.hosts] == [1]


class Local:
    """A class that no node can import: this module has another name there."""


def test_options_that_a_node_cannot_import_are_refused(pool: RayPool) -> None:
    register("Toy/Main-v0", "__main__:Toy")
    with pytest.raises(UsageError, match="put it in a module"):
        RemoteEnv("Toy/Main-v0", pool, {})
    with pytest.raises(UsageError, match="can be pickled"):
        RemoteEnv(TRICKY, pool, {"instructions": threading.Lock()})
    unknown = type("Unknown", (), {"__module__": "no_such_module", "__reduce__": lambda _: "Unknown"})
    with pytest.raises(UsageError, match="can be pickled"):
        RemoteEnv(TRICKY, pool, {"instructions": unknown()})
    assert begun(pool).step("up")[0] == "1"


def test_options_of_a_class_of_this_process_are_refused(pool: RayPool, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    module = types.ModuleType("only_here")
    module.Thing = type("Thing", (), {"__module__": "only_here"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "only_here", module)
    with pytest.raises(UsageError, match=r"a node of the Ray cluster cannot read the options .*'only_here'"):
        RemoteEnv(TRICKY, pool, {"instructions": module.Thing()})
    assert begun(pool).step("up")[0] == "1"


def test_an_id_registered_in_this_process_works_on_the_node(pool: RayPool) -> None:
    register("Toy/OnlyHere-v0", "tests.toy:CountEnv")
    remote = RemoteEnv("Toy/OnlyHere-v0", pool, {})
    assert remote.reset(seed=1) == gym.make("Toy/OnlyHere-v0").reset(seed=1)


@pytest.mark.parametrize("arguments", [{"hosts": 0}, {"workers": 1.5}, {"connect_timeout": 0}])
def test_invalid_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(arguments))):
        RayPool(**arguments)


@pytest.mark.rotating
def test_sessions_go_to_the_host_with_the_fewest(nodes: TwoNodes) -> None:
    with closing(RayPool(2, 1, ENVS)) as pool:
        assert pool.hosts == []
        first = RemoteEnv(TRICKY, pool, {})
        until(lambda: len(pool.hosts) == 2)
        remotes = [RemoteEnv(TRICKY, pool, {}) for _ in range(5)]
        assert [len(host.sessions) for host in pool.hosts] == [3, 3]
        for remote in (first, *remotes):
            remote.close()
            remote.close()
        assert [len(host.sessions) for host in pool.hosts] == [0, 0]
        again = begun(pool)
        assert pickle.loads(pickle.dumps(pool)) is pool
        copy = pickle.loads(pickle.dumps(again))
        assert copy.step("up") == again.step("up")


def nodes_of(placement: str) -> tuple[str, set[str | None]]:
    """The node of the caller, and those of two hosts."""
    with closing(RayPool(2, 1, placement, cpus=0)) as pool:
        RemoteEnv(TRICKY, pool, {})
        until(lambda: len(pool.hosts) == 2)
        return ray.get_runtime_context().get_node_id(), {host.node for host in pool.hosts}


def test_placement_selects_the_nodes(nodes: TwoNodes) -> None:
    here, second = ray.get_runtime_context().get_node_id(), nodes.second.node_id
    assert nodes_of("near") == (here, {here})
    there = ray.remote(nodes_of).options(num_cpus=0, resources={ENVS: 1}).remote("near")
    assert ray.get(there, timeout=SECONDS) == (second, {second})
    until(lambda: nodes_of("spread") == (here, {nodes.head, second}))  # until Ray has registered a new node


def test_a_failure_ends_one_episode(pool: RayPool) -> None:
    remote, other = begun(pool), begun(pool)
    for action in "die", "exit", "raise", "odd":
        info = remote.step(action)[4]
        assert (info["stop_reason"], info["turn"]) == ("env_error", 1), action
        assert other.step("up")[4]["stop_reason"] is None, action
        assert remote.reset(seed=0, options=NINE)[1]["stop_reason"] is None, action
    assert remote.step("up")[0] == "1" and other.step("up")[0] == "5"
    assert [len(host.sessions) for host in pool.hosts] == [2]


def test_a_hung_environment_ends_its_worker_only(pool: RayPool) -> None:
    runner, other = EnvRunner(lambda: RemoteEnv(TRICKY, pool, {})), begun(pool)
    asyncio.run(runner.run(Request("reset", seed=0, options=NINE), 60))
    pid, host = int(asyncio.run(runner.run(Request("step", "who"), 60))[0].split()[0]), pool.hosts[0]
    began = time.monotonic()
    info = asyncio.run(runner.run(Request("step", "hang"), 0.5))[4]
    assert time.monotonic() - began < 20 and info["stop_reason"] == "env_error"
    until(lambda: not lives(pid))
    assert other.step("up")[0] == "1" and pool.hosts == [host]
    assert asyncio.run(runner.run(Request("reset", seed=0, options=NINE), 60))[1]["stop_reason"] is None
    runner.close()


def test_slow_environments_delay_no_other(pool: RayPool, tmp_path: Path) -> None:
    slow, other = [begun(pool, SLOW) for _ in range(3)], begun(pool)
    answers: list[Any] = []
    for number, remote in enumerate(slow):  # one frame each
        posted = remote.pending_call(Request("step", f"await {tmp_path / str(number)}"), answers.append)
        assert posted is not None
        posted[0].submit([posted[1]])
        until((tmp_path / f"{number}.begun").exists)  # the earlier ones still wait
    assert other.step("up")[0] == "1" and not answers
    for number in range(3):
        (tmp_path / str(number)).touch()
    until(lambda: len(answers) == 3)


def test_a_lost_node_ends_its_episodes_and_another_takes_over(
    nodes: TwoNodes, caplog: pytest.LogCaptureFixture
) -> None:
    third = nodes.add(lost=1)
    with closing(RayPool(1, 2, "lost", connect_timeout=120)) as pool:
        remotes = [begun(pool) for _ in range(3)]
        answers: list[Any] = []
        posted = remotes[0].pending_call(Request("step", "hang"), answers.append)
        assert posted is not None
        posted[0].submit([posted[1]])
        nodes.kill(third)
        until(lambda: answers)
        assert answers[0][4]["error"].startswith("SessionLost: the host on node ")
        assert [remote.step("up")[4]["stop_reason"] for remote in remotes[1:]] == ["env_error"] * 2
        assert f"the host on node {third.node_id} was lost" in caplog.text and "held 3 environments" in caplog.text
        results: list[Any] = []
        threading.Thread(target=lambda: results.append(remotes[0].reset(seed=0, options=NINE))).start()
        time.sleep(0.5)
        assert not results and not pool.hosts
        fourth = nodes.add(lost=1)
        until(lambda: results)
        assert results[0][1]["stop_reason"] is None and remotes[0].step("up")[0] == "1"
        assert [host.node for host in pool.hosts] == [fourth.node_id]
        assert begun(pool).step("up")[0] == "1"
    nodes.kill(fourth)
    until(lambda: sum(node["Alive"] for node in ray.nodes()) == 2)  # until then, Ray still places actors there


def test_missing_resources_are_reported(nodes: TwoNodes) -> None:
    with closing(RayPool(1, 2, "moon", connect_timeout=1.5)) as pool:
        began = time.monotonic()
        with pytest.raises(EnvError, match=r"within 1.5 s: each needs 2 CPU, 1 moon .* 0 moon \(0 free"):
            RemoteEnv(TRICKY, pool, {})
        assert time.monotonic() - began < 10
    with closing(RayPool(3, 15, "spread", connect_timeout=60)) as pool:
        remotes = [begun(pool) for _ in range(4)]
        assert [len(host.sessions) for host in pool.hosts] == [len(remotes)], "one has room, and is used without delay"


def test_a_host_that_cannot_start_is_reported(nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentgym_verl.ray_hosts.EnvHost", _Broken)
    with (
        closing(RayPool(1, 2, ENVS, connect_timeout=60)) as pool,
        pytest.raises(EnvError, match=r"a host could not be started: .* lacks a package"),
    ):
        RemoteEnv(TRICKY, pool, {})


class _Broken:
    def __init__(self, workers: int) -> None:
        raise ImportError("this node lacks a package")

    def node(self) -> str:
        return ""


def test_closing_leaves_no_process(nodes: TwoNodes) -> None:
    pool = RayPool(2, 2, ENVS)
    begun(pool)
    until(lambda: len(pool.hosts) == 2)
    pids = {pid_of(begun(pool)) for _ in range(6)}
    hosts = {psutil.Process(pid).ppid() for pid in pids}
    assert (len(pids), len(hosts)) == (4, 2)
    remote = begun(pool)
    pool.close()
    pool.close()
    until(lambda: not any(map(lives, pids | hosts)))
    assert remote.step("up")[4]["stop_reason"] == "env_error"
    assert "closed" in remote.reset(seed=0)[1]["error"]
    with pytest.raises(EnvError, match="closed"):
        RemoteEnv(TRICKY, pool, {})


@pytest.mark.rotating
def test_a_garbage_collected_pool_ends(nodes: TwoNodes) -> None:
    pool = RayPool(1, 1, ENVS)
    remote = begun(pool)
    pid = pid_of(remote)
    del pool, remote
    gc.collect()
    until(lambda: not lives(pid))


@pytest.mark.rotating
def test_hosts_end_with_the_process_that_made_them(nodes: TwoNodes) -> None:
    owner = ray.remote(_Owner).options(num_cpus=0).remote()
    pids = ray.get(owner.begin.remote(), timeout=SECONDS)
    assert all(map(lives, pids))
    ray.kill(owner)
    until(lambda: not any(map(lives, pids)))


class _Owner:
    """An actor with an event loop, like an agent-loop worker."""

    async def begin(self) -> list[int]:
        self.pool = RayPool(1, 2, ENVS)
        self.runners = RunnerPool({"toy": lambda: RemoteEnv(TRICKY, self.pool, {})}, 64)
        pid = int((await self._episode("who"))[0].split()[0])
        return [pid, psutil.Process(pid).ppid()]

    async def play(self, count: int) -> tuple[list[str], float]:
        """Play episodes concurrently; returns the longest time that the event loop was blocked."""
        stop, longest = asyncio.Event(), 0.0

        async def watch() -> None:
            nonlocal longest
            while not stop.is_set():
                began = time.monotonic()
                await asyncio.sleep(0.01)
                longest = max(longest, time.monotonic() - began)

        watcher = asyncio.ensure_future(watch())
        stops = await asyncio.gather(*(self._whole() for _ in range(count)))
        stop.set()
        await watcher
        return list(stops), longest

    async def _whole(self) -> str:
        async with self.runners.lease("toy") as runner:
            _, info = await runner.run(Request("reset", seed=0, options=NINE), 60)
            while info["stop_reason"] is None:
                info = (await runner.run(Request("step", "up"), 60))[4]
        return str(info["stop_reason"])

    async def _episode(self, action: str) -> Any:
        async with self.runners.lease("toy") as runner:
            await runner.run(Request("reset", seed=0, options=NINE), 60)
            return await runner.run(Request("step", action), 60)


def test_episodes_run_within_the_event_loop_of_an_actor(nodes: TwoNodes) -> None:
    owner = ray.remote(_Owner).options(num_cpus=0).remote()
    ray.get(owner.begin.remote(), timeout=SECONDS)
    stops, longest = ray.get(owner.play.remote(50), timeout=2 * SECONDS)
    assert stops == ["success"] * 50
    assert longest < 2, "the event loop was held up"
    ray.kill(owner)


@pytest.mark.rotating
def test_two_hundred_episodes_run_concurrently(pool: RayPool) -> None:
    with closing(make_vec("Toy/Tricky-v0", 200, provider=pool, infos="list")) as envs:
        envs.reset(seed=list(range(200)), options=NINE)
        for turn in range(1, 10):
            observations, _, terminated, truncated, infos = envs.step(["up"] * 200)
            assert observations == (str(turn),) * 200 and not truncated.any()
        assert terminated.all() and all(info["success"] for info in infos)
    until(lambda: not pool.hosts[0].sessions)
    assert begun(pool).step("up")[0] == "1", "the pool stays its maker's"


def test_the_agent_loop_of_verl_plays_equal_episodes(
    nodes: TwoNodes, make_worker: Callable[..., Any], stub: Any
) -> None:
    ups = [[*b"up", 259]] * 9
    block = {"backend": "ray", "placement": ENVS, "workers": 2, "env_retries": 1}
    there = make_worker(ups, agentgym=block, n=2)
    here = make_worker(ups, agentgym={"backend": "local"}, n=2)
    rows = [stub.count(task) for task in ("count/2", "count/3", "count/9")]
    theirs, ours = there.play(rows), here.play(rows)
    assert theirs.status == ours.status == {name: ["running", "finished"] for name in "012"}
    for name, row in ours.rows.items():
        for column in ("input_ids", "response_mask", "rm_scores"):
            assert theirs.rows[name][column].tolist() == row[column].tolist()
        assert theirs.metrics(name) == row["extra_fields"]["reward_extra_info"]
    pool = there.runner._backends._pool
    os.kill(_some_worker(pool), signal.SIGKILL)
    assert there.play(rows[:1], step=2).status["0"] == ["running", "finished"], "it was not tried again"
    there.runner.close()
    with pytest.raises(EnvError, match="closed"):
        pool.open(TRICKY, {})


def _some_worker(pool: RayPool) -> int:
    with closing(begun(pool)) as remote:
        return pid_of(remote)


def test_a_closed_session_is_lost(pool: RayPool) -> None:
    remote = begun(pool)
    opened = remote._sessions.require()
    assert opened is not None
    opened.connection.close_session(opened.session)
    with pytest.raises(SessionLost):
        opened.connection.call(opened.session, "status", {})
    assert remote.step("up")[4]["stop_reason"] == "env_error"

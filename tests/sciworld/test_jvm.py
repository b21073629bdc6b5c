"""The JVMs: access, failures, and no leftover processes."""

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentgym_envs.sciworld import pool
from agentgym_envs.sciworld.env import EXTRAS, SciWorldEnv
from agentgym_envs.sciworld.jvm import Jvm
from tests.children import lives
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow  # a JVM takes a while to start

TASK = {"task": "sciworld/find-non-living-thing/0"}
Make = Callable[..., SciWorldEnv]


def begin(env: SciWorldEnv) -> Jvm:
    _, info = env.reset(seed=0, options=TASK)
    assert info["stop_reason"] is None, info
    return env.world.jvm


def jvms() -> int:
    return sum(is_jvm(child) for child in psutil.Process().children())


def is_jvm(child: psutil.Process) -> bool:
    try:
        return "GatewayServer" in " ".join(child.cmdline())
    except psutil.Error:  # it has ended
        return False


def resources() -> tuple[int, int]:
    """Return the numbers of open files and threads, without what earlier tests have left as garbage."""
    gc.collect()
    files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return files, threading.active_count()


def no_more_than(before: tuple[int, int]) -> bool:
    """Say whether nothing was left open; what earlier tests started may end in the meantime."""
    return all(now <= then for now, then in zip(resources(), before, strict=True))


def failed(env: SciWorldEnv, command: str = "look around") -> str:
    """Return the error that ends the episode at a step."""
    _, reward, terminated, truncated, info = env.step(command)
    assert (reward, terminated, truncated, info["stop_reason"]) == (0.0, False, True, "env_error")
    return str(info["error"])


# Who may call


@pytest.mark.rotating
def test_the_gateway_needs_a_local_connection_and_the_token(env: SciWorldEnv) -> None:
    jvm = begin(env)
    listening = [c for c in psutil.Process(jvm.pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert [c.laddr.ip.removeprefix("::ffff:") for c in listening] == ["127.0.0.1"]
    with socket.create_connection(listening[0].laddr[:2], timeout=10) as stranger:
        stranger.sendall(b"c\nz:java.lang.System\ngetProperty\nsjava.version\ne\n")
        try:
            answer = stranger.recv(1000)
        except ConnectionError:
            answer = b""
    assert answer == b"" or b"uthentication" in answer, answer
    assert not env.step("look around")[3]


def test_the_token_is_not_on_the_command_line(env: SciWorldEnv) -> None:
    jvm = begin(env)
    assert len(jvm._client._token) > 20
    assert jvm._client._token not in " ".join(psutil.Process(jvm.pid).cmdline())


def test_ctrl_c_in_a_terminal_does_not_reach_a_jvm(env: SciWorldEnv) -> None:
    assert os.getsid(begin(env).pid) != os.getsid(0)


# Failures that a JVM survives


def test_a_java_exception_ends_the_episode_but_not_the_jvm(make: Make) -> None:
    here, there = make(), make()
    jvm = begin(here)
    begin(there)
    here.world._agent = jvm.java.java.util.ArrayList()  # which knows no step
    assert "simulator failed" in failed(here)
    assert not there.step("look around")[3] and begin(here) is jvm


def test_a_broken_world_ends_the_episode(make: Make) -> None:
    env = make()
    begin(env)
    env.world._agent.setErrorState("the stove fell through the floor")  # as after an exception in the simulator
    assert "the simulator failed: the stove fell" in failed(env)
    begin(env)
    assert not env.step("look around")[3]


# Memory


def test_a_world_of_a_closed_environment_is_reused() -> None:
    first, second, third = (SciWorldEnv(split=None, jvms=1) for _ in range(3))
    begin(first)
    world = first._world
    begin(second)
    assert second._world is not world
    first.close()
    begin(third)
    assert third._world is world and first._world is None
    second.close()
    third.close()


def bound_objects(jvm: Jvm) -> int:
    """Return the number of objects that the gateway holds for Python."""
    gc.collect()
    with jvm.exclusive(None):
        bindings = jvm._gateway.java_gateway_server.getGateway().getBindings()
        jvm.release(bindings)
        return int(bindings.size())


@pytest.mark.rotating
def test_a_jvm_keeps_few_unused_worlds(make: Make, no_jvms: None) -> None:
    """A closed environment that is still referenced keeps none either."""
    jvm = begin(make())
    alone = bound_objects(jvm)
    envs = [SciWorldEnv(split=None, jvms=1) for _ in range(pool.SPARE_WORLDS + 3)]
    for env in envs:
        assert begin(env) is jvm
    of_a_world = (bound_objects(jvm) - alone) // len(envs)
    for env in envs:
        env.close()
    begin(make())
    assert len(pool._spare[jvm]) == pool.SPARE_WORLDS - 1, "the new environment took one"
    assert bound_objects(jvm) == alone + pool.SPARE_WORLDS * of_a_world


@pytest.mark.rotating
def test_worlds_of_closed_environments_are_freed(make: Make) -> None:
    jvm, counts = begin(make()), []
    for number in range(12):
        env = SciWorldEnv(split=None, jvms=1)
        assert begin(env) is jvm
        for _ in range(3):
            env.step("look around")
        env.close()
        del env
        counts += [bound_objects(jvm)] if number in (3, 11) else []
    assert counts[1] <= counts[0] + 3, counts


@pytest.mark.rotating
def test_resets_and_steps_leak_no_java_objects(make: Make) -> None:
    """Even if Python's garbage collector never runs."""
    env = make(info=EXTRAS)
    jvm = begin(env)
    before = bound_objects(jvm)
    gc.disable()
    try:
        for _ in range(5):
            begin(env)
            for _ in range(3):
                env.step("look around")
        with jvm.exclusive(None):
            bindings = jvm._gateway.java_gateway_server.getGateway().getBindings()
            assert bindings.size() <= before + 3
    finally:
        gc.enable()


# Failures that it does not survive


def test_killing_a_jvm_ends_its_episodes(make: Make, no_jvms: None, capfd: pytest.CaptureFixture[str]) -> None:
    here, there = make(), make()
    jvm = begin(here)
    assert begin(there) is jvm
    before = resources()
    os.kill(jvm.pid, signal.SIGKILL)
    assert "exit status -9" in failed(here)
    assert begin(here) is not jvm
    assert "exit status -9" in failed(there), "the status is kept after another JVM has replaced it"
    assert begin(there) is begin(here)
    assert not here.step("look around")[3]
    until(lambda: no_more_than(before))
    assert jvms() == 1
    assert capfd.readouterr() == ("", "")


def test_a_hanging_jvm_is_killed(make: Make, no_jvms: None, capfd: pytest.CaptureFixture[str]) -> None:
    here, there = make(call_seconds=50), make(call_seconds=50)
    jvm = begin(here)
    assert begin(there) is jvm
    hurry(jvm, 50, 1)
    os.kill(jvm.pid, signal.SIGSTOP)
    until(lambda: stopped(jvm.pid))  # a busy machine takes a while to stop every thread
    assert "did not answer within 1 s" in failed(here)
    assert "did not answer within 1 s" in failed(there)
    assert not lives(jvm.pid)
    assert begin(here) is not jvm
    assert capfd.readouterr() == ("", "")


def stopped(pid: int) -> bool:
    """True if every thread of a process is stopped."""
    stats = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return bool(stats) and all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def hurry(jvm: Jvm, before: float, seconds: float) -> None:
    """Shorten the timeout, which had to be long enough to create a world on a busy computer."""
    for line in jvm._client._connections:
        assert line._socket.gettimeout() == before
        line._socket.settimeout(seconds)
    jvm.call_seconds = jvm._client.seconds = seconds


@pytest.mark.rotating
def test_a_jvm_that_runs_out_of_memory_ends_its_episodes(make: Make, capfd: pytest.CaptureFixture[str]) -> None:
    env = make(heap_mb=100)
    jvm = begin(env)

    def waste(command: str) -> None:
        with jvm.exclusive(None):
            assert [jvm._gateway.new_array(jvm.java.byte, 30_000_000) for _ in range(4)]

    env.world.step = waste  # type: ignore[assignment]
    assert "OutOfMemoryError" in failed(env)
    assert begin(env) is not jvm
    assert capfd.readouterr() == ("", "")


def test_an_interrupted_call_ends_the_jvm_and_raises(make: Make, no_jvms: None) -> None:
    env = make()
    jvm = begin(env)

    def handler(number: int, frame: Any) -> None:
        raise TimeoutError("the test's own")  # an OSError, as the socket's is

    previous = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(TimeoutError, match="the test's own"), jvm.exclusive(None):
            jvm.java.java.lang.Thread.sleep(30_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert not lives(jvm.pid)
    assert "a call was interrupted" in failed(env)
    assert begin(env) is not jvm


# The end


@pytest.mark.rotating
def test_a_jvm_ends_some_time_after_its_last_environment_is_closed(
    monkeypatch: pytest.MonkeyPatch, no_jvms: None
) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.2)
    before = resources()
    envs = [SciWorldEnv(jvms=1) for _ in range(2)]
    pid = begin(envs[0]).pid
    assert begin(envs[1]).pid == pid
    envs[0].close()
    time.sleep(0.6)
    assert lives(pid)
    envs[1].close()
    until(lambda: not lives(pid))
    until(lambda: no_more_than(before))


def test_an_idle_jvm_is_reused_until_all_are_shut_down(no_jvms: None) -> None:
    pids, envs = set(), [SciWorldEnv(jvms=1) for _ in range(3)]
    for env in envs[:2]:
        pids.add(begin(env).pid)
        env.close()
    pids.add(begin(envs[2]).pid)
    assert len(pids) == 1 and lives(*pids)
    pool.shut_down()
    assert not lives(*pids)
    assert "shut down" in failed(envs[2])
    envs[2].close()


@pytest.mark.rotating
def test_a_garbage_collected_environment_returns_its_lease(monkeypatch: pytest.MonkeyPatch, no_jvms: None) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.1)
    env = SciWorldEnv(jvms=1)
    pid = begin(env).pid
    with pool._pool._lock:  # the garbage collector may run in a thread that holds it
        del env
        gc.collect()
    until(lambda: not lives(pid))


@pytest.mark.rotating
def test_a_jvm_in_use_is_not_ended(monkeypatch: pytest.MonkeyPatch, no_jvms: None) -> None:
    """This holds even if it was idle before, and if other environments in it were closed and garbage collected."""
    first, goes, stays = (SciWorldEnv(split=None, jvms=1) for _ in range(3))
    jvm = begin(first)
    first.close()
    until(lambda: jvm.environments == 0)
    assert begin(stays) is jvm and begin(goes) is jvm
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.1)
    goes.close()
    del first, goes
    gc.collect()
    time.sleep(1)
    assert jvm.environments == 1 and not stays.step("look around")[3]
    stays.close()


BEGIN = """
import os, signal, subprocess, sys, threading, time
def show(*pids): print(*pids, flush=True)
"""
JVM = """
from agentgym_envs.sciworld.pool import JvmOptions, lease
jvm = lease(JvmOptions(), 1).jvm
"""
EPISODE = """
from agentgym_envs.sciworld.env import SciWorldEnv
env = SciWorldEnv(jvms=1)
_, info = env.reset(seed=0, options={"task": "sciworld/find-non-living-thing/0"})
assert info["stop_reason"] is None, info
jvm = env.world.jvm
"""
ENDS = {
    "killed": "show(jvm.pid); os.kill(os.getpid(), signal.SIGKILL)",
    "ended": "show(jvm.pid)",
    "waits for Ctrl-C": "show(jvm.pid); time.sleep(600)",
    "forked": "read, write = os.pipe()\n"
    "if not os.fork(): show(os.getpid()); os.write(write, b'.'); time.sleep(600)\n"
    "os.read(read, 1); show(jvm.pid); os._exit(0)",
    "worker": "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); show(child.pid)\n"
    "show(jvm.pid); os.kill(os.getpid(), signal.SIGKILL)",
}
"""`ended` runs an episode, so that an environment is finalized; the others only start a JVM, which is faster."""


@contextmanager
def program(code: str, begin: str = EPISODE) -> Iterator[subprocess.Popen[str]]:
    """Start a Python program that runs an episode or only a JVM."""
    with subprocess.Popen(
        [sys.executable, "-c", BEGIN + begin + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("end", ENDS)
def test_no_jvm_outlives_its_process(end: str) -> None:
    with program(ENDS[end], EPISODE if end == "ended" else JVM) as process:
        assert process.stdout is not None and process.stderr is not None
        pids = [int(process.stdout.readline()) for _ in range(2 if end in ("forked", "worker") else 1)]
        if end == "waits for Ctrl-C":
            assert lives(pids[-1])
            process.send_signal(signal.SIGINT)
        process.wait(SECONDS)
        until(lambda: not lives(pids[-1]))
        for other in pids[:-1]:
            assert lives(other)
            os.kill(other, signal.SIGKILL)
        said = process.stderr.read()
    assert ("KeyboardInterrupt" if end == "waits for Ctrl-C" else "") in said
    assert "Exception ignored" not in said and "EnvError" not in said


def test_after_ctrl_c_in_a_call_a_reset_works() -> None:
    code = """
def interrupt():
    while jvm._client._free_connections: time.sleep(0.01)  # until it is being asked
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
try:
    with jvm.exclusive(None):
        threading.Thread(target=interrupt).start()
        jvm.java.java.lang.Thread.sleep(600_000)
except KeyboardInterrupt:
    assert not jvm.alive
    assert env.step("look around")[4]["stop_reason"] == "env_error"
    assert env.reset(seed=0)[1]["stop_reason"] is None and env.world.jvm.pid != jvm.pid
    show(jvm.pid)
"""
    with program(code) as process:
        assert process.stdout is not None and process.stderr is not None
        pid_line = process.stdout.readline()
        assert pid_line, process.stderr.read()
        assert not lives(int(pid_line))


@pytest.mark.rotating
def test_a_forked_child_has_its_own_jvm() -> None:
    code = """
told, pid = env.step("open door to kitchen")[0], os.fork()
if not pid:
    mine = env.step("look around")[4]
    assert mine["stop_reason"] == "env_error" and "another process" in mine["error"], mine
    env.reset(seed=0)
    assert env.world.jvm.pid != jvm.pid
    env.close()
    jvm.kill()
    os._exit(7)
for _ in range(20): assert not env.step("look around")[3]
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert env.step("go to kitchen")[0].startswith("You move to the kitchen") and env.world.jvm is jvm
show("good")
"""
    with program(code) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "good\n", process.stderr.read()


# How many


@pytest.mark.parametrize(
    ("count", "most", "shares"),
    [
        *((8, None, [8]), (9, None, [1, 8]), (48, None, [24, 24]), (49, None, [1, 24, 24]), (120, None, [24] * 5)),
        *((49, 1, [49]), (6, 2, [6]), (20, 2, [10, 10])),
    ],
)
def test_environments_are_spread_over_jvms(
    monkeypatch: pytest.MonkeyPatch, count: int, most: int | None, shares: list[int]
) -> None:
    """With two cores: one JVM for eight, then one per core, then at most 24 environments in each."""

    class FakeJvm:
        alive = True
        environments = 0

        def __init__(self, *options: Any) -> None:
            pass

    monkeypatch.setattr(pool, "Jvm", FakeJvm)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(pool._Pool, "_start_reaper", lambda self: None)
    own = pool._Pool()
    leases = [own.enter(pool.JvmOptions(), most) for _ in range(count)]
    counts = Counter(id(lease.jvm) for lease in leases)
    assert sorted(counts.values()) == shares

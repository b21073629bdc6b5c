"""A failure in one environment ends only its own episode and leaves no thread or process."""

import asyncio
import contextlib
import gc
import os
import signal
import threading
import time
import weakref
from typing import Any

import numpy as np
import psutil
import pytest

from agentgym_envs.hosting import RemoteEnv
from agentgym_envs.vector import TextVectorEnv, make_vec
from agentgym_envs.vector.env_thread import shared_loop
from tests.children import lives
from tests.toy_envs import HERE, RELEASE
from tests.vector.conftest import Make
from tests.waiting import until

pytestmark = pytest.mark.slow  # too slow for the fast run

NINE = {"task": "count/9"}
TRICKY = {
    "inline": "Toy/Tricky-v0",
    "thread": "Toy/Tricky-v0",
    "process": "Toy/Tricky-v0",
    "async": "Toy/Async-v0",
    "remote": "Toy/Slow-v0",
}
UP = ("up", "up", "up")
Failure = tuple[str, str, str]  # backend, action, text in the error

BUGS: list[Failure] = [
    *((backend, "raise", "ZeroDivisionError: a bug") for backend in TRICKY),
    ("inline", "crash", "EnvError: the abacus broke"),
    ("thread", "exit", "SystemExit: 3"),
    ("async", "cancelled", "CancelledError"),
    ("process", "die", "exit status 9"),
    ("remote", "odd", "pickle"),
]
MORE_BUGS: list[Failure] = [
    *((backend, "exit", "SystemExit: 3") for backend in ("process", "async", "remote")),
    *((backend, "crash", "EnvError: the abacus broke") for backend in ("thread", "process", "async", "remote")),
    *((backend, "cancelled", "CancelledError") for backend in ("thread", "process", "remote")),
    ("process", "odd", "pickle"),
    ("remote", "die", "exit status 9"),
]
"""The same failures with other backends."""
HANGS: list[Failure] = [
    ("thread", "hang", "TimeoutError"),
    ("process", "hang", "TimeoutError"),
    ("async", "sleep 60", "TimeoutError"),
    ("remote", "sleep 8", "TimeoutError"),
]


def plays(envs: TextVectorEnv) -> None:
    """Check that every environment plays an episode to its end."""
    envs.reset(seed=0, options={"task": "count/2"})
    envs.step(UP)
    assert envs.step(UP)[2].all()


def test_system_exit_propagates_from_inline_environments(make: Make) -> None:
    """SystemExit may come from a signal handler, which runs in the main thread at any time."""
    envs = make(TRICKY["inline"], backend="inline")
    envs.reset(seed=0, options=NINE)
    with pytest.raises(SystemExit):
        envs.step(("up", "exit", "up"))


@pytest.mark.parametrize(
    ("backend", "action", "says"), BUGS + [pytest.param(*bug, marks=pytest.mark.rotating) for bug in MORE_BUGS]
)
def test_only_the_failing_environments_episode_ends(make: Make, backend: Any, action: str, says: str) -> None:
    envs = make(TRICKY[backend], backend=backend, infos="list", step_seconds=60)
    envs.reset(seed=0, options=NINE)
    envs.step(UP)
    observations, rewards, terminations, truncations, infos = envs.step(("up", action, "up"))
    assert (observations[0], observations[2]) == ("2", "2")
    assert rewards.tolist() == [1 / 9, 0, 1 / 9]
    assert not terminations.any()
    assert truncations.tolist() == [False, True, False]
    failed = infos[1]
    assert says in failed["error"]
    assert (failed["stop_reason"], failed["turn"], failed["invalid_action"]) == ("env_error", 2, None)
    assert failed["score"] == pytest.approx(1 / 9)
    assert failed["task_id"] == "count/9" and not failed["success"]
    observations, _, _, truncations, infos = envs.step(UP)
    assert not truncations.any()
    assert [info["turn"] for info in infos] == [3, 0, 3]
    assert observations[1].startswith("Count to")
    assert envs.step(UP)[4][1]["turn"] == 1


@pytest.mark.parametrize(("backend", "action", "says"), HANGS)
def test_only_the_hanging_environments_episode_ends_and_it_works_again(
    make: Make, backend: Any, action: str, says: str
) -> None:
    envs = make(TRICKY[backend], backend=backend, infos="list", step_seconds=60)
    envs.reset(seed=0, options=NINE)
    envs._seconds = 0.5  # only for this step: the others may be slow on a busy machine
    envs.send((action,), env_ids=[1])
    envs._seconds = 60
    envs.send(("up", "up"), env_ids=[0, 2])
    observations, _, terminations, truncations, infos = envs.recv()
    assert (observations[0], observations[2]) == ("1", "1")
    assert not terminations.any() and truncations.tolist() == [False, True, False]
    assert says in infos[1]["error"]
    assert (infos[1]["stop_reason"], infos[1]["turn"]) == ("env_error", 1)
    plays(envs)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_the_episodes_after_a_failure_equal_those_after_any_other_end(make: Make, mode: str) -> None:
    """A new environment continues the generator of the failed one, with every backend."""
    seen: list[Any] = []
    for backend, action in (("inline", "give up"), ("inline", "crash"), ("inline", "raise"), ("process", "raise")):
        envs = make("Toy/Tricky-v0", backend=backend, autoreset_mode=mode)
        envs.reset(seed=3)
        envs.step((action,) * 3)
        if mode == "Disabled":
            seen.append(envs.reset(options={"reset_mask": np.array([True, False, True])})[0][::2])
        elif mode == "NextStep":
            seen.append(envs.step(UP)[0])
        else:
            seen.append([envs.step(("give up",) * 3)[0] for _ in range(3)])
    assert seen == [seen[0]] * 4


@pytest.mark.parametrize("backend", ["inline", "thread", "process"])
@pytest.mark.parametrize("action", ["crash", "raise"])
def test_a_failed_environment_is_replaced(make: Make, backend: Any, action: str) -> None:
    envs = make("Toy/Tricky-v0", 2, backend=backend)
    envs.reset(seed=0, options=NINE)
    before = envs.step(("who", "who"))[0]
    envs.step((action, "give up"))
    envs.step(("", ""))
    after = envs.step(("who", "who"))[0]
    assert after[0] != before[0] and after[1] == before[1]


def test_a_worker_killed_between_steps_ends_its_episode(make: Make) -> None:
    envs = make("Toy/Tricky-v0", backend="process")
    envs.reset(seed=0, options=NINE)
    pid = int(envs.step(("who", "up", "up"))[0][0].split()[0])
    os.kill(pid, signal.SIGKILL)
    *_, truncations, infos = envs.step(UP)
    assert truncations.tolist() == [True, False, False]
    assert "the worker process ended (exit status -9)" in infos["error"][0] or "gone" in infos["error"][0]
    plays(envs)


def test_a_worker_killed_before_a_reset_has_no_effect(make: Make) -> None:
    envs = make("Toy/Tricky-v0", backend="process", infos="list")
    envs.reset(seed=0, options=NINE)
    for index in (0, 2):
        os.kill(int(envs.step(tuple("who" if k == index else "up" for k in range(3)))[0][index].split()[0]), 9)
        infos = envs.reset(seed=0, options=NINE)[1]
        assert [info["stop_reason"] for info in infos] == [None] * 3


def test_environments_of_a_dead_worker_fail_together_and_work_again(make: Make) -> None:
    envs = make("Toy/Tricky-v0", 4, backend="process", num_workers=2, infos="list")
    envs.reset(seed=0, options=NINE)
    pids = [text.split()[0] for text in envs.step(("who",) * 4)[0]]
    assert len(set(pids)) == 2
    *_, truncations, _ = envs.step(("die", "up", "up", "up"))
    assert truncations.tolist() == [pid == pids[0] for pid in pids]
    assert not envs.step(("up",) * 4)[3].any()
    assert len({text.split()[0] for text in envs.step(("who",) * 4)[0]}) == 2


def test_prints_and_reads_do_not_disturb_a_worker(make: Make) -> None:
    envs = make("Toy/Tricky-v0", backend="process")
    envs.reset(seed=0, options=NINE)
    assert envs.step(("chat", "up", "chat"))[0] == ("''", "1", "''")
    assert envs.step(UP)[4]["turn"].tolist() == [2, 2, 2]


@pytest.mark.parametrize("backend", ["inline", "thread", "process", "async"])
def test_no_thread_or_process_is_left_after_close(backend: Any) -> None:
    threads, workers = _threads(), _workers()
    begun = make_vec(HERE + TRICKY[backend], 4, backend=backend)
    begun.reset(seed=0)
    begun.step(("up",) * 4)
    begun.send(("sleep 0.1", "up", "up", "up"))
    begun.close()
    until(lambda: _threads() <= threads)
    until(lambda: _workers() <= workers)


def _threads() -> set[threading.Thread]:
    """The running threads without that of the event loop, which is kept."""
    return {thread for thread in threading.enumerate() if thread.name != "agentgym-environments"}


def _workers() -> set[psutil.Process]:
    return {child for child in psutil.Process().children() if _is_worker(child)}


def _is_worker(child: psutil.Process) -> bool:
    try:
        return any("worker_main" in part for part in child.cmdline())
    except psutil.Error:
        return False


def test_a_garbage_collected_vector_environment_is_closed() -> None:
    envs = make_vec(HERE + "Toy/Tricky-v0", 2, backend="process")
    envs.reset(seed=0)
    pids = [int(text.split()[0]) for text in envs.step(("who", "who"))[0]]
    del envs
    gc.collect()
    until(lambda: not any(lives(pid) for pid in pids))


def test_closing_does_not_wait_for_hanging_calls(make: Make) -> None:
    threads = _threads()
    envs = make("Toy/Tricky-v0", backend="thread")
    envs.reset(seed=0, options=NINE)
    envs.send(("hang", "up", "up"))
    begun = time.monotonic()
    envs.close()
    assert time.monotonic() - begun < 30
    RELEASE.set()
    until(lambda: _threads() <= threads)


@pytest.mark.parametrize("given_up_by", ["deadline", "close"])
def test_a_coroutine_is_cancelled_when_its_call_is_given_up(make: Make, given_up_by: str) -> None:
    envs = make("Toy/Async-v0", backend="async", step_seconds=1.0 if given_up_by == "deadline" else None)
    envs.reset(seed=0, options=NINE)
    envs.send(("sleep 300", "up", "up"))
    envs.recv(min_num=2)
    if given_up_by == "deadline":
        assert envs.recv()[3].tolist() == [True]
    envs.close()
    until(lambda: not asyncio.all_tasks(shared_loop()))


def test_a_late_result_is_never_used_for_the_next_call(make: Make) -> None:
    """Steps that take about as long as their limit: either outcome may come first, and turns stay in order."""
    envs = make("Toy/Tricky-v0", 4, backend="thread", step_seconds=0.02, infos="list")
    envs.reset(seed=0, options=NINE)
    outcomes = set()
    turns = [0] * 4
    for number in range(60):
        actions = [f"sleep {0.018 + number % 5 / 1000}" if (number + index) % 2 else "up" for index in range(4)]
        *_, truncations, infos = envs.step(actions)
        for index, info in enumerate(infos):
            assert info["turn"] in (0, turns[index] + 1)
            outcomes.add(bool(truncations[index]))
            turns[index] = info["turn"]
    assert outcomes == {True, False}


def test_a_remote_environment_has_the_spec_of_its_id(make: Make) -> None:
    remote = make(backend="process").envs[0]
    assert isinstance(remote, RemoteEnv)
    assert remote.spec is not None and remote.spec.id == "Toy/Count-v0"


@pytest.mark.parametrize("backend", ["thread", "async"])
@pytest.mark.parametrize("busy", [False, True])
def test_a_vector_environment_can_be_collected_in_any_thread(backend: Any, busy: bool) -> None:
    """The last reference may be dropped in a runner's own thread, which cannot wait for itself."""
    envs = make_vec(TRICKY[backend], 2, backend=backend)
    held = weakref.ref(envs)
    for _ in range(5):
        envs.reset(seed=0, options=NINE)
        envs.step(("up", "up"))
    if busy:
        envs.send(("sleep 0.2", "up"))
    del envs
    gc.collect()
    until(lambda: held() is None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_a_new_event_loop() -> None:
    shared_loop()
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)  # ends a hanging child
        with contextlib.suppress(Exception):
            plays(make_vec(TRICKY["async"], 3, backend="async"))
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0

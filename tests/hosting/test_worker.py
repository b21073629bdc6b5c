"""Worker processes and their sessions: crashes, hangs, prints, pickles and forks."""

import contextlib
import gc
import os
import pickle
import queue
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs import register
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import EnvError, EpisodeOver, SessionLost, UsageError
from agentgym_envs.hosting import PendingCall, RemoteEnv, WorkerPool, WorkerProcess
from agentgym_envs.textcraft.env import TextCraftEnv
from tests.children import lives
from tests.toy_envs import HERE
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow  # too slow for the fast run

TRICKY = HERE + "Toy/Tricky-v0"
NINE = {"task": "count/9"}
REPO = Path(__file__).parents[2]


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    pool.close()


def begun(pool: WorkerPool) -> RemoteEnv:
    remote = RemoteEnv(TRICKY, pool, {})
    remote.reset(seed=0, options=NINE)
    return remote


def test_sessions_go_to_the_worker_with_the_fewest(pool: WorkerPool) -> None:
    remotes = [RemoteEnv(TRICKY, pool, {}) for _ in range(4)]
    assert [len(worker.sessions) for worker in pool.workers] == [2, 2]
    for remote in remotes:
        remote.close()
        remote.close()
    until(lambda: [len(worker.sessions) for worker in pool.workers] == [0, 0])


def test_a_worker_with_a_hanging_call_does_not_count_as_idle() -> None:
    with contextlib.closing(WorkerPool(2)) as pool:
        hung, other = begun(pool), begun(pool)
        opened = hung._sessions.require()
        assert opened is not None
        opened.connection.submit([PendingCall(opened.session, "step", {"action": "hang"}, lambda _: None)])
        hung.close()
        assert begun(pool).step("up")[0] == other.step("up")[0] == "1"
        opened.connection.abandon(opened.session)


def test_a_pool_needs_a_worker_and_refuses_when_closed(pool: WorkerPool) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        WorkerPool(0)
    remote = begun(pool)
    pool.close()
    pool.close()
    assert remote.step("up")[4]["stop_reason"] == "env_error"
    assert "closed" in remote.reset(seed=0)[1]["error"]
    with pytest.raises(EnvError, match="closed"):
        RemoteEnv(TRICKY, pool, {})


def test_a_failed_creation_leaves_no_session(pool: WorkerPool) -> None:
    for env_id, options in (("AgentGym/NoSuch-v0", {}), (TRICKY, {"colour": "red"}), (TRICKY, {"split": "dev"})):
        with pytest.raises(UsageError):
            RemoteEnv(env_id, pool, options)
    assert not any(worker.sessions for worker in pool.workers)


def test_an_id_that_only_this_process_has_registered_is_known_to_workers(pool: WorkerPool) -> None:
    register("Toy/OnlyHere-v0", "tests.toy:CountEnv")
    remote = RemoteEnv("Toy/OnlyHere-v0", pool, {})
    assert remote.reset(seed=1) == gym.make("Toy/OnlyHere-v0").reset(seed=1)
    remote.close()


def test_a_class_of_the_main_program_is_refused(pool: WorkerPool) -> None:
    register("Toy/Main-v0", "__main__:Toy")
    with pytest.raises(UsageError, match="put it in a module"):
        RemoteEnv("Toy/Main-v0", pool, {})
    assert not any(worker.sessions for worker in pool.workers)


@pytest.mark.parametrize("action", ["die", "exit", "raise", "odd"])
def test_a_failure_ends_the_episode_and_the_next_one_is_played(pool: WorkerPool, action: str) -> None:
    remote = begun(pool)
    remote.step("up")
    observation, reward, terminated, truncated, info = remote.step(action)
    assert (reward, terminated, truncated) == (0, False, True)
    assert (info["stop_reason"], info["turn"], info["invalid_action"]) == ("env_error", 2, None)
    assert "failed" in observation
    with pytest.raises(EpisodeOver):
        remote.step("up")
    _, info = remote.reset(seed=0, options=NINE)
    assert info["stop_reason"] is None
    assert remote.step("up")[0] == "1"
    remote.close()


def test_an_episode_ends_with_its_worker_and_others_continue(
    pool: WorkerPool, caplog: pytest.LogCaptureFixture
) -> None:
    remotes = [begun(pool), begun(pool)]
    pid = int(remotes[0].step("who")[0].split()[0])
    os.kill(pid, signal.SIGKILL)
    error = remotes[0].step("up")[4]["error"]
    assert error.startswith("SessionLost: the worker process")
    assert "a worker process ended (exit status -9) with 1 environments" in caplog.text
    assert remotes[1].step("up")[0] == "1"
    assert remotes[0].reset(seed=0, options=NINE)[1]["stop_reason"] is None
    assert int(remotes[0].step("who")[0].split()[0]) != pid


def test_abandoning_a_hanging_call_ends_its_worker(pool: WorkerPool) -> None:
    hung, other = begun(pool), begun(pool)
    pid = int(hung.step("who")[0].split()[0])
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(hung.step("hang")))
    thread.start()
    until(lambda: hung.snapshot().actions[-1] == "hang")
    hung.abandon()
    assert pid not in [worker.pid for worker in pool.workers], "the next session might go to a dying worker"
    thread.join(SECONDS)
    assert seen[0][4]["stop_reason"] == "env_error"
    assert other.step("up")[0] == "1"
    assert hung.reset(seed=0, options=NINE)[1]["stop_reason"] is None, (
        "it was opened on the worker that was just killed"
    )
    assert int(hung.step("who")[0].split()[0]) != pid
    until(lambda: not lives(pid))


def test_prints_and_reads_do_not_disturb_the_frames(pool: WorkerPool) -> None:
    remote = begun(pool)
    for turn in range(1, 4):
        observation, *_, info = remote.step("chat")
        assert (observation, info["turn"]) == ("''", turn)


def test_a_reply_that_cannot_be_pickled_does_not_affect_others() -> None:
    pool = WorkerPool(1)
    odd, other = begun(pool), begun(pool)
    assert "pickle" in odd.step("odd")[4]["error"]
    assert other.step("up")[0] == "1"
    pool.close()


def test_large_calls_and_replies_are_transmitted(pool: WorkerPool) -> None:
    remote = begun(pool)
    observation, *_, info = remote.step("x" * 3_000_000)
    assert "too long" in observation
    assert info["invalid_action"] == observation


def test_an_unpickled_environment_uses_the_same_pool(pool: WorkerPool) -> None:
    remote = begun(pool)
    remote.step("up")
    copy = pickle.loads(pickle.dumps(remote))
    assert copy._sessions._provider is pool
    assert copy.step("up") == remote.step("up")
    copy.step("up")
    assert remote.step("who")[4]["turn"] == 3
    copy.close()


def test_an_environment_can_be_unpickled_in_another_process(pool: WorkerPool) -> None:
    remote = begun(pool)
    remote.step("up")
    code = (
        "import pickle, sys\nimport tests.toy_envs\n"
        "remote = pickle.load(sys.stdin.buffer)\nprint(remote.step('up')[0], remote.status()['turn'])"
    )
    command = [sys.executable, "-c", code]
    environ = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run(command, input=pickle.dumps(remote), env=environ, capture_output=True, check=False)
    assert (done.stdout.split(), done.stderr) == ([b"2", b"2"], b"")


def test_a_call_to_a_dead_worker_gets_session_lost(pool: WorkerPool) -> None:
    begun(pool)
    (worker,) = pool.workers
    worker.kill()
    until(lambda: not lives(worker.pid))
    replies: list[Any] = []
    for _ in range(2):
        worker.submit([PendingCall("s0", "step", {"action": "up"}, replies.append)])
    until(lambda: len(replies) == 2)
    assert all(isinstance(reply, SessionLost) for reply in replies)


PARENT = """
    import sys, threading
    from agentgym_envs.hosting import RemoteEnv, WorkerPool

    pool = WorkerPool(2)
    remotes = [RemoteEnv("tests.toy_envs:Toy/Tricky-v0", pool, {}) for _ in range(2)]
    for remote in remotes:
        remote.reset(seed=0)
        print(remote.step("who")[0].split()[0], flush=True)
    threading.Thread(target=lambda: remotes[0].step("hang"), daemon=True).start()
    ENDING
"""


def test_workers_end_with_their_parent() -> None:
    """Workers end with their parent, also a hanging one after five seconds. Both cases run at the same time."""
    environ = {**os.environ, "PYTHONPATH": str(REPO)}
    with contextlib.ExitStack() as parents:
        pids = []
        for ending in ("threading.Event().wait()", ""):
            command = [sys.executable, "-c", textwrap.dedent(PARENT).replace("ENDING", ending)]
            parent = parents.enter_context(subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True))
            assert parent.stdout is not None
            pids += [int(parent.stdout.readline()) for _ in range(2)]
            if ending:
                time.sleep(0.2)  # for the call that hangs
                parent.kill()
        until(lambda: not any(lives(pid) for pid in pids))


def test_a_garbage_collected_pool_ends_its_workers() -> None:
    pool = WorkerPool(1)
    pid = int(begun(pool).step("who")[0].split()[0])
    del pool
    gc.collect()
    until(lambda: not lives(pid))


def refuse(_: Any) -> None:
    raise RuntimeError("Event loop is closed")


def test_a_failing_receiver_does_not_affect_other_replies(pool: WorkerPool) -> None:
    remote, other = begun(pool), begun(pool)
    worker, session = remote._sessions.require().connection, remote._sessions.require().session
    assert isinstance(worker, WorkerProcess) and isinstance(other, RemoteEnv)
    worker.submit([PendingCall(session, "status", {}, refuse)])
    assert remote.step("up")[0] == "1"
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    worker.submit([PendingCall(session, "step", {"action": "hang"}, done) for done in (refuse, answers.put)])
    worker.kill()
    assert isinstance(answers.get(timeout=SECONDS), SessionLost)
    worker.submit([PendingCall(session, "status", {}, done) for done in (refuse, answers.put)])
    assert isinstance(answers.get(timeout=SECONDS), SessionLost)


def test_options_that_cannot_be_pickled_are_refused_and_end_no_process(pool: WorkerPool) -> None:
    remote, other = begun(pool), begun(pool)
    with pytest.raises(UsageError, match="can be pickled"):
        RemoteEnv(TRICKY, pool, {"grammar": lambda: None})
    assert remote.step("up")[0] == other.step("up")[0] == "1"
    with pytest.raises(UsageError, match="a grammar is one of"):
        RemoteEnv(TRICKY, pool, {"grammar": ["react"]})
    assert sum(len(worker.sessions) for worker in pool.workers) == 2


def test_after_a_restore_the_sequence_of_episodes_equals_the_local_one(pool: WorkerPool) -> None:
    local, remote = gym.make(TRICKY).unwrapped, RemoteEnv(TRICKY, pool, {})
    snapshot = begun(pool).snapshot()
    drawn = []
    for env in (local, remote):
        assert isinstance(env, TextEnv)
        env.reset(seed=5)
        env.restore(snapshot)
        drawn.append([env.reset()[1]["seed"] for _ in range(3)])
    assert drawn[0] == drawn[1]
    remote.reset(seed=5)
    copy = pickle.loads(pickle.dumps(remote))
    assert copy.reset()[1]["seed"] == remote.reset()[1]["seed"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork_the_workers_belong_to_the_parent(pool: WorkerPool) -> None:
    """The child has lost its episode, and starts the next one in a process of its own."""
    remote = begun(pool)
    pickled = pickle.dumps(remote)
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)  # ends a hanging child
        with contextlib.suppress(Exception):
            lost = remote.step("up")[4]["error"]
            copy = pickle.loads(pickled)
            remote.reset(seed=0, options=NINE)
            found = [lost, remote.step("up")[0], copy.step("up")[0]]
            pool.close()
            os._exit(found != ["SessionLost: the worker process is gone", "1", "1"])
        os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    assert remote.step("up")[0] == "1"


def test_random_commands_use_the_callers_generator(pool: WorkerPool) -> None:
    here, there = random.Random(7), random.Random(7)
    env, remote = TextCraftEnv(), RemoteEnv("AgentGym/TextCraft-v0", pool, {})
    for one in (env, remote):
        one.reset(seed=0)
    commands = [(env.random_command(here), remote.random_command(there)) for _ in range(3)]
    assert all(one == other for one, other in commands)
    assert there.getstate() == here.getstate() != random.Random(7).getstate()

"""Episodes run concurrently without blocking each other, and remote environments play like local ones."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import ENV_FAILED, TextEnv, Transition
from agentgym_envs.errors import EnvError, UnknownTask
from agentgym_envs.hosting import RemoteEnv, WorkerPool
from agentgym_envs.hosting.connection import Request
from agentgym_envs.rollout import (
    BatchEngine,
    ChatCodec,
    EpisodeSpec,
    Generation,
    Limits,
    OraclePolicy,
    RandomPolicy,
    ReplayPolicy,
    Sampling,
    TokenTrajectory,
    play,
    play_many,
    play_many_text,
    play_text,
)
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.vector import EnvRunner, RunnerPool
from tests.rollout.families import FAMILIES
from tests.toy import CountEnv
from tests.waiting import SECONDS, until

pytestmark = pytest.mark.slow  # too slow in total for the daily run

CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
LIMITS = Limits(max_turns=20)
WORKERS = 6
WAIT = 5.0
"""Seconds to wait for the other concurrent calls."""
ID = "AgentGym/TextCraft-v0"


def text(specs: Sequence[EpisodeSpec], make_env: Any, policy: Any = OraclePolicy, **options: Any) -> list[Trajectory]:
    """`play_many_text` with a timeout."""
    options = {"limits": LIMITS, "concurrency": WORKERS, **options}
    return asyncio.run(asyncio.wait_for(play_many_text(specs, make_env, policy, **options), 2 * SECONDS))


class Meter:
    """Counts concurrent entries. `full` is set when the wanted number is inside."""

    def __init__(self, wanted: int = WORKERS) -> None:
        self.now = self.peak = 0
        self.full, self._wanted = threading.Event(), wanted
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.peak = max(self.peak, self.now)
            if self.now == self._wanted:
                self.full.set()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


class ThreadEnv(CountEnv):
    """Waits in a thread."""

    blocking = True

    def _begin(self, task: Any, rng: Any) -> str:
        with meter:
            meter.full.wait(WAIT)
            time.sleep(0.05)  # time for an excess entry
            return super()._begin(task, rng)


class AsyncEnv(CountEnv):
    """Waits on the event loop."""

    blocking = native_async = True

    async def _begin_async(self, task: Any, rng: Any) -> str:
        with meter:
            end = time.monotonic() + WAIT
            while not meter.full.is_set() and time.monotonic() < end:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            return self._begin(task, rng)


meter = Meter()


@pytest.mark.parametrize("kind", [ThreadEnv, AsyncEnv])
def test_resets_overlap_and_are_bounded(kind: type[TextEnv], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "meter", Meter())
    specs = [EpisodeSpec("count/2", seed) for seed in range(3 * WORKERS)]
    assert all(t.success for t in text(specs, kind))
    assert meter.peak == WORKERS and meter.now == 0


class CountThread(CountEnv):
    blocking = True


def test_blocking_environments_are_made_concurrently() -> None:
    others, made = Meter(WORKERS - 1), itertools.count()

    def make() -> TextEnv:
        if next(made):  # the first is made alone, to find out that it blocks
            with others:
                others.full.wait(WAIT)
        return CountThread()

    assert all(t.success for t in text([EpisodeSpec("count/2")] * WORKERS, make))
    assert others.peak == WORKERS - 1


class Turnstile(CountEnv):
    """An episode to 9 continues only when all shorter ones are over."""

    blocking = True
    gate: ClassVar[threading.Event]

    def _act(self, command: str) -> Transition:
        if self.target == 9:
            assert self.gate.wait(20)
        return super()._act(command)


class AsyncTurnstile(Turnstile):
    native_async = True

    async def _act_async(self, command: str) -> Transition:
        while self.target == 9 and not self.gate.is_set():
            await asyncio.sleep(0.001)
        return self._act(command)


@pytest.mark.parametrize("kind", [Turnstile, AsyncTurnstile])
def test_a_slow_episode_does_not_delay_fast_ones(kind: type[Turnstile]) -> None:
    """In lock-step, this would deadlock."""
    kind.gate, left = threading.Event(), set(range(1, 4 * WORKERS))

    def on_done(trajectory: Trajectory) -> None:
        left.discard(trajectory.seed)
        if not left:
            kind.gate.set()

    specs = [EpisodeSpec("count/2" if seed else "count/9", seed) for seed in range(4 * WORKERS)]
    assert all(t.success for t in text(specs, kind, concurrency=2, on_done=on_done))


class Hanging(CountEnv):
    """Hangs or fails where a test sets it."""

    blocking = True
    made: list[Hanging] = []  # noqa: RUF012 (cleared by the fixture)
    trouble: list[Callable[[], None]] = []  # noqa: RUF012 (cleared by the fixture)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if self.made and self.trouble:
            self.trouble.pop(0)()
        self.made.append(self)

    def reset(self, **kwargs: Any) -> Any:
        if (kwargs["options"] or {}).get("task") == "count/4":
            time.sleep(2.5)
        return super().reset(**kwargs)

    def _act(self, command: str) -> Transition:
        if command == "hang":
            time.sleep(1.5)
        if command == "quit":
            raise SystemExit(3)
        return super()._act(command)

    def _close(self) -> None:
        with meter:
            time.sleep(0.1)
        super()._close()


@pytest.fixture(autouse=True)
def _nothing_made() -> None:
    Hanging.made.clear()
    Hanging.trouble.clear()


@pytest.mark.parametrize("action", ["up", "crash", "hang", "quit"])
def test_the_callers_environment_is_neither_closed_nor_replaced(action: str) -> None:
    env = Hanging()
    limits = Limits(env_seconds=0.8)
    threads = set(threading.enumerate())
    done = asyncio.run(play_text(env, ReplayPolicy([action, "up"]), EpisodeSpec("count/2"), limits=limits))
    assert done.stop_reason == ("success" if action == "up" else "env_error")
    until(lambda: set(threading.enumerate()) <= threads)
    assert Hanging.made == [env] and not env.closed
    again = asyncio.run(play_text(env, OraclePolicy(), EpisodeSpec("count/2"), limits=limits))
    assert again.success and not env.closed


def test_a_runner_over_a_given_environment_never_closes_or_replaces_it() -> None:
    async def use() -> list[Any]:
        runner = EnvRunner.wrapping(env)
        asks = (
            Request("reset", options={"task": "count/2"}),
            Request("step", "hang"),
            Request("reset"),
            Request("step", "crash"),
        )
        results = [await runner.run(ask, 1.0) for ask in (*asks, Request("reset"))]
        runner.close()
        return [result[-1]["stop_reason"] for result in results]

    env = Hanging()
    assert asyncio.run(use()) == [None, "env_error", None, "env_error", None]
    time.sleep(0.3)
    assert Hanging.made == [env] and not env.closed


def test_all_environments_are_closed_concurrently_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "meter", Meter())
    text([EpisodeSpec("count/2")] * 20, Hanging, concurrency=20)
    assert {env.closed for env in Hanging.made} == {1} and len(Hanging.made) > 10
    assert meter.peak > 1, "they were closed one after the other"


def test_a_callers_pool_is_reusable_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[ThreadEnv]()

    def make() -> ThreadEnv:
        made.append(ThreadEnv())
        return made[-1]

    envs = RunnerPool(make, WORKERS)
    for _ in range(3):  # each in its own event loop
        assert all(t.success for t in text([EpisodeSpec("count/2", seed) for seed in range(2 * WORKERS)], envs))
    assert len(made) <= WORKERS
    assert not any(env.closed for env in made)
    with pytest.raises(UnknownTask):
        text([EpisodeSpec("count/2"), EpisodeSpec("count/77")], envs)
    assert text([EpisodeSpec("count/2")], envs)[0].success, "the pool outlives a run that failed"
    envs.close()
    assert all(env.closed == 1 for env in made)


def test_an_environment_made_during_cancellation_is_closed() -> None:
    release = threading.Event()

    def held_up() -> None:
        assert release.wait(20)

    Hanging.trouble.append(held_up)

    async def cancel() -> None:
        run = play_many_text([EpisodeSpec("count/9")] * 2, Hanging, lambda: ReplayPolicy(["hang"]), limits=LIMITS)
        task = asyncio.create_task(run)
        while Hanging.trouble:  # until one is being made
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    release.set()
    until(lambda: [env.closed for env in Hanging.made] == [1, 1])


def fail(error: Exception) -> Callable[[], None]:
    def raising() -> None:
        raise error

    return raising


def test_a_hanging_reset_gives_an_episode_of_the_requested_task() -> None:
    specs = [EpisodeSpec("count/2", 1), EpisodeSpec("count/4", 2), EpisodeSpec("count/3", 3)]
    done = text(specs, Hanging, concurrency=1, limits=Limits(env_seconds=1))
    assert [(t.stop_reason, t.task.id, t.seed) for t in done] == [
        ("success", "count/2", 1),
        ("env_error", "count/4", 2),
        ("success", "count/3", 3),
    ]
    assert done[1].error == "TimeoutError: the environment did not answer within 1 s"
    assert done[1].turns == () and done[1].final_observation == ENV_FAILED


def test_an_env_error_when_remaking_costs_an_episode_and_a_bug_is_raised() -> None:
    specs = [EpisodeSpec("count/2", seed) for seed in range(3)]
    Hanging.trouble.append(fail(EnvError("no license")))
    acts = iter([["crash"], [], ["up", "up"]])
    done = text(specs, Hanging, lambda: ReplayPolicy(next(acts)), concurrency=1)
    assert [(t.stop_reason, t.error) for t in done] == [
        ("env_error", "EnvError: the abacus broke"),
        ("env_error", "EnvError: no license"),
        ("success", None),
    ]
    assert [t.task.id for t in done] == ["count/2"] * 3
    Hanging.trouble.append(fail(KeyError("a bug")))
    with pytest.raises(KeyError, match="a bug"):
        text(specs, Hanging, lambda: ReplayPolicy(["crash"]), concurrency=1)


def test_a_bug_in_a_reset_is_raised_if_no_task_is_known() -> None:
    class Broken(CountEnv):
        def reset(self, **kwargs: Any) -> Any:
            raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError, match="a bug"):
        text([EpisodeSpec("count/2")], Broken)


def test_a_failure_when_the_policy_calls_the_environment_is_an_env_error() -> None:
    class NoPlan(CountEnv):
        def _plan(self) -> Sequence[str]:
            raise EnvError("no power")

    (done,) = text([EpisodeSpec("count/2")], NoPlan)
    assert (done.stop_reason, done.error, done.turns) == ("env_error", "EnvError: no power", ())


class Jittery(CountEnv):
    """Takes a different time at every call."""

    blocking = True

    def _begin(self, task: Any, rng: Any) -> str:
        time.sleep(random.random() / 100)
        return super()._begin(task, rng)

    def _act(self, command: str) -> Transition:
        time.sleep(random.random() / 100)
        return super()._act(command)


class JitteryAsync(Jittery):
    native_async = True

    async def _begin_async(self, task: Any, rng: Any) -> str:
        await asyncio.sleep(random.random() / 100)
        return CountEnv._begin(self, task, rng)

    async def _act_async(self, command: str) -> Transition:
        await asyncio.sleep(random.random() / 100)
        return CountEnv._act(self, command)


class Dice(BatchEngine):
    """The answer depends on the position in the batch, as with a model that samples with a seed."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = random.Random(0)

    def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
        return [Generation(CODEC.encode_answer(self.rng.choice(["up", "down", "give up"])), "stop") for _ in prompts]


def test_a_batch_does_not_depend_on_the_order_of_replies() -> None:
    specs = [EpisodeSpec(("count/2", "count/3", "count/9")[seed % 3], seed // 4) for seed in range(24)]

    def played(kind: type[TextEnv]) -> list[TokenTrajectory]:
        return asyncio.run(play_many(specs, kind, Dice(), CODEC, limits=LIMITS, concurrency=7))

    def shape(done: list[TokenTrajectory]) -> list[Any]:
        return [(t.prompt_ids, t.ids, t.rewards, t.trajectory.turns) for t in done]

    expected = shape(played(CountEnv))
    assert len({tuple(ids) for _, ids, _, _ in expected}) > 5
    for kind in (Jittery, Jittery, JitteryAsync):
        assert shape(played(kind)) == expected


def local() -> Any:
    return gym.make(ID, grammar="tag", split="validation")


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    pool.close()


def remote(pool: WorkerPool) -> RemoteEnv:
    return RemoteEnv(ID, pool, {"grammar": "tag", "split": "validation"})


@pytest.mark.parametrize("policy", [OraclePolicy, RandomPolicy])
def test_remote_environments_play_like_local_ones(policy: Any, pool: WorkerPool) -> None:
    specs = [EpisodeSpec(seed=seed) for seed in range(12)]
    limits = Limits(max_turns=12)
    expected = text(specs, local, policy, limits=limits)
    assert text(specs, lambda: remote(pool), policy, limits=limits, concurrency=4) == expected
    assert expected[0].env_id == ID and expected[0].env_kwargs == {"grammar": "tag", "split": "validation"}
    until(lambda: not any(worker.sessions for worker in pool.workers))


def test_engines_play_remote_environments_like_local_ones(pool: WorkerPool) -> None:
    class Looks(Dice):
        def generate_batch(self, prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[Generation]:
            words = ("<action>inventory</action>", "nonsense", "<action>get 1 oak log</action>")
            return [Generation(CODEC.encode_answer(self.rng.choice(words)), "stop") for _ in prompts]

    specs = [EpisodeSpec(seed=seed // 2) for seed in range(8)]

    def played(make_env: Any) -> list[TokenTrajectory]:
        return asyncio.run(play_many(specs, make_env, Looks(), CODEC, limits=Limits(max_turns=4), concurrency=4))

    assert played(lambda: remote(pool)) == played(local)
    one = asyncio.run(play(remote(pool), Looks(), CODEC, specs[0], limits=Limits(max_turns=4)))
    assert one == asyncio.run(play(local(), Looks(), CODEC, specs[0], limits=Limits(max_turns=4)))


class Killer(OraclePolicy):
    """Kills the worker of two episodes: in the middle, or before the call of the oracle.

    The second begins after the first has ended, so that neither takes the worker of the other. `lost` has the number of
    sessions of each killed worker.
    """

    lost: ClassVar[list[int]] = []

    async def act(self, env: TextEnv, messages: Any) -> str:
        turn = len(messages) // 2
        if (env.episode_seed, turn) in ((1, 2), (14, 1)):
            assert isinstance(env, RemoteEnv)
            worker: Any = env._sessions.require().connection
            self.lost.append(len(worker.sessions))
            os.kill(worker.pid, signal.SIGKILL)
        return await super().act(env, messages)


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("concurrency", [2, 6])
def test_a_killed_worker_loses_only_its_own_episodes_and_is_replaced(concurrency: int) -> None:
    pool, limits = WorkerPool(2), Limits(max_turns=40)
    Killer.lost.clear()
    specs = [EpisodeSpec(seed=seed) for seed in range(20)]
    try:
        done = text(specs, lambda: remote(pool), Killer, limits=limits, concurrency=concurrency)
        failed = [t for t in done if t.stop_reason == "env_error"]
        assert {1, 14} <= {t.seed for t in failed} and len(failed) <= sum(Killer.lost) <= 2 * concurrency
        assert all("SessionLost" in str(t.error) for t in failed)
        assert all(t.success for t in done if t not in failed)
        assert len(done[1].turns) == 2 and done[14].turns == ()
        until(lambda: not any(worker.sessions for worker in pool.workers))
        assert all(t.success for t in text(specs, lambda: remote(pool), limits=limits))
        assert len(pool.workers) == 2
    finally:
        pool.close()


def test_a_remote_environment_without_a_session_gives_env_errors() -> None:
    pool = WorkerPool(1)
    env = remote(pool)
    pool.close()
    done = asyncio.run(play_text(env, OraclePolicy(), EpisodeSpec(seed=3), limits=LIMITS))
    assert (done.stop_reason, done.seed, done.turns) == ("env_error", 3, ())
    assert done.error == "EnvError: the pool of worker processes is closed"


class SlowPool(WorkerPool):
    """Takes time to open a session."""

    delay, opened = 0.0, 0

    def open(self, env_id: str, options: Any, seconds: float | None = None) -> Any:
        time.sleep(self.delay)
        session = super().open(env_id, options)
        self.opened += 1
        return session


def test_a_late_new_session_of_a_remote_environment_is_closed() -> None:
    pool = SlowPool(1)
    try:
        env = remote(pool)
        specs = [EpisodeSpec("textcraft/7", 1), EpisodeSpec(seed=2)]
        pool.workers[0].kill()
        pool.delay = 1.5
        late = asyncio.run(play_text(env, OraclePolicy(), specs[0], limits=Limits(env_seconds=0.2)))
        assert (late.stop_reason, late.task.id, late.seed) == ("env_error", "textcraft/7", 1)
        assert late.error == "TimeoutError: the environment did not answer within 0.2 s"
        pool.delay = 0.0
        done = asyncio.run(play_text(env, OraclePolicy(), specs[1], limits=LIMITS))
        until(lambda: pool.opened == 3)  # the first, the late one, and its replacement
        until(lambda: [len(worker.sessions) for worker in pool.workers] == [1])
        assert done.success
        assert asyncio.run(play_text(env, OraclePolicy(), specs[1], limits=LIMITS)) == done
    finally:
        pool.close()

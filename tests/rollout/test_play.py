"""Playing: failures of environments become records, errors of the caller are raised, and order and starts are exact."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.errors import EngineError, EnvError, UnknownTask, UsageError
from agentgym_envs.rollout import (
    ChatCodec,
    EpisodeSpec,
    Generation,
    Limits,
    OraclePolicy,
    RandomPolicy,
    ReplayPolicy,
    Sampling,
    ScriptedEngine,
    TokenTrajectory,
    play,
    play_many,
    play_many_text,
    play_text,
    run_sync,
)
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.wrappers import ScheduledTimeLimit
from tests.rollout.families import FAMILIES, UP
from tests.toy import CountEnv

CODEC = ChatCodec(FAMILIES["qwen2.5"].tokenizer())
END = CODEC.turn_end_id
LIMITS = Limits(max_turns=20)


class FragileEnv(CountEnv):
    """`boom` is a bug in the environment, `crash` an EnvError; task 3 has a bug at reset."""

    made: list[FragileEnv] = []  # noqa: RUF012 (cleared by the fixture)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.made.append(self)

    def _begin(self, task: Any, rng: Any) -> str:
        if task.id == "count/3":
            raise ZeroDivisionError("a bug")
        return super()._begin(task, rng)

    def _act(self, command: str) -> Transition:
        if command == "boom":
            raise RuntimeError("the abacus exploded")
        return super()._act(command)


class SlowEnv(FragileEnv):
    blocking = True
    threads: set[int] = set()  # noqa: RUF012 (cleared by the fixture)
    awake = threading.Event()

    def _act(self, command: str) -> Transition:
        self.threads.add(threading.get_ident())
        if command == "sleep":
            self.awake.wait(60)
        if command == "fail late":
            time.sleep(0.5)
            raise RuntimeError("too late to matter")
        if command == "nap":
            time.sleep(0.3)
            return Transition("1")
        return super()._act(command)


@pytest.fixture(autouse=True)
def _nothing_made() -> Iterator[None]:
    FragileEnv.made.clear()
    SlowEnv.threads.clear()
    SlowEnv.awake.clear()
    yield
    SlowEnv.awake.set()  # end all hangs


def says(*texts: str) -> ScriptedEngine:
    return ScriptedEngine([CODEC.encode_answer(text) for text in texts], CODEC.stop_ids)


def play_says(env: TextEnv, *texts: str, limits: Limits = LIMITS, task: str = "count/2") -> TokenTrajectory:
    return asyncio.run(play(env, says(*texts), CODEC, EpisodeSpec(task), limits=limits))


@pytest.mark.parametrize(
    ("action", "error"),
    [("boom", "RuntimeError: the abacus exploded"), ("crash", "EnvError: the abacus broke")],
)
def test_a_failing_step_ends_the_episode_as_env_error(action: str, error: str) -> None:
    tokens = play_says(FragileEnv(), "up", action)
    trajectory = tokens.trajectory
    assert (trajectory.stop_reason, trajectory.error, trajectory.usable) == ("env_error", error, False)
    assert trajectory.actions == ["up", action]
    assert [turn.reward for turn in trajectory.turns] == [0.5, 0.0]
    assert (trajectory.score, trajectory.success) == (0.5, False)
    assert sum(tokens.rewards) == 0.5 and tokens.assistant_mask[-1] == 1
    assert Trajectory.from_json(trajectory.to_json()).error == error


@pytest.mark.parametrize(
    ("task", "error"), [("count/3", "ZeroDivisionError: a bug"), ("count/0", "EnvError: no power")]
)
def test_a_failing_reset_is_an_episode_without_turns(task: str, error: str) -> None:
    tokens = play_says(FragileEnv(), "up", task=task)
    assert (tokens.trajectory.stop_reason, tokens.trajectory.error) == ("env_error", error)
    assert tokens.trajectory.task.id == task and tokens.trajectory.turns == () and not tokens.trajectory.usable
    assert tokens.ids == [] and tokens.logprobs is None and tokens.prompt_ids


def test_a_failed_environment_is_replaced_and_the_others_continue(caplog: pytest.LogCaptureFixture) -> None:
    specs = [EpisodeSpec("count/2", seed) for seed in range(3)]
    engine = says("up", "up", "boom", "up", "up")
    done = asyncio.run(play_many(specs, FragileEnv, engine, CODEC, limits=LIMITS, concurrency=1))
    assert [t.trajectory.stop_reason for t in done] == ["success", "env_error", "success"]
    assert [env.closed for env in FragileEnv.made] == [1, 1]
    assert any(r.exc_info and "env_error" in r.message for r in caplog.records if r.levelno == logging.WARNING)


def test_an_error_of_close_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(CountEnv):
        def _close(self) -> None:
            raise OSError("the door is stuck")

    specs = [EpisodeSpec("count/2", seed) for seed in range(2)]
    done = asyncio.run(play_many_text(specs, Stubborn, OraclePolicy, limits=LIMITS))
    assert [trajectory.success for trajectory in done] == [True, True]
    assert "closing an environment failed" in caplog.text


def test_errors_of_the_caller_are_raised() -> None:
    with pytest.raises(UnknownTask, match="count/77"):
        play_says(FragileEnv(), "up", task="count/77")
    specs = [EpisodeSpec("count/2"), EpisodeSpec("count/77"), EpisodeSpec("count/2")]
    with pytest.raises(UnknownTask, match="count/77"):
        asyncio.run(play_many(specs, FragileEnv, says(*["up"] * 9), CODEC, limits=LIMITS))
    first, *others = [env.closed for env in FragileEnv.made]
    assert first == 0, "it is its caller's"
    assert others and set(others) == {1}
    with pytest.raises(UsageError, match="concurrency must be at least 1, got 0"):
        asyncio.run(play_many(specs, FragileEnv, says(), CODEC, limits=LIMITS, concurrency=0))
    with pytest.raises(UsageError, match="expected an environment of this suite"):
        asyncio.run(play_text(gym.make("CartPole-v1"), OraclePolicy(), EpisodeSpec(), limits=LIMITS))


def test_a_failing_engine_or_factory_is_raised() -> None:
    class Broken:
        async def generate(self, prompt_ids: Any, sampling: Sampling) -> Generation:
            raise EngineError("no server")

    class Mute:
        async def generate(self, prompt_ids: Any, sampling: Sampling) -> Generation:
            return Generation([], "stop")

    def no_env() -> CountEnv:
        raise EnvError("no license")

    with pytest.raises(EngineError, match="no server"):
        asyncio.run(play(CountEnv(), Broken(), CODEC, EpisodeSpec(), limits=LIMITS))
    with pytest.raises(EngineError, match="empty answer"):
        asyncio.run(play(CountEnv(), Mute(), CODEC, EpisodeSpec(), limits=LIMITS))
    with pytest.raises(EnvError, match="no license"):
        asyncio.run(play_many([EpisodeSpec()], no_env, says("up"), CODEC, limits=LIMITS))


def test_blocking_environments_run_concurrently() -> None:
    """Sixty sleeps of 0.1 s run concurrently, so none reaches the timeout."""
    specs = [EpisodeSpec("count/2", seed) for seed in range(60)]
    limits = Limits(env_seconds=2.0)
    done = asyncio.run(play_many_text(specs, SlowEnv, lambda: ReplayPolicy(["nap", "up", "up"]), limits=limits))
    assert {trajectory.stop_reason for trajectory in done} == {"success"}
    assert SlowEnv.threads and threading.get_ident() not in SlowEnv.threads


@pytest.mark.parametrize("action", ["sleep", "fail late"])
def test_a_hung_environment_times_out(action: str) -> None:
    tokens = play_says(SlowEnv(), "up", action, limits=Limits(env_seconds=0.3))
    assert tokens.trajectory.stop_reason == "env_error"
    assert tokens.trajectory.error == "TimeoutError: the environment did not answer within 0.3 s"
    assert tokens.trajectory.actions == ["up", action]


def test_a_hung_environment_does_not_block_the_end_of_the_loop() -> None:
    began = time.perf_counter()
    play_says(SlowEnv(), "sleep", limits=Limits(env_seconds=0.05))
    assert time.perf_counter() - began < 30  # the thread sleeps for longer


def test_errors_of_blocking_environments_give_the_same_records() -> None:
    tokens = play_says(SlowEnv(), "boom")
    assert tokens.trajectory.error == "RuntimeError: the abacus exploded"
    with pytest.raises(UnknownTask):
        play_says(SlowEnv(), "up", task="count/77")


def test_results_are_in_the_order_of_the_specs() -> None:
    tasks = ["count/9", "count/2", "count/3", "count/2", "count/9", "count/4"]
    specs = [EpisodeSpec(task, seed, {"n": seed}) for seed, task in enumerate(tasks)]
    seen: list[Trajectory] = []
    done = asyncio.run(play_many_text(specs, CountEnv, OraclePolicy, limits=LIMITS, concurrency=3, on_done=seen.append))
    assert [(t.task.id, t.seed, t.meta["n"]) for t in done] == [(task, n, n) for n, task in enumerate(tasks)]
    assert sorted(map(id, seen)) == sorted(map(id, done))


def test_on_done_receives_token_trajectories_as_they_finish() -> None:
    seen: list[TokenTrajectory] = []
    specs = [EpisodeSpec("count/2", seed) for seed in range(3)]
    done = asyncio.run(
        play_many(specs, CountEnv, says(*["up"] * 6), CODEC, limits=LIMITS, concurrency=1, on_done=seen.append)
    )
    assert seen == done and len(done) == 3
    assert asyncio.run(play_many([], CountEnv, says(), CODEC, limits=LIMITS)) == []


def test_cancelling_closes_every_environment() -> None:
    class Never:
        async def generate(self, prompt_ids: Any, sampling: Sampling) -> Generation:
            await asyncio.Event().wait()
            raise AssertionError

    async def cancel() -> None:
        specs = [EpisodeSpec("count/2", seed) for seed in range(5)]
        task = asyncio.create_task(play_many(specs, FragileEnv, Never(), CODEC, limits=LIMITS, concurrency=3))
        while len(FragileEnv.made) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert [env.closed for env in FragileEnv.made] == [1, 1, 1]


def test_cancelling_does_not_wait_for_a_blocking_environment() -> None:
    async def cancel() -> None:
        policy = ReplayPolicy(["sleep"])
        task = asyncio.create_task(play_text(SlowEnv(), policy, EpisodeSpec("count/2"), limits=LIMITS))
        while not SlowEnv.threads:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.perf_counter()
    asyncio.run(cancel())
    assert time.perf_counter() - began < 30


async def _answer(value: Any) -> Any:
    await asyncio.sleep(0)
    if isinstance(value, Exception):
        raise value
    return value


def test_run_sync_works_with_and_without_a_running_loop() -> None:
    async def inside() -> Any:
        with pytest.raises(EngineError, match="no"):
            run_sync(_answer(EngineError("no")))
        return run_sync(_answer(42))

    assert run_sync(_answer(41)) == 41
    with pytest.raises(EngineError, match="no"):
        run_sync(_answer(EngineError("no")))
    assert asyncio.run(inside()) == 42


@pytest.mark.parametrize(
    ("limits", "stop", "turns"),
    [
        (Limits(max_turns=1), "turn_limit", 1),
        (Limits(max_turns=2), "success", 2),  # an end on the last turn is no truncation
        (Limits(max_turns=0), "turn_limit", 0),
        (Limits(max_tokens=2), "token_limit", 1),
        (Limits(max_turns=1, max_tokens=2), "turn_limit", 1),
    ],
)
def test_each_limit_ends_the_episode(limits: Limits, stop: str, turns: int) -> None:
    tokens = play_says(CountEnv(), "up", "up", limits=limits)
    assert (tokens.trajectory.stop_reason, len(tokens.trajectory.turns)) == (stop, turns)
    assert tokens.trajectory.usable is (turns > 0)
    assert tokens.trajectory.meta["max_turns"] == limits.max_turns


def test_a_trajectory_has_the_key_of_its_first_state() -> None:
    played = play_says(CountEnv(), "up", "up", limits=LIMITS).trajectory
    _, info = CountEnv().reset(seed=played.seed, options={"task": played.task.id})
    assert played.meta["state_key"] == info["state_key"] != played.turns[0].info["state_key"]


def test_the_smallest_sufficient_token_budget_is_accepted() -> None:
    needed = len(play_says(CountEnv(), "up", "up").ids)
    assert play_says(CountEnv(), "up", "up", limits=Limits(max_tokens=needed)).trajectory.success
    truncated = play_says(CountEnv(), "up", "up", limits=Limits(max_tokens=needed - 1))
    assert truncated.trajectory.success and truncated.ids[-1] == UP  # the word fits, the end token does not
    short = play_says(CountEnv(), "up", "up", limits=Limits(max_tokens=needed - 2))
    assert short.trajectory.stop_reason == "token_limit" and short.ids == [UP, END]


def test_the_engine_is_asked_for_at_most_the_remaining_budget() -> None:
    asked: list[Sampling] = []

    class Asked(ScriptedEngine):
        async def generate(self, prompt_ids: Any, sampling: Sampling) -> Generation:
            asked.append(sampling)
            return await super().generate(prompt_ids, sampling)

    engine = Asked([[UP, END], [UP, END]], CODEC.stop_ids)
    between = len(CODEC.encode_observation("1"))
    limits = Limits(max_tokens=between + 2 + 5, max_turn_tokens=50)
    sampling = Sampling(40, 0.25, 0.5, 7)
    asyncio.run(play(CountEnv(), engine, CODEC, EpisodeSpec("count/2"), limits=limits, sampling=sampling))
    assert [s.max_tokens for s in asked] == [min(40, limits.max_tokens), 5]
    assert asked[0].stop_ids == tuple(sorted(CODEC.stop_ids))
    assert (asked[0].temperature, asked[0].top_p, asked[0].top_k) == (0.25, 0.5, 7)


def test_the_limit_of_a_wrapper_applies() -> None:
    env = ScheduledTimeLimit(CountEnv(), lambda step: 1)
    trajectory = asyncio.run(play_text(env, OraclePolicy(), EpisodeSpec("count/9"), limits=LIMITS))
    assert (trajectory.stop_reason, len(trajectory.turns)) == ("turn_limit", 1)


def craft() -> Any:
    return gym.make("AgentGym/TextCraft-v0", disable_env_checker=True)


def test_the_oracle_solves_textcraft() -> None:
    specs = [EpisodeSpec(seed=seed) for seed in range(4)]
    done = asyncio.run(play_many_text(specs, craft, OraclePolicy, limits=Limits(max_turns=40)))
    assert [trajectory.score for trajectory in done] == [1.0] * 4
    assert {trajectory.env_id for trajectory in done} == {"AgentGym/TextCraft-v0"}


def test_random_play_depends_only_on_its_seed() -> None:
    def actions(seed: int) -> list[list[str]]:
        specs = [EpisodeSpec(seed=n) for n in range(3)]
        limits = Limits(max_turns=6)
        done = asyncio.run(play_many_text(specs, craft, lambda: RandomPolicy(seed), limits=limits))
        return [trajectory.actions for trajectory in done]

    state = random.getstate()
    assert actions(1) == actions(1) != actions(2)
    assert random.getstate() == state


@pytest.mark.parametrize("make_policy", [OraclePolicy, RandomPolicy])
def test_a_recorded_trajectory_replays_exactly(make_policy: Callable[[], Any]) -> None:
    limits = Limits(max_turns=8)
    for seed in range(4):
        first = asyncio.run(play_text(craft(), make_policy(), EpisodeSpec(seed=seed), limits=limits))
        read = Trajectory.from_json(first.to_json())
        spec = EpisodeSpec(read.task.id, read.seed)
        again = asyncio.run(play_text(craft(), ReplayPolicy(read.actions), spec, limits=limits))
        assert again == first
        assert replace(again, times=None).to_json() == replace(first, times=None).to_json()


def test_a_replay_that_runs_out_is_an_error() -> None:
    with pytest.raises(UsageError, match="recorded actions ran out"):
        asyncio.run(play_text(CountEnv(), ReplayPolicy(["up"]), EpisodeSpec("count/9"), limits=LIMITS))


def test_a_group_starts_identically() -> None:
    specs = [EpisodeSpec(seed=7)] * 4 + [EpisodeSpec(seed=8)] * 4
    engine = says(*["inventory"] * 8)
    done = asyncio.run(play_many(specs, craft, engine, CODEC, limits=Limits(max_turns=1), concurrency=3))
    assert [t.prompt_ids for t in done[:4]] == [done[0].prompt_ids] * 4
    assert [t.prompt_ids for t in done[4:]] == [done[4].prompt_ids] * 4
    assert done[0].prompt_ids != done[4].prompt_ids
    assert done[0].trajectory.turns == done[3].trajectory.turns


class NamedEnv(CountEnv):
    """Records by name when an environment is made and closed."""

    log: list[tuple[str, str]] = []  # noqa: RUF012 (cleared by the test)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.log.append(("made", name))

    def _act(self, command: str) -> Transition:
        self.log.append(("step", self.name))
        return super()._act(command)

    def _close(self) -> None:
        self.log.append(("closed", self.name))


def named(names: str = "ab") -> dict[str, Callable[[], CountEnv]]:
    NamedEnv.log.clear()
    return {name: lambda name=name: NamedEnv(name) for name in names}  # type: ignore[misc]


def test_an_episode_is_played_in_its_named_environment() -> None:
    specs = [EpisodeSpec("count/2", number, env=kind) for number, kind in enumerate("aabba")]
    done = asyncio.run(play_many(specs, named(), says(*["up"] * 10), CODEC, limits=LIMITS, concurrency=1))
    assert [t.trajectory.seed for t in done] == [0, 1, 2, 3, 4] and all(t.trajectory.success for t in done)
    a, b = [[(what, name) for what in ("made", "step", "step", "step", "step", "closed")] for name in "ab"]
    # Each is made once, though the kinds alternate.
    assert NamedEnv.log == [*a[:-1], *b[:-1], *a[1:3], b[-1], a[-1]]


class Yielding(OraclePolicy):
    """An oracle that yields to other episodes first."""

    async def act(self, env: TextEnv, messages: Any) -> str:
        await asyncio.sleep(0)
        return await super().act(env, messages)


def peak_of(log: list[tuple[str, str]], up: str, down: str) -> int:
    changes = itertools.accumulate((what == up) - (what == down) for what, _ in log)
    *_, last = counts = [0, *changes]
    assert last == 0
    return max(counts)


@pytest.mark.parametrize("concurrency", [1, 2, 3, 20])
@pytest.mark.parametrize("kinds", ["a", "ab", "abc"])
def test_the_number_of_environments_is_bounded(concurrency: int, kinds: str) -> None:
    names = [kinds[(number * number + number // 7) % len(kinds)] for number in range(60)]
    specs = [EpisodeSpec("count/3", number, env=name) for number, name in enumerate(names)]
    makers = named(kinds)
    make = makers if len(kinds) > 1 else makers["a"]
    done = asyncio.run(play_many_text(specs, make, Yielding, limits=LIMITS, concurrency=concurrency))
    assert [t.seed for t in done] == list(range(60)) and all(t.success for t in done)
    assert peak_of(NamedEnv.log, "made", "closed") <= concurrency * min(len(kinds), 2)
    if len(kinds) == 2:  # idle environments are kept and reused
        assert all(NamedEnv.log.count(("made", name)) <= concurrency for name in kinds)
    steps = [name for what, name in NamedEnv.log if what == "step"]
    assert {name: steps.count(name) for name in kinds} == {name: 3 * names.count(name) for name in kinds}


def test_an_unknown_environment_name_is_refused() -> None:
    specs = [EpisodeSpec("count/2", 0, env="a"), EpisodeSpec("count/2", 1, env="c")]
    with pytest.raises(UsageError, match="an episode needs the environment 'c'; known here: a, b"):
        asyncio.run(play_many(specs, named(), says("up", "up"), CODEC, limits=LIMITS, concurrency=1))
    assert NamedEnv.log == [("made", "a"), ("step", "a"), ("step", "a"), ("closed", "a")]
    done = asyncio.run(play_many_text([EpisodeSpec("count/2", env="any")], CountEnv, OraclePolicy, limits=LIMITS))
    assert done[0].success  # a single environment needs no name


def test_an_episode_may_have_its_own_turn_limit() -> None:
    specs = [EpisodeSpec("count/9", 0, {"n": 1}, max_turns=own) for own in (2, None, 30)]
    limits = Limits(max_turns=4)
    for done in (
        asyncio.run(play_many_text(specs, CountEnv, OraclePolicy, limits=limits)),
        [t.trajectory for t in asyncio.run(play_many(specs, CountEnv, says(*["up"] * 15), CODEC, limits=limits))],
    ):
        assert [len(t.turns) for t in done] == [2, 4, 9]
        assert [t.stop_reason for t in done] == ["turn_limit", "turn_limit", "success"]
        assert [(t.meta["max_turns"], t.meta["n"]) for t in done] == [(n, 1) for n in (2, 4, 30)]


@pytest.mark.parametrize(
    ("limits", "actions", "goes_on"),
    [
        (Limits(max_turns=1), ["up"], True),
        (Limits(max_tokens=2), ["up"], True),
        (LIMITS, ["up", "up"], False),
        (LIMITS, ["give up"], False),
        (LIMITS, ["up", "crash"], False),
    ],
    ids=["turn limit", "token limit", "success", "failure", "env error"],
)
def test_truncated_episodes_have_bootstrap_ids(limits: Limits, actions: list[str], goes_on: bool) -> None:
    tokens = play_says(CountEnv(), *actions, limits=limits)
    assert tokens.bootstrap_ids == (CODEC.encode_observation("1") if goes_on else [])


def test_bootstrap_ids_equal_the_input_of_a_longer_episode() -> None:
    """Also after a truncated answer: its end token comes first."""
    for answer in ([UP, END], [UP]):
        engines = [ScriptedEngine([answer, answer], CODEC.stop_ids) for _ in range(2)]
        short, long = (
            asyncio.run(play(CountEnv(), engine, CODEC, EpisodeSpec("count/9", max_turns=turns), limits=LIMITS))
            for turns, engine in zip((1, 2), engines, strict=True)
        )
        whole = short.ids + short.bootstrap_ids
        assert long.ids[: len(whole)] == whole and long.ids[len(whole) :] == answer

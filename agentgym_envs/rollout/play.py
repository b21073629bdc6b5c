"""Playing episodes. One function plays one episode; everything else is running many of them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import gymnasium as gym

from agentgym_envs.core import StopReason, text_env
from agentgym_envs.errors import EngineError, EpisodeOver, UsageError
from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import BatchEngine, Engine, Sampling
from agentgym_envs.rollout.policies import Policy, PolicyFactory
from agentgym_envs.rollout.tokens import TokenBuilder, TokenTrajectory
from agentgym_envs.trajectory import Message, Trajectory, Turn, prompt_messages
from agentgym_envs.wrappers import make_trajectory

Env = gym.Env[str, str]
MakeEnv = Callable[[], Env] | Mapping[str, Callable[[], Env]]
"""How to make an environment; with several kinds of them, how to make each, by the name that a spec gives in `env`."""
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What an episode may use.

    `max_tokens` bounds all tokens after the prompt, observations included; `max_turn_tokens` one answer;
    `env_seconds` one call of a blocking environment, after which the episode ends as `env_error`.
    """

    max_turns: int = 30
    max_tokens: int = 8192
    max_turn_tokens: int = 512
    env_seconds: float | None = 300.0


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """One episode to play. Equal task and seed make equal starts, as the groups of GRPO and RLOO need.

    `task=None` draws by the seed. `meta` goes into the trajectory, beside the limit of turns and the key of the first
    state. `env` names the kind of environment, if there are several. `max_turns` takes the place of the limit that all
    episodes have.
    """

    task: str | None = None
    seed: int = 0
    meta: Mapping[str, Any] = field(default_factory=dict)
    env: str = ""
    max_turns: int | None = None

    @property
    def reset_arguments(self) -> dict[str, Any]:
        """The arguments for `env.reset`."""
        return {"seed": self.seed, "options": None if self.task is None else {"task": self.task}}

    def within(self, limits: Limits) -> Limits:
        """The limits of this episode."""
        return limits if self.max_turns is None else replace(limits, max_turns=self.max_turns)


class _Answer(NamedTuple):
    text: str
    notes: Mapping[str, Any] = {}


_Act = Callable[[str], Awaitable[_Answer | None]]


async def play(
    env: Env,
    engine: Engine,
    codec: ChatCodec,
    spec: EpisodeSpec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
) -> TokenTrajectory:
    """Play one episode with a token engine.

    `sampling` says how to sample (its `max_tokens` is bounded by `limits`). The machine's failures end the episode
    as `env_error`; failures of the engine and of the caller are raised.
    """
    limits = spec.within(limits)
    player = _TokenPlayer(env, engine, codec, limits, sampling or Sampling(limits.max_turn_tokens))
    trajectory = await _episode(env, player.act, spec, limits, player.reward)
    return player.finish(trajectory)


async def play_text(env: Env, policy: Policy, spec: EpisodeSpec, *, limits: Limits) -> Trajectory:
    """Play one episode with a policy that reads and writes text."""
    base, messages = text_env(env), list[Message]()

    async def act(observation: str) -> _Answer:
        if messages:
            messages.append({"role": "user", "content": observation})
        else:
            messages.extend(prompt_messages(base.instructions, observation))
        action = await policy.act(base, messages)
        messages.append({"role": "assistant", "content": action})
        return _Answer(action)

    return await _episode(env, act, spec, spec.within(limits))


async def play_many(
    specs: Sequence[EpisodeSpec],
    make_env: MakeEnv,
    engine: Engine,
    codec: ChatCodec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
    concurrency: int = 256,
    on_done: Callable[[TokenTrajectory], None] | None = None,
) -> list[TokenTrajectory]:
    """Play many episodes with a token engine, `concurrency` at a time; results in the order of `specs`.

    Each worker makes one environment and keeps it; one whose episode ended in `env_error`, or that is of another kind
    than the next episode needs, is replaced.
    """

    async def one(env: Env, spec: EpisodeSpec) -> TokenTrajectory:
        return await play(env, engine, codec, spec, limits=limits, sampling=sampling)

    batch = engine if isinstance(engine, BatchEngine) else None
    return await _many(specs, make_env, one, lambda t: t.trajectory, concurrency, on_done, batch)


async def play_many_text(
    specs: Sequence[EpisodeSpec],
    make_env: MakeEnv,
    make_policy: PolicyFactory,
    *,
    limits: Limits,
    concurrency: int = 64,
    on_done: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play many episodes with text policies, as `play_many` does with an engine."""

    async def one(env: Env, spec: EpisodeSpec) -> Trajectory:
        return await play_text(env, make_policy(), spec, limits=limits)

    return await _many(specs, make_env, one, lambda t: t, concurrency, on_done, None)


def run_sync(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end from synchronous code, also where an event loop already runs (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    outcome: list[_T | BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(coroutine))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


class _TokenPlayer:
    """Keeps the tokens of one episode while an engine plays it."""

    def __init__(self, env: Env, engine: Engine, codec: ChatCodec, limits: Limits, sampling: Sampling) -> None:
        self._instructions = text_env(env).instructions
        self._engine, self._codec, self._limits, self._sampling = engine, codec, limits, sampling
        self._builder: TokenBuilder | None = None

    async def act(self, observation: str) -> _Answer | None:
        """The engine's next answer, or None if the token budget leaves no room for one."""
        context = self._extend(observation)
        if context is None:
            return None
        builder, room = context
        sampling = Sampling(
            min(self._sampling.max_tokens, self._limits.max_turn_tokens, room),
            self._sampling.temperature,
            self._sampling.top_p,
            self._sampling.top_k,
            self._sampling.stop_ids or tuple(sorted(self._codec.stop_ids)),
        )
        generation = await self._engine.generate(builder.prompt_ids + builder.ids, sampling)
        if not generation.ids:
            raise EngineError("the engine returned an empty answer; every answer needs at least its end token")
        builder.add_answer(generation)
        return _Answer(self._codec.decode(generation.ids), {"finish": generation.finish})

    def reward(self, reward: float) -> None:
        """The reward of the last answer."""
        assert self._builder is not None
        self._builder.add_reward(reward)

    def finish(self, trajectory: Trajectory) -> TokenTrajectory:
        """The record; without any answer, its prompt only."""
        if self._builder is None:
            self._builder = self._begin(trajectory.final_observation)
        return self._builder.build(trajectory)

    def _begin(self, observation: str) -> TokenBuilder:
        prompt = prompt_messages(self._instructions, observation)
        return TokenBuilder(self._codec, self._codec.encode_prompt(prompt))

    def _extend(self, observation: str) -> tuple[TokenBuilder, int] | None:
        """Append the observation, if at least one token of an answer still fits behind it."""
        if self._builder is None:
            self._builder = self._begin(observation)
            return self._builder, self._limits.max_tokens
        between = self._builder.between(observation)
        room = self._limits.max_tokens - len(self._builder.ids) - len(between)
        if room < 1:
            return None
        self._builder.add_between(between)
        return self._builder, room


async def _episode(
    env: Env, act: _Act, spec: EpisodeSpec, limits: Limits, on_reward: Callable[[float], None] | None = None
) -> Trajectory:
    """The loop that every episode of the suite runs in."""
    turns: list[Turn] = []
    observation, info = await _call(env, limits, lambda: env.reset(**spec.reset_arguments))
    meta = {"max_turns": limits.max_turns, "state_key": info.get("state_key"), **spec.meta}
    while (stop := info["stop_reason"]) is None:
        if len(turns) >= limits.max_turns:
            stop = StopReason.TURN_LIMIT.value
            break
        answer = await act(observation)
        if answer is None:
            stop = StopReason.TOKEN_LIMIT.value
            break
        seen = observation
        step = await _call(env, limits, lambda text=answer.text: env.step(text), before=(seen, info))  # type: ignore[misc]
        observation, reward, info = step[0], float(step[1]) if len(step) == 5 else 0.0, step[-1]
        turns.append(Turn(seen, answer.text, reward, {**info, **answer.notes}))
        if on_reward:
            on_reward(reward)
    fields = {"stop_reason": stop, "error": info.get("error"), "meta": meta}
    return make_trajectory(env, tuple(turns), observation, info, **fields)


async def _call(
    env: Env, limits: Limits, call: Callable[[], Any], before: tuple[str, dict[str, Any]] | None = None
) -> Any:
    """Call the environment, in a thread if it blocks. What fails inside it becomes an `env_error`, not a crash."""
    try:
        if not text_env(env).blocking:
            return call()
        return await _in_thread(call, limits.env_seconds)
    except (UsageError, EpisodeOver):
        raise
    except Exception as error:
        if before is None and text_env(env).task is None:
            raise
        _log.warning("an environment failed; its episode ends as env_error", exc_info=True)
        observation, info = before or ("", {"score": 0.0, "success": False})
        failed = {**info, "stop_reason": StopReason.ENV_ERROR.value, "error": f"{type(error).__name__}: {error}"}
        return observation, failed


async def _in_thread(call: Callable[[], _T], seconds: float | None) -> _T:
    """A thread a call: the loop's own pool is small, so calls would queue, and it waits for hung ones at the end."""
    outcome: concurrent.futures.Future[_T] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()  # so that it takes a result even if nobody waits any more

    def target() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=target, daemon=True).start()
    waiter = asyncio.wrap_future(outcome)
    try:
        await asyncio.wait([waiter], timeout=seconds)
        if not waiter.done():
            raise TimeoutError(f"the environment did not answer within {seconds} s")
        return waiter.result()
    finally:
        waiter.cancel()


async def _many(
    specs: Sequence[EpisodeSpec],
    make_env: MakeEnv,
    one: Callable[[Env, EpisodeSpec], Awaitable[_T]],
    record: Callable[[_T], Trajectory],
    concurrency: int,
    on_done: Callable[[_T], None] | None,
    batch: BatchEngine | None,
) -> list[_T]:
    if concurrency < 1:
        raise UsageError(f"concurrency must be at least 1, got {concurrency}")
    queue = iter(enumerate(specs))
    results: dict[int, _T] = {}

    async def worker() -> None:
        env: Env | None = None
        kind = ""
        try:
            for number, spec in queue:
                if env and spec.env != kind:
                    _discard(env)
                    env = None
                env, kind = env or _maker(make_env, spec.env)(), spec.env
                results[number] = await one(env, spec)
                if on_done:
                    on_done(results[number])
                await asyncio.sleep(0)  # a policy that never waits would let nobody hear of Ctrl-C until all is played
                if record(results[number]).stop_reason == StopReason.ENV_ERROR:
                    _discard(env)
                    env = None
        finally:
            if env:
                _discard(env)

    tasks = [asyncio.ensure_future(worker()) for _ in range(min(concurrency, len(specs)))]
    for task in tasks if batch else ():
        _announce(batch, task)  # type: ignore[arg-type]
    await _all(tasks)
    return [results[number] for number in range(len(specs))]


def _maker(make_env: MakeEnv, kind: str) -> Callable[[], Env]:
    if callable(make_env):
        return make_env
    if kind not in make_env:
        raise UsageError(f"an episode wants the environment {kind!r}; known here: {', '.join(make_env)}")
    return make_env[kind]


def _announce(batch: BatchEngine, task: asyncio.Task[None]) -> None:
    batch.worker_began()
    # The task's own end may never come: one that is cancelled before its first step does not run at all.
    task.add_done_callback(lambda _: batch.worker_ended())


async def _all(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Run to the end, or cancel all and raise the first failure as it is."""
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _discard(env: Env) -> None:
    try:
        env.close()
    except Exception:
        _log.warning("closing an environment failed", exc_info=True)

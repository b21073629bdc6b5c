"""Play episodes: `run_episode` is the loop of a single episode, `run_many` plays many concurrently."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from agentgym_envs.core import StopReason, TextEnv, text_env
from agentgym_envs.errors import EngineError, EnvError, UsageError
from agentgym_envs.grammar import tools_of
from agentgym_envs.hosting.connection import Request
from agentgym_envs.hosting.methods import Env
from agentgym_envs.image_observations import ImageObservations, text_of
from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import (
    Announced,
    BatchEngine,
    Engine,
    Generation,
    Sampling,
    current_episode,
    episode_number,
)
from agentgym_envs.rollout.policies import Answer, Policy, PolicyFactory, PolicyWithInfo
from agentgym_envs.rollout.tokens import ContextDraft, EpisodeBuilder, TokenBuilder, TokenTrajectory
from agentgym_envs.times import EpisodeTimer
from agentgym_envs.trajectory import Message, Trajectory, Turn, placeholder_task, prompt_messages
from agentgym_envs.vector.pool import MakeEnvs, RunnerPool
from agentgym_envs.vector.runner import EnvRunner
from agentgym_envs.wrappers import first_picture, make_trajectory

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an episode.

    - `max_turns`: turns of the episode.
    - `max_tokens`: tokens after the prompt, observations included.
    - `max_turn_tokens`: tokens of one answer.
    - `env_seconds`: seconds of one call of a blocking environment; after that the episode ends as `env_error`.
    - `max_context`: all tokens, prompt included; None for no limit.
    """

    max_turns: int = 30
    max_tokens: int = 8192
    max_turn_tokens: int = 512
    env_seconds: float | None = 300.0
    max_context: int | None = None


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """One episode to play. Equal task and seed give equal starts, as the groups of GRPO and RLOO need.

    `task=None` draws a task by the seed. `meta` goes into the trajectory, with the turn limit and the key of the first
    state. `env` names the environment if there are several. `max_turns` overrides the common turn limit.
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
        """`limits` with this episode's own turn limit, if it has one."""
        return limits if self.max_turns is None else replace(limits, max_turns=self.max_turns)


Act = Callable[[str], Awaitable[Answer | None]]
"""Maps an observation to an answer, or to None if the token budget is used up."""


class StepRunner(Protocol):
    """The part of `EnvRunner` that an episode needs."""

    @property
    def last_env(self) -> Env:
        """The environment of the last call."""

    @property
    def error(self) -> Exception | None:
        """The last failure of the environment."""

    async def run(self, request: Request, seconds: float | None = None) -> Any:
        """Carry out a reset or a step within a time limit."""

    def failed(self, request: Request, error: Exception) -> Any:
        """The result of a request that failed with an infrastructure error."""


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

    An answer has at most `limits.max_turn_tokens` and at most `sampling.max_tokens` tokens. A failure of the
    environment ends the episode as `env_error`; errors of the engine and of the caller are raised. `env` is not closed.
    """
    with closing(EnvRunner.wrapping(env)) as runner:
        return await play_on(runner, engine, codec, spec, limits=limits, sampling=sampling)


async def play_on(
    runner: StepRunner,
    engine: Engine,
    codec: ChatCodec,
    spec: EpisodeSpec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
) -> TokenTrajectory:
    """Like `play`, on a runner: for callers that have their own `RunnerPool`."""
    limits, env = spec.within(limits), text_env(runner.last_env)
    check_text_only(env)
    instructions, codec = env.instructions, codec.with_tools(tools_of(env.grammar))
    player = TokenPlayer(instructions, engine, codec, limits, sampling or Sampling(limits.max_turn_tokens))
    trajectory = await run_episode(runner, player.act, spec, limits, player.reward)
    return player.finish(trajectory)


async def play_text(env: Env, policy: Policy | PolicyWithInfo, spec: EpisodeSpec, *, limits: Limits) -> Trajectory:
    """Play one episode with a text policy. `env` is not closed."""
    with closing(EnvRunner.wrapping(env)) as runner:
        return await _play_text(runner, policy, spec, limits)


async def play_many(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | RunnerPool,
    engine: Engine,
    codec: ChatCodec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
    concurrency: int = 256,
    on_done: Callable[[TokenTrajectory], None] | None = None,
) -> list[TokenTrajectory]:
    """Play many episodes with a token engine, `concurrency` at a time. Results are in the order of `specs`.

    Environments are reused; a failed one is replaced. At most `concurrency` exist, or twice that number with several
    kinds, since idle environments are kept for a while. All are closed at the end, unless `envs` is a `RunnerPool`,
    which its owner closes.
    """

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> TokenTrajectory:
        return await play_on(runner, engine, codec, spec, limits=limits, sampling=sampling)

    batch = engine if isinstance(engine, BatchEngine) else None
    return await run_many(specs, envs, one, concurrency, on_done, batch)


async def play_many_text(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | RunnerPool,
    make_policy: PolicyFactory,
    *,
    limits: Limits,
    concurrency: int = 64,
    on_done: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play many episodes with text policies, like `play_many`."""

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> Trajectory:
        return await _play_text(runner, make_policy(), spec, limits)

    return await run_many(specs, envs, one, concurrency, on_done, None)


def run_sync(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine from synchronous code, also while an event loop is running (as in a notebook)."""
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


async def _play_text(
    runner: EnvRunner, policy: Policy | PolicyWithInfo, spec: EpisodeSpec, limits: Limits
) -> Trajectory:
    messages = list[Message]()

    async def act(observation: str) -> Answer:
        env = text_env(runner.last_env)
        if messages:
            messages.append({"role": "user", "content": observation})
        else:
            messages.extend(prompt_messages(env.instructions, observation))
        messages[-1] = with_image(messages[-1], env)
        written = await policy.act(env, messages)
        answer = written if isinstance(written, Answer) else Answer(written)
        messages.append({"role": "assistant", "content": answer.text})
        return answer

    return await run_episode(runner, act, spec, spec.within(limits))


def with_image(message: Message, env: TextEnv) -> Message:
    """The message with the image of the last observation as `image` (bytes), if there is one."""
    image = env.image if isinstance(env, ImageObservations) else None
    return message if image is None else {**message, "image": image}  # type: ignore[dict-item]


def check_text_only(env: TextEnv) -> None:
    """Raise UsageError for an environment with images in its observations, which engines and agents do not read."""
    if isinstance(env, ImageObservations):
        name = env.spec.id if env.spec else type(env).__name__
        raise UsageError(
            f"the observations of {name} have an image, and this model reads only text; play it with --policy "
            "openai:MODEL and without --agent (ChatPolicy), or choose the environment without Pixels in its name"
        )


class TokenPlayer:
    """Collects the tokens of one episode while an engine plays it."""

    def __init__(self, instructions: str, engine: Engine, codec: ChatCodec, limits: Limits, sampling: Sampling) -> None:
        """`instructions` is the text of the system prompt."""
        self._engine, self._codec, self._limits, self._sampling = engine, codec, limits, sampling
        self._episode = EpisodeBuilder(codec, instructions)

    async def act(self, observation: str) -> Answer | None:
        """The engine's next answer, or None if the token budget is used up."""
        draft = self._episode.draft(observation)
        cap = min(self._limits.max_turn_tokens, self._room(draft))
        if cap < 1:
            return None
        turn = self._episode.begin_answer(draft)
        generation = await sample_answer(self._engine, self._codec, draft.builder, self._sampling, cap, turn)
        text = self._codec.decode(generation.ids)
        self._episode.end_answer(text)
        return Answer(text, {"finish": generation.finish, "tokens": len(generation.ids)})

    def reward(self, reward: float) -> None:
        """Add the reward of the last answer."""
        self._episode.add_reward(reward)

    def finish(self, trajectory: Trajectory) -> TokenTrajectory:
        """Build the record; without an answer it has only a prompt."""
        return self._episode.build(trajectory)

    def _room(self, draft: ContextDraft) -> int:
        """The number of tokens that an answer may have."""
        room, context = self._episode.room(draft, self._limits.max_tokens), self._limits.max_context
        return room if context is None else min(room, context - draft.size)


async def sample_answer(
    engine: Engine, codec: ChatCodec, builder: TokenBuilder, sampling: Sampling, cap: int, turn: int | None = None
) -> Generation:
    """Sample at most `cap` tokens and append them; see `TokenBuilder.add_answer` for `turn`.

    Raises EngineError for an empty answer.
    """
    stop_ids = sampling.stop_ids or tuple(sorted(codec.stop_ids))
    sampling = replace(sampling, max_tokens=min(sampling.max_tokens, cap), stop_ids=stop_ids)
    generation = await engine.generate(builder.prompt_ids + builder.ids, sampling)
    if not generation.ids:
        raise EngineError("the engine returned an empty answer; every answer needs at least its end token")
    builder.add_answer(generation, turn)
    return generation


async def run_episode(
    runner: StepRunner, act: Act, spec: EpisodeSpec, limits: Limits, on_reward: Callable[[float], None] | None = None
) -> Trajectory:
    """Play one episode: the loop that all play functions share. `on_reward` is called with the reward of each turn."""
    turns: list[Turn] = []
    timer = EpisodeTimer()
    observation, info, lost = await _reset(runner, spec, limits)
    timer.began()
    meta = {"max_turns": limits.max_turns, "state_key": info.get("state_key"), **first_picture(info), **spec.meta}
    while (stop := info["stop_reason"]) is None:
        if len(turns) >= limits.max_turns:
            stop = StopReason.TURN_LIMIT.value
            break
        timer.asked()
        try:
            answer = await act(observation)
        except EnvError as error:  # a policy may call the environment, as the oracle policy does
            observation, _, _, _, info = runner.failed(Request("step"), error)
            continue
        if answer is None:
            stop = StopReason.TOKEN_LIMIT.value
            break
        timer.answered()
        before = observation
        observation, reward, _, _, info = await _call(runner, Request("step", answer.text), limits)
        timer.stepped()
        turns.append(Turn(before, answer.text, float(reward), {**info, **answer.info}))
        if on_reward:
            on_reward(float(reward))
    fields = {"stop_reason": stop, "error": info.get("error"), "meta": meta, "times": timer.times, **lost}
    return make_trajectory(runner.last_env, tuple(turns), observation, info, **fields)


async def _reset(runner: StepRunner, spec: EpisodeSpec, limits: Limits) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Reset and return observation, info, and record fields for an episode that the environment did not begin.

    A failed reset is recorded as an episode if the environment had chosen the task, or if the error is an EnvError or a
    timeout. Any other error is raised: most likely the environment's arguments are wrong, and a retry would fail too.
    """
    earlier = runner.error
    observation, info = await _call(runner, Request("reset", **spec.reset_arguments), limits)
    if runner.error is earlier or _begun(runner.last_env):
        return observation, info, {}
    if runner.error is not None and not isinstance(runner.error, EnvError | TimeoutError):
        raise runner.error
    return observation, info, {"task": placeholder_task(spec.task), "seed": spec.seed}


def _begun(env: Env) -> bool:
    """True if a failed reset got as far as choosing the task."""
    base = text_env(env)
    status = base.status()
    return base.task is not None and status["turn"] == 0 and status["stop_reason"] is None


async def _call(runner: StepRunner, request: Request, limits: Limits) -> Any:
    result = await runner.run(request, limits.env_seconds)
    if isinstance(result, Exception):
        raise result
    observation, *rest = result
    return text_of(observation), *rest


async def run_many(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | RunnerPool,
    one: Callable[[EnvRunner, EpisodeSpec], Awaitable[_T]],
    concurrency: int,
    on_done: Callable[[_T], None] | None,
    batch: Announced | None,
) -> list[_T]:
    """Play every spec with `one`, `concurrency` at a time; see `play_many`. `batch` counts the running workers."""
    if concurrency < 1:
        raise UsageError(f"concurrency must be at least 1, got {concurrency}")
    pool = envs if isinstance(envs, RunnerPool) else RunnerPool(envs, concurrency)
    queue = iter(enumerate(specs))
    results: dict[int, _T] = {}

    async def worker() -> None:
        for number, spec in queue:
            episode_number.set(number)
            current_episode.set(f"{spec.task} {spec.seed}")
            async with pool.lease(spec.env) as runner:
                results[number] = await one(runner, spec)
            if on_done:
                on_done(results[number])
            await asyncio.sleep(0)  # else a policy that never waits would block Ctrl-C until the end

    tasks = [asyncio.ensure_future(worker()) for _ in range(min(concurrency, len(specs)))]
    for task in tasks if batch else ():
        _announce(batch, task)  # type: ignore[arg-type]
    try:
        await finish_all(tasks)
    finally:
        if pool is not envs:
            pool.close()
    return [results[number] for number in range(len(specs))]


def _announce(batch: Announced, task: asyncio.Task[None]) -> None:
    batch.worker_began()
    # A callback, not a `finally` in the task: a task that is cancelled before its first step never runs.
    task.add_done_callback(lambda _: batch.worker_ended())


async def finish_all(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for all tasks. If one fails, cancel all and raise its error unchanged."""
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

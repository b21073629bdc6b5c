"""Forks: sample other continuations of played episodes, from the state before a turn.

A fork is an episode whose beginning is recorded. `play_forks` plays it like any other: the recorded answers take the
place of the engine's, and the recorded steps that of the environment's, until the turn of the fork. The environment is
brought to the state before that turn: by a copy of the state where it can be copied, else by replaying the actions. So
every chat template and agent can fork, and the tokens before the fork are those of the played episode.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentgym_envs.core import Snapshot, text_env
from agentgym_envs.errors import EngineError, EnvError, UsageError
from agentgym_envs.hosting.connection import Request
from agentgym_envs.hosting.methods import Env
from agentgym_envs.rollout.agents.play import play_as_agent_on
from agentgym_envs.rollout.agents.styles import Agent
from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import BatchEngine, Engine, Generation, Sampling
from agentgym_envs.rollout.play import EpisodeSpec, Limits, play_on, run_many
from agentgym_envs.rollout.tokens import TokenTrajectory
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.vector.pool import MakeEnvs, RunnerPool
from agentgym_envs.vector.runner import EnvRunner, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork(EpisodeSpec):
    """A played episode up to a turn; the turns from `turn` on (from 1) are sampled again.

    `played` must have turn `turn`, and must be of one attempt. `snapshot` is the state before it, if it was copied.
    """

    played: TokenTrajectory
    turn: int
    snapshot: Snapshot | None = None

    @classmethod
    def of(cls, spec: EpisodeSpec, played: TokenTrajectory, turn: int) -> Fork:
        """The fork of an episode that was played to `spec`. Raises UsageError if it has no such turn."""
        turns = len(played.trajectory.turns)
        if not 1 <= turn <= turns:
            raise UsageError(f"a fork needs a turn of the episode, from 1 to {turns}, got {turn}")
        if played.trajectory.meta.get("attempts"):
            raise UsageError("an episode of several attempts cannot fork: earlier attempts are not played again")
        return cls(spec.task, spec.seed, spec.meta, spec.env, spec.max_turns, played=played, turn=turn)


async def play_forks(
    forks: Sequence[Fork],
    envs: MakeEnvs | RunnerPool,
    engine: Engine,
    codec: ChatCodec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
    agent: Agent | None = None,
    concurrency: int = 256,
    on_done: Callable[[TokenTrajectory], None] | None = None,
) -> list[TokenTrajectory]:
    """Sample one continuation per fork, `concurrency` at a time, like `play_many`.

    A result is a whole episode, recorded turns included. The limits are those of the whole episode too. If the
    environment fails, or is not in the recorded state after the replay, the episode ends as `env_error`.

    Args:
        forks: for several continuations from one state, pass it several times.
        envs: environments of the kind that played the episodes, or their pool.
        engine: samples the answers.
        codec: the codec that the episodes were played with.
        limits: the limits of an episode.
        sampling: parameters of sampling.
        agent: the agent that played the episodes, if one did.
        concurrency: number of continuations at a time.
        on_done: receives each finished episode.
    """
    pool = envs if isinstance(envs, RunnerPool) else RunnerPool(envs, concurrency)

    async def one(runner: EnvRunner, fork: EpisodeSpec) -> TokenTrajectory:
        assert isinstance(fork, Fork)
        forked, replaying = ForkedRunner(runner, fork), _RecordedEngine(engine, fork, codec)
        if agent is not None:
            return await play_as_agent_on(forked, agent, replaying, codec, fork, limits=limits, sampling=sampling)
        return await play_on(forked, replaying, codec, fork, limits=limits, sampling=sampling)

    try:
        forks = await _with_copies(forks, pool, limits, concurrency)
        batch = engine if isinstance(engine, BatchEngine) else None
        return await run_many(forks, pool, one, concurrency, on_done, batch)
    finally:
        if pool is not envs:
            pool.close()


class ForkedRunner:
    """Runs a fork on a runner: recorded steps first, then those of the environment."""

    def __init__(self, runner: EnvRunner, fork: Fork) -> None:
        self._runner, self._fork = runner, fork
        self._next = 1
        self._error: Exception | None = None

    @property
    def last_env(self) -> Env:
        """The environment."""
        return self._runner.last_env

    @property
    def error(self) -> Exception | None:
        """The last failure of the environment."""
        return self._error or self._runner.error

    def failed(self, request: Request, error: Exception) -> Result:
        """The result of a request that failed with an infrastructure error."""
        return self._runner.failed(request, error)

    async def run(self, request: Request, seconds: float | None = None) -> Result:
        """Reset to the state of the fork, return a recorded step, or take a step."""
        if request.method == "reset":
            return await self._reset(request, seconds)
        if self._next >= self._fork.turn:
            return await self._runner.run(request, seconds)
        turns, number = self._fork.played.trajectory.turns, self._next
        self._next += 1
        return turns[number].observation, turns[number - 1].reward, False, False, dict(turns[number - 1].info)

    async def _reset(self, request: Request, seconds: float | None) -> Result:
        begun = await self._runner.run(request, seconds)
        if isinstance(begun, Exception) or begun[1]["stop_reason"] is not None:
            return begun
        observation = await self._restore(begun[0], seconds)
        if observation == self._fork.played.trajectory.turns[self._fork.turn - 1].observation:
            return begun
        self._error = EnvError(f"the environment is not in the state before turn {self._fork.turn} after a replay")
        return self.failed(request, self._error)

    async def _restore(self, observation: str, seconds: float | None) -> str | None:
        """Bring the environment to the state of the fork; None if it ends or fails on the way."""
        if self._fork.snapshot is not None:
            return text_env(self.last_env).restore(self._fork.snapshot)
        for turn in self._fork.played.trajectory.turns[: self._fork.turn - 1]:
            result = await self._runner.run(Request("step", turn.action), seconds)
            if isinstance(result, Exception) or result[4]["stop_reason"] is not None:
                return None
            observation = result[0]
        return observation


class _RecordedEngine:
    """Returns the answers before the fork, then those of an engine."""

    def __init__(self, engine: Engine, fork: Fork, codec: ChatCodec) -> None:
        self._engine, self._fork = engine, fork
        self._answers = iter(recorded_answers(fork.played, fork.turn, codec))

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        """The next answer. Raises EngineError if a context differs from the recorded one."""
        recorded = next(self._answers, None)
        if recorded is None:
            return await self._engine.generate(prompt_ids, sampling)
        context, answer = recorded
        if list(prompt_ids) != context:
            raise EngineError(
                "the beginning of a fork has other tokens than the played episode; use the codec and agent that played "
                "it, and a chat template that does not depend on the time"
            )
        return answer


def recorded_answers(played: TokenTrajectory, turn: int, codec: ChatCodec) -> list[tuple[list[int], Generation]]:
    """The answers before a turn, each with the tokens that the policy read before it."""
    found = []
    for (begin, end), number in zip(played.turn_spans, played.turn_numbers, strict=True):
        if number >= turn:
            break
        start = max((start for start in played.context_starts if start < begin), default=None)
        context = played.prompt_ids + played.ids[:begin] if start is None else played.ids[start:begin]
        ids = played.ids[begin:end]
        logprobs = None if played.logprobs is None else played.logprobs[begin:end]
        found.append((context, Generation(ids, "stop" if ids[-1] in codec.stop_ids else "length", logprobs)))
    return found


async def _with_copies(forks: Sequence[Fork], pool: RunnerPool, limits: Limits, concurrency: int) -> Sequence[Fork]:
    """The forks with copies of their states, where the environment copies its state: one replay per episode."""
    by_episode = defaultdict[int, list[Fork]](list)
    for fork in forks:
        by_episode[id(fork.played)].append(fork)

    async def walk(runner: EnvRunner, fork: EpisodeSpec) -> dict[int, Snapshot]:
        assert isinstance(fork, Fork)
        if not text_env(runner.last_env).copies_state:
            return {}
        turns = {other.turn for other in by_episode[id(fork.played)]}
        return await _walk(runner, fork, turns, limits.env_seconds)

    longest = [max(own, key=lambda fork: fork.turn) for own in by_episode.values()]
    walked = await run_many(longest, pool, walk, concurrency, None, None)
    copies = dict(zip(by_episode, walked, strict=True))
    return [replace(fork, snapshot=copies[id(fork.played)].get(fork.turn)) for fork in forks]


async def _walk(runner: EnvRunner, fork: Fork, turns: set[int], seconds: float | None) -> dict[int, Snapshot]:
    """Copies of the states before some turns, up to that of the fork; after a failure there are none."""
    result: Any = await runner.run(Request("reset", **fork.reset_arguments), seconds)
    found = dict[int, Snapshot]()
    for number, turn in enumerate(fork.played.trajectory.turns[: fork.turn], 1):
        if isinstance(result, Exception) or result[-1]["stop_reason"] is not None:
            break
        if number in turns:
            found[number] = text_env(runner.last_env).snapshot()
        if number < fork.turn:
            result = await runner.run(Request("step", turn.action), seconds)
    return found


def return_from(trajectory: Trajectory, turn: int, gamma: float = 1.0) -> float:
    """The discounted sum of the rewards from a turn on (from 1)."""
    total = 0.0
    for played in reversed(trajectory.turns[turn - 1 :]):
        total = played.reward + gamma * total
    return total

"""`--policy`: from what was typed to something that plays episodes."""

from __future__ import annotations

import os
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from agentgym_envs.cli import plugins
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import UsageError
from agentgym_envs.trajectory import Message, Trajectory, read_trajectories

if TYPE_CHECKING:
    from agentgym_envs.rollout import EpisodeSpec, Limits, Policy
    from agentgym_envs.rollout.policies import PolicyFactory

OnDone = Callable[[Trajectory], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Episodes of one environment under the same limits."""

    env_id: str
    make_env: Callable[[], gym.Env[str, str]]
    specs: Sequence[EpisodeSpec]
    limits: Limits


Play = Callable[[Batch, int, OnDone], Awaitable[Any]]
"""Plays a batch, so many episodes at a time, and tells of each as it ends."""


@dataclass(frozen=True, slots=True)
class Player:
    """A policy, ready to play; `close` frees its connections."""

    play: Play
    close: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Options of `eval` that concern the policy."""

    temperature: float
    max_turn_tokens: int
    base_url: str | None
    api_key_env: str
    chat_template: str | None
    seed: int


def make_player(policy: str, options: PolicyOptions) -> Player:
    """The player for `oracle`, `random`, `replay:FILE`, `openai:MODEL` or `NAME:MODEL` of a plug-in.

    Raises:
        UsageError: there is no such policy.
        MissingExtra: it needs a package that is not installed.
    """
    from agentgym_envs.rollout import OraclePolicy

    name, _, argument = policy.partition(":")
    if name in ("oracle", "random") and not argument:
        return _text_player(OraclePolicy if name == "oracle" else lambda: _SeededRandom(options.seed))
    if name == "replay" and argument:
        recorded = {(t.task.id, t.seed): t.actions for t in read_recorded(argument)}
        return _text_player(lambda: _Replay(recorded))
    if name == "openai" and argument:
        return _chat_player(argument, options)
    if not argument or name in ("oracle", "random"):
        raise UsageError(
            f"--policy {policy!r} is none; choose oracle, random, replay:FILE, openai:MODEL or hf:MODEL_PATH"
        )
    return _engine_player(name, argument, options)


def read_recorded(path: str) -> list[Trajectory]:
    """The episodes of a file that can be played again, the last record of each. Raises UsageError."""
    if not Path(path).is_file():
        raise UsageError(f"--policy replay:FILE needs a file of trajectories, and {path} is not a file")
    episodes = {(t.env_id, t.task.id, t.seed): t for t in read_trajectories(path) if t.turns}
    if not episodes:
        raise UsageError(f"there is no episode in {path} to play again")
    return list(episodes.values())


class _SeededRandom:
    """A random policy whose choices follow from task, seed of the episode and seed of the run, in any order of play."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._policy: Policy | None = None

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        if self._policy is None:
            from agentgym_envs.rollout import RandomPolicy

            episode = f"{self._seed} {env.episode_seed} {env.task.id if env.task else ''}"
            self._policy = RandomPolicy(zlib.crc32(episode.encode()))
        return await self._policy.act(env, messages)


class _Replay:
    """Plays what was recorded for the task and seed at hand."""

    def __init__(self, recorded: Mapping[tuple[str, int], list[str]]) -> None:
        self._recorded = recorded
        self._policy: Policy | None = None

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        if self._policy is None:
            from agentgym_envs.rollout import ReplayPolicy

            assert env.task is not None
            self._policy = ReplayPolicy(self._recorded[env.task.id, env.episode_seed])
        return await self._policy.act(env, messages)


def _text_player(factory: PolicyFactory, close: Callable[[], Awaitable[None]] | None = None) -> Player:
    from agentgym_envs.rollout import play_many_text

    async def play(batch: Batch, concurrency: int, on_done: OnDone) -> None:
        await play_many_text(
            batch.specs, batch.make_env, factory, limits=batch.limits, concurrency=concurrency, on_done=on_done
        )

    return Player(play, close or _nothing)


def _chat_player(model: str, options: PolicyOptions) -> Player:
    from agentgym_envs.rollout import ChatPolicy

    if options.base_url is None:
        raise UsageError(
            "--policy openai:MODEL needs the address of the server: --base-url http://127.0.0.1:8000/v1, for example"
        )
    policy = ChatPolicy(
        model,
        options.base_url,
        api_key=os.environ.get(options.api_key_env),
        temperature=options.temperature,
        max_tokens=options.max_turn_tokens,
    )
    return _text_player(lambda: policy, policy.aclose)


def _engine_player(name: str, model: str, options: PolicyOptions) -> Player:
    from agentgym_envs.rollout import Sampling, play_many

    engine, codec = plugins.load(plugins.ENGINES, name)(model, chat_template=options.chat_template)
    sampling = Sampling(options.max_turn_tokens, options.temperature)

    async def play(batch: Batch, concurrency: int, on_done: OnDone) -> None:
        await play_many(
            batch.specs,
            batch.make_env,
            engine,
            codec,
            limits=batch.limits,
            sampling=sampling,
            concurrency=concurrency,
            on_done=lambda episode: on_done(episode.trajectory),
        )

    return Player(play, _nothing)


async def _nothing() -> None:
    """There is nothing to close."""

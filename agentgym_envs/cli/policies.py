"""`--policy`: from what was typed to something that plays episodes."""

from __future__ import annotations

import difflib
import os
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym

from agentgym_envs.cli import plugins
from agentgym_envs.cli.evaluating.own_policy import CHOICES, check_own, load_own
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import UsageError
from agentgym_envs.trajectory import Message, Trajectory, read_trajectories

if TYPE_CHECKING:
    from agentgym_envs.rollout import Agent, ChatCodec, EpisodeSpec, Limits, Policy, Sampling, TokenTrajectory
    from agentgym_envs.rollout.agents import Model
    from agentgym_envs.rollout.engines import Engine
    from agentgym_envs.rollout.policies import PolicyFactory

_NAMES = {
    "oracle": "oracle",
    "random": "random",
    "replay": "replay:FILE",
    "openai": "openai:MODEL",
    "hf": "hf:MODEL_PATH",
}
"""What may stand before the colon, and the whole of it."""


class Played(NamedTuple):
    """An episode as it ended, and its tokens if a token engine played it."""

    trajectory: Trajectory
    segments: Sequence[TokenTrajectory] = ()


OnDone = Callable[[Played], None]


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
    """A policy, ready to play; `close` frees its connections. `codec` reads its tokens, if it has any."""

    play: Play
    close: Callable[[], Awaitable[None]]
    codec: ChatCodec | None = None


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Options of `eval` that concern the policy. `logprobs` asks an engine for those of its tokens."""

    temperature: float
    max_turn_tokens: int
    base_url: str | None
    api_key_env: str
    chat_template: str | None
    chat_template_kwargs: dict[str, Any] | None
    seed: int
    logprobs: bool = False


def is_model(policy: str) -> bool:
    """Whether the policy is a model, which an agent can guide.

    Of the others, one of the user's own may hold a model, but nobody else can reach it.
    """
    name = policy.partition(":")[0]
    return name == "openai" or plugins.has_engine(name)


def has_tokens(policy: str) -> bool:
    """Whether the policy is a model in this process, whose tokens are known."""
    return is_model(policy) and not policy.startswith("openai")


def make_player(policy: str, options: PolicyOptions, agent: Agent | None = None) -> Player:
    """The player for `oracle`, `random`, `replay:FILE`, `openai:MODEL`, `NAME:MODEL` of a plug-in or `MODULE:CLASS`.

    `agent` guides a model; of the others it asks nothing.

    Raises:
        UsageError: there is no such policy.
        MissingExtra: it needs a package that is not installed.
    """
    from agentgym_envs.rollout import OraclePolicy

    if _is_own(policy):
        return _text_player(load_own(policy), plays_alone=True)
    check_policy(policy, options.base_url)
    name, _, argument = policy.partition(":")
    if name in ("oracle", "random"):
        return _text_player(OraclePolicy if name == "oracle" else lambda: _SeededRandom(options.seed))
    if name == "replay":
        recorded = {(t.task.id, t.seed): t.actions for t in read_recorded(argument)}
        return _text_player(lambda: _Replay(recorded))
    if name == "openai":
        return _chat_player(argument, options, agent)
    return _engine_player(name, argument, options, agent)


def check_policy(policy: str, base_url: str | None) -> str:
    """The policy as it was typed; no model is loaded and nothing opened, but one's own module is imported.

    Raises UsageError if there is no such policy, or its server has no address.
    """
    name, _, argument = policy.partition(":")
    near = difflib.get_close_matches(name.lower(), _NAMES, n=1)
    hint = f"did you mean {_NAMES[near[0]]}?" if near and _NAMES[near[0]] != policy else ""
    if _is_own(policy):
        _check_own(policy, hint)
    elif not _is_ours(name) or bool(argument) == (name in ("oracle", "random")):
        raise UsageError(
            f"{policy!r} is no policy; {hint}{' ' * bool(hint)}choose {CHOICES} or MODULE:CLASS of your own"
        )
    if name == "openai" and base_url is None:
        raise UsageError(
            "--policy openai:MODEL needs the address of the server: --base-url http://127.0.0.1:8000/v1, for example"
        )
    if name == "openai" and base_url is not None and not base_url.startswith(("http://", "https://")):
        raise UsageError(f"--base-url must begin with http:// or https://, and {base_url!r} does not")
    return policy


def _is_ours(name: str) -> bool:
    return name in _NAMES or plugins.has_engine(name)


def _is_own(policy: str) -> bool:
    """Whether it is written as a name in a module of the user's."""
    name, _, argument = policy.partition(":")
    return bool(name) and not _is_ours(name) and argument.isidentifier()


def _check_own(policy: str, hint: str) -> None:
    try:
        check_own(policy)
    except UsageError as error:
        if hint:
            error.add_note(hint)
        raise


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


def _text_player(
    factory: PolicyFactory, close: Callable[[], Awaitable[None]] | None = None, *, plays_alone: bool = False
) -> Player:
    """`plays_alone` says that of a team the policy can play one member only, so that each has one of its own."""
    from agentgym_envs.multiagent.joint import is_team
    from agentgym_envs.multiagent.play import play_many_teams_text
    from agentgym_envs.rollout import play_many_text

    async def play(batch: Batch, concurrency: int, on_done: OnDone) -> None:
        play_all = play_many_teams_text if plays_alone and is_team(batch.env_id) else play_many_text
        await play_all(
            batch.specs,
            batch.make_env,
            factory,
            limits=batch.limits,
            concurrency=concurrency,
            on_done=lambda trajectory: on_done(Played(trajectory)),
        )

    return Player(play, close or _nothing)


def _agent_player(agent: Agent, model: Model, close: Callable[[], Awaitable[None]], codec: ChatCodec | None) -> Player:
    from agentgym_envs.rollout import play_many_agents

    async def play(batch: Batch, concurrency: int, on_done: OnDone) -> None:
        await play_many_agents(
            batch.specs,
            batch.make_env,
            agent,
            model,
            limits=batch.limits,
            concurrency=concurrency,
            on_done=lambda episode: on_done(Played(episode.trajectory, episode.segments)),
        )

    return Player(play, close, codec)


def _chat_player(name: str, options: PolicyOptions, agent: Agent | None) -> Player:
    from agentgym_envs.rollout import ChatPolicy

    assert options.base_url is not None  # check_policy saw it
    key, temperature = os.environ.get(options.api_key_env), options.temperature
    if agent is not None:
        from agentgym_envs.rollout import ChatModel

        model = ChatModel(name, options.base_url, api_key=key, temperature=temperature)
        return _agent_player(agent, model, model.aclose, None)
    policy = ChatPolicy(
        name, options.base_url, api_key=key, temperature=temperature, max_tokens=options.max_turn_tokens
    )
    return _text_player(lambda: policy, policy.aclose, plays_alone=True)


def _engine_player(name: str, model: str, options: PolicyOptions, agent: Agent | None) -> Player:
    from agentgym_envs.rollout import Sampling

    extra: dict[str, Any] = {"logprobs": True} if options.logprobs else {}
    if options.chat_template_kwargs is not None:
        extra["chat_template_kwargs"] = options.chat_template_kwargs
    engine, codec = plugins.load(plugins.ENGINES, name)(model, chat_template=options.chat_template, **extra)
    sampling = Sampling(options.max_turn_tokens, options.temperature)
    if agent is not None:
        from agentgym_envs.rollout import TokenModel

        return _agent_player(agent, TokenModel(engine, codec, sampling), _nothing, codec)

    return Player(partial(_play_tokens, engine, codec, sampling), _nothing, codec)


async def _play_tokens(
    engine: Engine, codec: ChatCodec, sampling: Sampling, batch: Batch, concurrency: int, on_done: OnDone
) -> None:
    """Play a batch with a token engine; all members of a team with the same."""
    from agentgym_envs.multiagent.joint import is_team
    from agentgym_envs.multiagent.play import play_many_teams
    from agentgym_envs.rollout import play_many

    what = batch.specs, batch.make_env, engine, codec
    how: dict[str, Any] = {"limits": batch.limits, "sampling": sampling, "concurrency": concurrency}
    if is_team(batch.env_id):
        await play_many_teams(*what, **how, on_done=lambda e: on_done(Played(e.trajectory, list(e.per_agent.values()))))
    else:
        await play_many(*what, **how, on_done=lambda e: on_done(Played(e.trajectory, [e])))


async def _nothing() -> None:
    """There is nothing to close."""

"""`--policy`: parse the option and make a player of episodes."""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym

from agentgym_envs.cli import plugins
from agentgym_envs.cli.evaluating.model_server import ModelServer, server_url
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
    "hf": "hf:MODEL",
}
"""Kinds of policies by the word before the colon."""


class PlayedEpisode(NamedTuple):
    """A finished episode, and its tokens if a token engine played it."""

    trajectory: Trajectory
    segments: Sequence[TokenTrajectory] = ()


OnDone = Callable[[PlayedEpisode], None]


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """Episodes of one environment under the same limits."""

    env_id: str
    make_env: Callable[[], gym.Env[str, str]]
    specs: Sequence[EpisodeSpec]
    limits: Limits


Play = Callable[[EpisodeRequest, int, OnDone], Awaitable[Any]]
"""Plays a batch with up to N episodes at the same time and calls `OnDone` with each finished episode."""


@dataclass(frozen=True, slots=True)
class PolicyPlayer:
    """A policy that is ready to play; `close` frees its connections. `codec` decodes its tokens, if it has any."""

    play: Play
    close: Callable[[], Awaitable[None]]
    codec: ChatCodec | None = None


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Options of `eval` for the policy. With `logprobs`, an engine returns the log-probabilities of its tokens."""

    temperature: float
    max_turn_tokens: int
    server: ModelServer | None
    chat_template: str | None
    chat_template_kwargs: dict[str, Any] | None
    seed: int
    logprobs: bool = False
    max_images: int = 1


def is_model(policy: str) -> bool:
    """True if the policy is a model, which an agent can guide.

    A policy of the user may contain a model, but agents have no access to it.
    """
    name = policy.partition(":")[0]
    return name == "openai" or plugins.has_engine(name)


def has_tokens(policy: str) -> bool:
    """True if the policy is a model in this process, so that its tokens are known."""
    return is_model(policy) and not policy.startswith("openai")


def make_player(policy: str, options: PolicyOptions, agent: Agent | None = None) -> PolicyPlayer:
    """Make a player of a policy, written as in `--policy`; `NAME:MODEL` is an engine of a plug-in.

    `agent` guides a model; other policies ignore it.

    Raises:
        UsageError: there is no such policy.
        MissingExtra: it needs a package that is not installed.
    """
    from agentgym_envs.rollout import RandomPolicy

    if _is_own(policy):
        return _text_player(load_own(policy), plays_alone=True)
    check_policy(policy, None)
    name, _, argument = policy.partition(":")
    if name == "oracle":
        return _text_player(partial(oracle_policy, policy, options.seed))
    if name == "random":
        return _text_player(lambda: _SeededPolicy(RandomPolicy, options.seed))
    if name == "replay":
        recorded = {(t.task.id, t.seed): t.actions for t in read_recorded(argument)}
        return _text_player(lambda: _Replay(recorded))
    if name == "openai":
        return _chat_player(argument, options, agent)
    return _engine_player(name, argument, options, agent)


def oracle_policy(policy: str, seed: int) -> Policy:
    """Make `oracle` or `oracle:DEFECTS`. The defects depend on `seed` and the episode. Raises UsageError."""
    from agentgym_envs.rollout import Defects, OraclePolicy

    _, _, defects = policy.partition(":")
    if not defects:
        return OraclePolicy()
    rates = asdict(Defects.parse(defects))
    return _SeededPolicy(lambda episode_seed: OraclePolicy(**rates, seed=episode_seed), seed)


def check_policy(policy: str, base_url: str | None) -> str:
    """Check a policy and return it unchanged. Loads no model and opens no connection; imports a module of the user.

    Raises:
        UsageError: there is no such policy, or the address of its server is invalid.
    """
    name = policy.partition(":")[0]
    near = difflib.get_close_matches(name.lower(), _NAMES, n=1)
    hint = f"did you mean {_NAMES[near[0]]}?" if near and _NAMES[near[0]] != policy else ""
    if _is_own(policy):
        _check_own(policy, hint)
    elif not _is_ours(name) or _lacks_or_has_argument(policy):
        raise UsageError(
            f"there is no policy {policy!r}; {hint}{' ' * bool(hint)}choose {CHOICES} or MODULE:CLASS of your own"
        )
    if name == "oracle":
        oracle_policy(policy, 0)
    if name == "openai":
        server_url(base_url)
    return policy


def _lacks_or_has_argument(policy: str) -> bool:
    """True if the part after the colon is missing, or given to a policy that takes none."""
    name, colon, argument = policy.partition(":")
    if name == "oracle":
        return bool(colon) and not argument
    return bool(argument) == (name == "random")


def _is_ours(name: str) -> bool:
    return name in _NAMES or plugins.has_engine(name)


def _is_own(policy: str) -> bool:
    """True if the policy has the form MODULE:NAME of a user's policy."""
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
    """Read the episodes of a file that have turns; of repeated episodes the last record. Raises UsageError."""
    if not Path(path).is_file():
        raise UsageError(f"--policy replay:FILE needs a file of trajectories, and {path} is not a file")
    episodes = {(t.env_id, t.task.id, t.seed): t for t in read_trajectories(path) if t.turns}
    if not episodes:
        raise UsageError(f"{path} contains no episode to replay")
    return list(episodes.values())


class _SeededPolicy:
    """A policy whose choices depend only on the task, the seed of the episode and the seed of the run."""

    def __init__(self, make_policy: Callable[[int], Policy], seed: int) -> None:
        """`make_policy` takes the seed of one episode's choices."""
        self._make_policy, self._seed = make_policy, seed
        self._policy: Policy | None = None

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        if self._policy is None:
            episode = f"{self._seed} {env.episode_seed} {env.task.id if env.task else ''}"
            self._policy = self._make_policy(zlib.crc32(episode.encode()))
        return await self._policy.act(env, messages)


class _Replay:
    """Replays the recorded actions of the current task and seed."""

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
) -> PolicyPlayer:
    """Make a player of text policies. With `plays_alone`, each member of a team gets its own policy."""
    from agentgym_envs.multiagent.joint import is_team
    from agentgym_envs.multiagent.play import play_many_teams_text
    from agentgym_envs.rollout import play_many_text

    async def play(batch: EpisodeRequest, concurrency: int, on_done: OnDone) -> None:
        play_all = play_many_teams_text if plays_alone and is_team(batch.env_id) else play_many_text
        await play_all(
            batch.specs,
            batch.make_env,
            factory,
            limits=batch.limits,
            concurrency=concurrency,
            on_done=lambda trajectory: on_done(PlayedEpisode(trajectory)),
        )

    return PolicyPlayer(play, close or _no_close)


def _agent_player(
    agent: Agent, model: Model, close: Callable[[], Awaitable[None]], codec: ChatCodec | None
) -> PolicyPlayer:
    from agentgym_envs.rollout import play_many_agents

    async def play(batch: EpisodeRequest, concurrency: int, on_done: OnDone) -> None:
        await play_many_agents(
            batch.specs,
            batch.make_env,
            agent,
            model,
            limits=batch.limits,
            concurrency=concurrency,
            on_done=lambda episode: on_done(PlayedEpisode(episode.trajectory, episode.segments)),
        )

    return PolicyPlayer(play, close, codec)


def _chat_player(name: str, options: PolicyOptions, agent: Agent | None) -> PolicyPlayer:
    from agentgym_envs.rollout import ChatPolicy

    server = options.server
    if server is None:
        raise UsageError("openai:MODEL needs the server of the model in its options")
    shared = {
        "api_key": server.key,
        "temperature": options.temperature,
        "pace": server.pace,
        "cassette": server.cassette,
    }
    if agent is not None:
        from agentgym_envs.rollout import ChatModel

        model = ChatModel(name, server.url, **shared)
        return _agent_player(agent, model, model.aclose, None)
    policy = ChatPolicy(name, server.url, max_tokens=options.max_turn_tokens, max_images=options.max_images, **shared)
    return _text_player(lambda: policy, policy.aclose, plays_alone=True)


def _engine_player(name: str, model: str, options: PolicyOptions, agent: Agent | None) -> PolicyPlayer:
    from agentgym_envs.rollout import Sampling

    extra: dict[str, Any] = {"logprobs": True} if options.logprobs else {}
    if options.chat_template_kwargs is not None:
        extra["chat_template_kwargs"] = options.chat_template_kwargs
    engine, codec = plugins.load(plugins.ENGINES, name)(model, chat_template=options.chat_template, **extra)
    sampling = Sampling(options.max_turn_tokens, options.temperature)
    if agent is not None:
        from agentgym_envs.rollout import TokenModel

        return _agent_player(agent, TokenModel(engine, codec, sampling), _no_close, codec)

    return PolicyPlayer(partial(_play_tokens, engine, codec, sampling), _no_close, codec)


async def _play_tokens(
    engine: Engine, codec: ChatCodec, sampling: Sampling, batch: EpisodeRequest, concurrency: int, on_done: OnDone
) -> None:
    """Play a batch with a token engine, which all members of a team share."""
    from agentgym_envs.multiagent.joint import is_team
    from agentgym_envs.multiagent.play import play_many_teams
    from agentgym_envs.rollout import play_many

    arguments = batch.specs, batch.make_env, engine, codec
    options: dict[str, Any] = {"limits": batch.limits, "sampling": sampling, "concurrency": concurrency}
    if is_team(batch.env_id):
        await play_many_teams(
            *arguments, **options, on_done=lambda e: on_done(PlayedEpisode(e.trajectory, list(e.per_agent.values())))
        )
    else:
        await play_many(*arguments, **options, on_done=lambda e: on_done(PlayedEpisode(e.trajectory, [e])))


async def _no_close() -> None:
    """Do nothing: the player has no connections."""

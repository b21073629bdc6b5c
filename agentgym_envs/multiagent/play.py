"""Playing teams: each agent has a conversation of its own, and those that act next answer at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from agentgym_envs.core import text_env
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.multiagent.agent_trajectories import split, team_prompts
from agentgym_envs.multiagent.joint_format import read_texts, write_action
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, Policy, Sampling, TokenTrajectory
from agentgym_envs.rollout.engines import BatchEngine, Engine
from agentgym_envs.rollout.play import TokenPlayer, finish_all, run_episode, run_many
from agentgym_envs.rollout.policies import Answer, PolicyFactory, PolicyWithInfo
from agentgym_envs.trajectory import Message, Trajectory, prompt_messages
from agentgym_envs.vector.runner import Env, EnvPool, EnvRunner, MakeEnvs

_T = TypeVar("_T")
Engines = Engine | Mapping[str, Engine]
"""One engine for all agents, or for each agent one: separate policies."""


@dataclass(frozen=True, slots=True)
class TeamEpisode:
    """An episode of a team: the joint record, and for each agent, in order, its own view with its tokens."""

    trajectory: Trajectory
    streams: Mapping[str, TokenTrajectory]


async def play_team(
    env: Env,
    engines: Engines,
    codec: ChatCodec,
    spec: EpisodeSpec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
) -> TeamEpisode:
    """Play one episode of a team in its joint form with token engines. `env` is not closed.

    Each agent's conversation has its own budget of `limits.max_tokens`. One that has used it up writes nothing more;
    the others play on, and when nobody has any left the episode ends as `token_limit`. `limits.max_turns` counts joint
    turns. Failures are as in `rollout.play`. Raises UsageError if `env` is no team, or an agent has no engine.
    """
    crowd = _Crowd(engines)
    with closing(EnvRunner.over(env)) as runner, crowd.of_one():
        return await _play(runner, engines, codec, spec, limits, sampling, crowd)


async def play_many_teams(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | EnvPool,
    engines: Engines,
    codec: ChatCodec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
    concurrency: int = 256,
    on_done: Callable[[TeamEpisode], None] | None = None,
) -> list[TeamEpisode]:
    """Play many episodes of teams, `concurrency` at a time, as `rollout.play_many` does; in the order of `specs`."""
    crowd = _Crowd(engines)

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> TeamEpisode:
        return await _play(runner, engines, codec, spec, limits, sampling, crowd)

    return await run_many(specs, envs, one, concurrency, on_done, crowd)


async def play_many_teams_text(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | EnvPool,
    policies: PolicyFactory | Mapping[str, PolicyFactory],
    *,
    limits: Limits,
    concurrency: int = 64,
    on_done: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play many episodes of teams whose agents each have a policy that reads and writes text; the joint records.

    Every agent has a policy object and a conversation of its own. A policy that plays for the whole team, as the
    oracle does, is played by `rollout.play_many_text`.
    """

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> Trajectory:
        prompts = _prompts(runner)
        chosen = {agent: _of(policies, agent, "policy") for agent in prompts}
        members = {agent: _TextMember(runner, text, chosen[agent]()) for agent, text in prompts.items()}

        async def act(observation: str) -> Answer:
            seen = _seen(observation)
            return _joint(seen, await _together({agent: members[agent].act(text) for agent, text in seen.items()}))

        return await run_episode(runner, act, spec, spec.within(limits))

    return await run_many(specs, envs, one, concurrency, on_done, None)


async def _play(
    runner: EnvRunner,
    engines: Engines,
    codec: ChatCodec,
    spec: EpisodeSpec,
    limits: Limits,
    sampling: Sampling | None,
    crowd: _Crowd,
) -> TeamEpisode:
    limits = spec.within(limits)
    sampling = sampling or Sampling(limits.max_turn_tokens)
    prompts = _prompts(runner)
    chosen = {agent: _of(engines, agent, "engine") for agent in prompts}
    members = {agent: TokenPlayer(prompts[agent], chosen[agent], codec, limits, sampling) for agent in prompts}
    team = _Team(members, _Presence(crowd, chosen))
    trajectory = await run_episode(runner, team.act, spec, limits)
    return TeamEpisode(trajectory, team.streams(trajectory))


class _Team:
    """Keeps the tokens of every agent of one episode."""

    def __init__(self, members: Mapping[str, TokenPlayer], presence: _Presence) -> None:
        self._members, self._presence = members, presence
        self._out: set[str] = set()

    async def act(self, observation: str) -> Answer | None:
        """What those that act next write, or None if no agent has tokens left."""
        seen = _seen(observation)
        asks = {agent: self._members[agent].act(text) for agent, text in seen.items() if agent not in self._out}
        self._presence.ask(asks)
        answers = await _together(asks, self._presence.answered)
        self._out |= {agent for agent, answer in answers.items() if answer is None}
        return None if len(self._out) == len(self._members) else _joint(seen, answers)

    def streams(self, trajectory: Trajectory) -> dict[str, TokenTrajectory]:
        """Each agent's view with its tokens, the reward of a turn on the last token of its answer."""
        views = split(trajectory)
        return {agent: _rewarded(player.finish(views[agent])) for agent, player in self._members.items()}


class _TextMember:
    """One agent's conversation with a policy."""

    def __init__(self, runner: EnvRunner, instructions: str, policy: Policy | PolicyWithInfo) -> None:
        self._runner, self._instructions, self._policy = runner, instructions, policy
        self._messages: list[Message] = []

    async def act(self, observation: str) -> Answer:
        """The policy's next answer."""
        if self._messages:
            self._messages.append({"role": "user", "content": observation})
        else:
            self._messages = prompt_messages(self._instructions, observation)
        said = await self._policy.act(text_env(self._runner.last_env), self._messages)
        answer = said if isinstance(said, Answer) else Answer(said)
        self._messages.append({"role": "assistant", "content": answer.text})
        return answer


class _Crowd:
    """The teams that play, as workers of the engines that answer in batches.

    Such an engine waits until every worker asks. A team that plays is one worker of each, since it may ask any of
    them next. While some of its agents wait for a batch, it is as many workers of an engine as wait for that one: it
    will not ask another before they are answered. So whenever all teams wait, every batch that is begun is full, and
    none waits for ever.
    """

    def __init__(self, engines: Engines) -> None:
        every = engines.values() if isinstance(engines, Mapping) else (engines,)
        self.batches = {id(engine): engine for engine in every if isinstance(engine, BatchEngine)}

    def worker_began(self) -> None:
        """See `Announced`: one more team plays at a time."""
        for engine in self.batches.values():
            engine.worker_began()

    def worker_ended(self) -> None:
        """See `Announced`."""
        for engine in self.batches.values():
            engine.worker_ended()

    @contextmanager
    def of_one(self) -> Iterator[None]:
        """While a single team plays."""
        self.worker_began()
        try:
            yield
        finally:
            self.worker_ended()


class _Presence:
    """How one team counts among the workers of the engines that answer in batches; see `_Crowd`."""

    def __init__(self, crowd: _Crowd, engines: Mapping[str, Engine]) -> None:
        self._batches = crowd.batches
        self._engines = {agent: id(engine) for agent, engine in engines.items() if id(engine) in crowd.batches}
        self._waiting = Counter[int]()

    def ask(self, agents: Iterable[str]) -> None:
        """These agents are about to ask their engines."""
        self._waiting = waiting = Counter(self._engines[agent] for agent in agents if agent in self._engines)
        for name, engine in self._batches.items() if waiting else ():
            for _ in range(waiting[name] - 1):
                engine.worker_began()
        for name, engine in self._batches.items() if waiting else ():
            if not waiting[name]:
                engine.worker_ended()

    def answered(self, agent: str) -> None:
        """An agent waits no more: it was answered, had no tokens left to ask, or was cancelled."""
        if (mine := self._engines.get(agent)) is None:
            return
        self._waiting[mine] -= 1
        if self._waiting.total():
            self._batches[mine].worker_ended()
            return
        for name, engine in self._batches.items():
            if name != mine:
                engine.worker_began()


async def _together(
    asks: Mapping[str, Coroutine[Any, Any, _T]], on_end: Callable[[str], None] = lambda agent: None
) -> dict[str, _T]:
    """Have all agents answer at the same time; `on_end` hears of each that has, or cannot any more."""
    tasks = {agent: asyncio.ensure_future(ask) for agent, ask in asks.items()}
    for agent, task in tasks.items():
        # Also one that is cancelled before its first step ends its task, but nothing inside would run.
        task.add_done_callback(partial(_told, on_end, agent))
    await finish_all(list(tasks.values()))
    return {agent: task.result() for agent, task in tasks.items()}


def _told(on_end: Callable[[str], None], agent: str, task: asyncio.Task[Any]) -> None:
    on_end(agent)


def _prompts(runner: EnvRunner) -> dict[str, str]:
    """The system texts of the team's agents. Raises UsageError for what cannot be played as a team."""
    env = text_env(runner.last_env)
    prompts = team_prompts(env.instructions)
    if env.grammar.name != "bare":
        raise UsageError(
            f"the joint action of a team is played bare, not in the grammar {env.grammar.name!r}, which what an agent "
            "writes could break: leave `grammar` out. `agent_grammar` says how the agents write"
        )
    return prompts


def _of(choice: _T | Mapping[str, _T], agent: str, what: str) -> _T:
    """What an agent has of one for all or one for each."""
    if not isinstance(choice, Mapping):
        return choice
    if agent not in choice:
        raise UsageError(f"the agent {agent!r} has no {what}; give one for all, or one for each of the team")
    found: _T = choice[agent]
    return found


def _seen(observation: str) -> dict[str, str]:
    seen = read_texts(observation)
    if seen is None:
        raise EnvError(f"the environment of a team gave what is no joint observation: {observation!r:.200}")
    return seen


def _joint(seen: Iterable[str], answers: Mapping[str, Answer | None]) -> Answer:
    """The joint action, null for those that have no tokens left, with the notes of each answer and of all."""
    given = {agent: answer for agent in seen if (answer := answers.get(agent)) is not None}
    action = write_action({agent: given[agent].text if agent in given else None for agent in seen})
    notes = {agent: dict(answer.notes) for agent, answer in given.items()}
    if not all(notes.values()):  # a policy that notes nothing
        return Answer(action, {"answers": notes})
    counts = [note.get("tokens") for note in notes.values()]
    cut = any(note.get("finish") == "length" for note in notes.values())
    tokens = sum(filter(None, counts)) if None not in counts else None
    return Answer(action, {"finish": "length" if cut else "stop", "tokens": tokens, "answers": notes})


def _rewarded(stream: TokenTrajectory) -> TokenTrajectory:
    """The stream with the rewards of its turns on the last tokens of its answers."""
    view = stream.trajectory
    rewards = [0.0] * len(stream.ids)
    for (_, end), turn in zip(stream.turn_spans, view.turns, strict=True):
        rewards[end - 1] = turn.reward
    unknown = not view.final_observation  # what the agent would have read next
    return replace(stream, rewards=rewards, bootstrap_ids=[] if unknown else stream.bootstrap_ids)

"""Play teams: each agent has its own conversation, and the agents that act next answer concurrently."""

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
from agentgym_envs.grammar import tools_of
from agentgym_envs.hosting.methods import Env
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories, team_prompts
from agentgym_envs.multiagent.joint_format import read_texts, write_action
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, Policy, Sampling, TokenTrajectory
from agentgym_envs.rollout.engines import BatchEngine, Engine
from agentgym_envs.rollout.play import TokenPlayer, finish_all, run_episode, run_many
from agentgym_envs.rollout.policies import Answer, PolicyFactory, PolicyWithInfo
from agentgym_envs.trajectory import Message, Trajectory, prompt_messages
from agentgym_envs.vector.pool import MakeEnvs, RunnerPool
from agentgym_envs.vector.runner import EnvRunner

_T = TypeVar("_T")
Engines = Engine | Mapping[str, Engine]
"""One engine for all agents, or one per agent for separate policies."""


@dataclass(frozen=True, slots=True)
class TeamEpisode:
    """An episode of a team: the joint record, and the tokens of each agent's own trajectory, in agent order."""

    trajectory: Trajectory
    per_agent: Mapping[str, TokenTrajectory]


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

    Each agent's conversation has its own budget of `limits.max_tokens`. An agent that has used it up writes nothing
    more while the others play on; when all budgets are used up, the episode ends as `token_limit`. `limits.max_turns`
    counts joint turns. Failures are handled as in `rollout.play`. Raises UsageError if `env` is not a team, or if an
    agent has no engine.
    """
    workers = _TeamWorkers(engines)
    with closing(EnvRunner.wrapping(env)) as runner, workers.of_one():
        return await _play(runner, engines, codec, spec, limits, sampling, workers)


async def play_many_teams(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | RunnerPool,
    engines: Engines,
    codec: ChatCodec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
    concurrency: int = 256,
    on_done: Callable[[TeamEpisode], None] | None = None,
) -> list[TeamEpisode]:
    """Play many episodes of teams like `rollout.play_many`. Results are in the order of `specs`."""
    workers = _TeamWorkers(engines)

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> TeamEpisode:
        return await _play(runner, engines, codec, spec, limits, sampling, workers)

    return await run_many(specs, envs, one, concurrency, on_done, workers)


async def play_many_teams_text(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | RunnerPool,
    policies: PolicyFactory | Mapping[str, PolicyFactory],
    *,
    limits: Limits,
    concurrency: int = 64,
    on_done: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play many episodes of teams with text policies, and return the joint records.

    Every agent has its own policy object and conversation. Use `rollout.play_many_text` for a policy that plays for the
    whole team, such as the oracle.
    """

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> Trajectory:
        prompts = _prompts(runner)
        chosen = {agent: _of(policies, agent, "policy") for agent in prompts}
        members = {agent: _TextMember(runner, text, chosen[agent]()) for agent, text in prompts.items()}

        async def act(observation: str) -> Answer:
            seen = _observations(observation)
            answers = await _gather({agent: members[agent].act(text) for agent, text in seen.items()})
            return _joint(seen, answers)

        return await run_episode(runner, act, spec, spec.within(limits))

    return await run_many(specs, envs, one, concurrency, on_done, None)


async def _play(
    runner: EnvRunner,
    engines: Engines,
    codec: ChatCodec,
    spec: EpisodeSpec,
    limits: Limits,
    sampling: Sampling | None,
    workers: _TeamWorkers,
) -> TeamEpisode:
    limits = spec.within(limits)
    sampling = sampling or Sampling(limits.max_turn_tokens)
    prompts = _prompts(runner)
    chosen = {agent: _of(engines, agent, "engine") for agent in prompts}
    members = {agent: TokenPlayer(prompts[agent], chosen[agent], codec, limits, sampling) for agent in prompts}
    team = _Team(members, _TeamCount(workers, chosen))
    trajectory = await run_episode(runner, team.act, spec, limits)
    return TeamEpisode(trajectory, team.per_agent(trajectory))


class _Team:
    """Collects the tokens of every agent of one episode."""

    def __init__(self, members: Mapping[str, TokenPlayer], count: _TeamCount) -> None:
        self._members, self._count = members, count
        self._out: set[str] = set()

    async def act(self, observation: str) -> Answer | None:
        """The joint answer of the agents that act next, or None if no agent has tokens left."""
        seen = _observations(observation)
        asks = {agent: self._members[agent].act(text) for agent, text in seen.items() if agent not in self._out}
        self._count.ask(asks)
        answers = await _gather(asks, self._count.answered)
        self._out |= {agent for agent, answer in answers.items() if answer is None}
        return None if len(self._out) == len(self._members) else _joint(seen, answers)

    def per_agent(self, trajectory: Trajectory) -> dict[str, TokenTrajectory]:
        """Each agent's trajectory with its tokens, the reward of a turn on the last token of its answer."""
        own = per_agent_trajectories(trajectory)
        return {agent: _with_rewards(player.finish(own[agent])) for agent, player in self._members.items()}


class _TextMember:
    """One agent's conversation with a policy."""

    def __init__(self, runner: EnvRunner, instructions: str, policy: Policy | PolicyWithInfo) -> None:
        self._runner, self._instructions, self._policy = runner, instructions, policy
        self._messages: list[Message] = []

    async def act(self, observation: str) -> Answer:
        """Return the policy's next answer."""
        if self._messages:
            self._messages.append({"role": "user", "content": observation})
        else:
            self._messages = prompt_messages(self._instructions, observation)
        written = await self._policy.act(text_env(self._runner.last_env), self._messages)
        answer = written if isinstance(written, Answer) else Answer(written)
        self._messages.append({"role": "assistant", "content": answer.text})
        return answer


class _TeamWorkers:
    """Counts the playing teams as workers of the engines that answer in batches.

    Such an engine waits until every worker asks. A playing team counts as one worker of each engine, since it may ask
    any of them next. While some of its agents wait, it counts once per waiting agent for that agent's engine and not at
    all for the others, which it will not ask before. So when all teams wait, every started batch is full, and none
    waits forever.
    """

    def __init__(self, engines: Engines) -> None:
        every = engines.values() if isinstance(engines, Mapping) else (engines,)
        self.batches = {id(engine): engine for engine in every if isinstance(engine, BatchEngine)}

    def worker_began(self) -> None:
        """Count one more team."""
        for engine in self.batches.values():
            engine.worker_began()

    def worker_ended(self) -> None:
        """Count one team less."""
        for engine in self.batches.values():
            engine.worker_ended()

    @contextmanager
    def of_one(self) -> Iterator[None]:
        """Count one team within the context."""
        self.worker_began()
        try:
            yield
        finally:
            self.worker_ended()


class _TeamCount:
    """The workers that one team counts as; see `_TeamWorkers`."""

    def __init__(self, workers: _TeamWorkers, engines: Mapping[str, Engine]) -> None:
        self._batches = workers.batches
        self._engines = {agent: id(engine) for agent, engine in engines.items() if id(engine) in workers.batches}
        self._waiting = Counter[int]()

    def ask(self, agents: Iterable[str]) -> None:
        """Record that these agents are about to ask their engines."""
        self._waiting = waiting = Counter(self._engines[agent] for agent in agents if agent in self._engines)
        for name, engine in self._batches.items() if waiting else ():
            for _ in range(waiting[name] - 1):
                engine.worker_began()
        for name, engine in self._batches.items() if waiting else ():
            if not waiting[name]:
                engine.worker_ended()

    def answered(self, agent: str) -> None:
        """Record that an agent no longer waits: it got an answer, had no tokens left, or was cancelled."""
        if (mine := self._engines.get(agent)) is None:
            return
        self._waiting[mine] -= 1
        if self._waiting.total():
            self._batches[mine].worker_ended()
            return
        for name, engine in self._batches.items():
            if name != mine:
                engine.worker_began()


async def _gather(
    asks: Mapping[str, Coroutine[Any, Any, _T]], on_end: Callable[[str], None] = lambda agent: None
) -> dict[str, _T]:
    """Wait for the answers of all agents. `on_end` is called with each agent whose task is over."""
    tasks = {agent: asyncio.ensure_future(ask) for agent, ask in asks.items()}
    for agent, task in tasks.items():
        # A callback, because a task that is cancelled before its first step ends without running its body.
        task.add_done_callback(partial(_call_with_agent, on_end, agent))
    await finish_all(list(tasks.values()))
    return {agent: task.result() for agent, task in tasks.items()}


def _call_with_agent(on_end: Callable[[str], None], agent: str, task: asyncio.Task[Any]) -> None:
    on_end(agent)


def _prompts(runner: EnvRunner) -> dict[str, str]:
    """The system prompts of the team's agents. Raises UsageError if the environment cannot be played as a team."""
    env = text_env(runner.last_env)
    prompts = team_prompts(env.instructions)
    if env.grammar.name != "bare":
        raise UsageError(
            f"the joint action of a team must be in the grammar 'bare', not {env.grammar.name!r}, which an agent's "
            "text could break: leave `grammar` out. `agent_grammar` is the grammar of the agents"
        )
    if tools_of(getattr(env, "agent_grammar", env.grammar)):
        raise UsageError("a team cannot call native tools: choose another agent_grammar, such as tool_call")
    return prompts


def _of(choice: _T | Mapping[str, _T], agent: str, what: str) -> _T:
    """The agent's choice: the common one, or its own."""
    if not isinstance(choice, Mapping):
        return choice
    if agent not in choice:
        raise UsageError(f"the agent {agent!r} has no {what}; give one for all, or one for each of the team")
    found: _T = choice[agent]
    return found


def _observations(observation: str) -> dict[str, str]:
    seen = read_texts(observation)
    if seen is None:
        raise EnvError(f"the environment of a team returned a malformed joint observation: {observation!r:.200}")
    return seen


def _joint(seen: Iterable[str], answers: Mapping[str, Answer | None]) -> Answer:
    """The joint action, null for agents without tokens left, with the info of each answer and of all."""
    given = {agent: answer for agent in seen if (answer := answers.get(agent)) is not None}
    action = write_action({agent: given[agent].text if agent in given else None for agent in seen})
    infos = {agent: dict(answer.info) for agent, answer in given.items()}
    if not all(infos.values()):  # a policy without answer info
        return Answer(action, {"answers": infos})
    counts = [info.get("tokens") for info in infos.values()]
    truncated = any(info.get("finish") == "length" for info in infos.values())
    tokens = sum(filter(None, counts)) if None not in counts else None
    return Answer(action, {"finish": "length" if truncated else "stop", "tokens": tokens, "answers": infos})


def _with_rewards(tokens: TokenTrajectory) -> TokenTrajectory:
    """The same tokens with the reward of each turn on the last token of its answer."""
    trajectory = tokens.trajectory
    rewards = [0.0] * len(tokens.ids)
    for (_, end), turn in zip(tokens.turn_spans, trajectory.turns, strict=True):
        rewards[end - 1] = turn.reward
    unknown = not trajectory.final_observation  # the observation that the agent would have read next
    return replace(tokens, rewards=rewards, bootstrap_ids=[] if unknown else tokens.bootstrap_ids)

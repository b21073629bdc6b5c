"""Playing episodes with agents: the loop of `rollout.play`, with an agent between environment and model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from agentgym_envs.core import text_env
from agentgym_envs.hosting.methods import Env
from agentgym_envs.rollout.agents.context import NOTE_TOKENS, note_room, shortened, shown
from agentgym_envs.rollout.agents.conversation import Conversation, user
from agentgym_envs.rollout.agents.models import Dialogue, Model, Usage
from agentgym_envs.rollout.agents.styles import (
    AFTER_PLAN,
    ASK_LESSON,
    ASK_PLAN,
    Agent,
    revised_plan,
    system_message,
)
from agentgym_envs.rollout.play import EpisodeSpec, Limits, run_episode, run_many
from agentgym_envs.rollout.policies import Answer
from agentgym_envs.rollout.tokens import TokenTrajectory
from agentgym_envs.trajectory import Trajectory
from agentgym_envs.vector.pool import EnvPool, MakeEnvs
from agentgym_envs.vector.runner import EnvRunner

_ENDS = {
    "failure": "it ended short of the goal",
    "turn_limit": "the limit of turns was reached",
    "token_limit": "there was no room for further answers",
}


@dataclass(frozen=True, slots=True)
class Try:
    """A try that failed, and what the model noted down after it."""

    trajectory: Trajectory
    lesson: str


@dataclass(frozen=True, slots=True)
class AgentEpisode:
    """What an agent played.

    `trajectory` is the last try, whose `meta` tells of the agent and of the earlier `tries`. `segments` are the
    contexts that the model answered in, as token ids, try by try in the order in which they were begun: each token that
    was sampled is masked in one of them, once. Each holds the trajectory of its own try. Without token ids, or without
    an answer, there are none.
    """

    trajectory: Trajectory
    segments: tuple[TokenTrajectory, ...]
    tries: tuple[Try, ...]


async def play_agent(env: Env, agent: Agent, model: Model, spec: EpisodeSpec, *, limits: Limits) -> AgentEpisode:
    """Play one episode with an agent. `env` is not closed.

    The machine's failures end the episode as `env_error`, and no try follows; failures of the model and of the caller
    are raised.
    """
    with closing(EnvRunner.over(env)) as runner:
        return await _play(runner, agent, model, spec, limits)


async def play_many_agents(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | EnvPool,
    agent: Agent,
    model: Model,
    *,
    limits: Limits,
    concurrency: int = 64,
    on_done: Callable[[AgentEpisode], None] | None = None,
) -> list[AgentEpisode]:
    """Play many episodes with an agent, as `rollout.play_many` does without one; results in the order of `specs`."""

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> AgentEpisode:
        return await _play(runner, agent, model, spec, limits)

    return await run_many(specs, envs, one, concurrency, on_done, model.batch)


async def _play(runner: EnvRunner, agent: Agent, model: Model, spec: EpisodeSpec, limits: Limits) -> AgentEpisode:
    limits = spec.within(limits)
    tries: list[Try] = []
    segments: list[TokenTrajectory] = []
    usage = Usage()
    while True:
        one = _Try(runner, agent, model.open(limits), [earlier.lesson for earlier in tries])
        trajectory = one.record(await run_episode(runner, one.act, spec, limits, one.dialogue.mark))
        again = len(tries) + 1 < agent.tries and trajectory.usable and not trajectory.success
        lesson = await one.lesson(trajectory) if again else ""
        usage.add(one.dialogue.usage)
        if not lesson:  # without one, another try would be nothing but another sample
            break
        segments += one.dialogue.segments(trajectory)
        tries.append(Try(trajectory, lesson))
    trajectory = replace(trajectory, meta={**trajectory.meta, **_meta(agent, one, usage, tries)})
    return AgentEpisode(trajectory, (*segments, *one.dialogue.segments(trajectory)), tuple(tries))


class _Try:
    """An agent in one try of an episode."""

    def __init__(self, runner: EnvRunner, agent: Agent, dialogue: Dialogue, lessons: Sequence[str]) -> None:
        self.dialogue = dialogue
        self._runner, self._agent, self._lessons = runner, agent, lessons
        self.conversation: Conversation | None = None

    async def act(self, observation: str) -> Answer | None:
        """The agent's next action, or None if the token budget leaves no room for one."""
        if self.conversation is None:
            self.conversation = await self._begin(observation)
        else:
            self.conversation.observations.append(observation)
        said = self.conversation
        reply = await self.dialogue.reply(await shown(self._agent.context, said, self.dialogue))
        if reply is None:
            return None
        if self._agent.plans and (plan := revised_plan(reply.text, text_env(self._runner.last_env).grammar)):
            said.plan, said.planned = plan, len(said.answers)
        said.answers.append(reply.text)
        return reply.answer

    def record(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory with the system message that was sent."""
        return replace(trajectory, instructions=self.conversation.system) if self.conversation else trajectory

    async def lesson(self, trajectory: Trajectory) -> str:
        """What the model notes down after a try that failed; "" if the budget has no room for it."""
        said = self.conversation
        assert said is not None
        if len(said.observations) == len(said.answers):
            said.observations.append(trajectory.final_observation)
        end = _ENDS.get(trajectory.stop_reason, "it was cut")
        ask = f"This try is over: {end}. Its score was {trajectory.score:.2f} of 1.\n{ASK_LESSON}"
        first = shortened(said, self.dialogue, note_room(self.dialogue.limits), ask)
        reply = await self.dialogue.reply(said.messages(first, ask=ask), NOTE_TOKENS)
        return reply.text.strip() if reply else ""

    async def _begin(self, observation: str) -> Conversation:
        env = text_env(self._runner.last_env)
        own = self._agent.instructions(env.grammar)
        said = Conversation(system_message(env.instructions, own, self._lessons), [observation])
        if self._agent.plans:
            await self._plan(said)
        return said

    async def _plan(self, said: Conversation) -> None:
        """Ask for the plan, of at most half of the budget. One that leaves no room to act is not kept."""
        messages = said.messages(ask=ASK_PLAN)
        reply = await self.dialogue.reply(messages, max(1, self.dialogue.limits.max_tokens // 2))
        if reply is None:
            return
        said.opening = [messages[-1], {"role": "assistant", "content": reply.text}, user(AFTER_PLAN)]
        if self.dialogue.room(said.messages()) < 1:
            said.opening = []
        else:
            said.plan = reply.text.strip()


def _meta(agent: Agent, last: _Try, usage: Usage, tries: Sequence[Try]) -> dict[str, Any]:
    said = last.conversation
    told = {
        "name": agent.name,
        "context": str(agent.context),
        "tries": len(tries) + 1,
        "plan": said.plan if said and agent.plans else None,
        "summaries": said.summaries if said else 0,
        **asdict(usage),
    }
    return {"agent": told, **({"tries": [_try_row(one) for one in tries]} if tries else {})}


def _try_row(one: Try) -> dict[str, Any]:
    played = one.trajectory
    return {
        "turns": [asdict(turn) for turn in played.turns],
        "final_observation": played.final_observation,
        "score": played.score,
        "success": played.success,
        "stop_reason": played.stop_reason,
        "lesson": one.lesson,
    }

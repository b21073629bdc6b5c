"""Play episodes with agents: the loop of `rollout.play` with an agent between environment and model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from agentgym_envs.core import text_env
from agentgym_envs.grammar import tools_of
from agentgym_envs.hosting.methods import Env
from agentgym_envs.rollout.agents.context import SUMMARY_TOKENS, first_turn_that_fits, summary_room, visible_messages
from agentgym_envs.rollout.agents.conversation import Conversation, user
from agentgym_envs.rollout.agents.models import Dialogue, Model, TokenModel, Usage
from agentgym_envs.rollout.agents.styles import (
    AFTER_PLAN,
    ASK_LESSON,
    ASK_PLAN,
    Agent,
    revised_plan,
    system_message,
)
from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import Engine, Sampling
from agentgym_envs.rollout.play import EpisodeSpec, Limits, StepRunner, check_text_only, run_episode, run_many
from agentgym_envs.rollout.policies import Answer
from agentgym_envs.rollout.tokens import TokenTrajectory, join_contexts
from agentgym_envs.trajectory import Trajectory, prompt_messages
from agentgym_envs.vector.pool import MakeEnvs, RunnerPool
from agentgym_envs.vector.runner import EnvRunner

_ENDS = {
    "failure": "it ended short of the goal",
    "turn_limit": "the limit of turns was reached",
    "token_limit": "there was no room for further answers",
}


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed attempt and the lesson that the model wrote after it."""

    trajectory: Trajectory
    lesson: str


@dataclass(frozen=True, slots=True)
class AgentEpisode:
    """An episode that an agent played.

    `trajectory` is the last attempt; its `meta` describes the agent and has the earlier `attempts`. `segments` are the
    contexts that the model answered in, as token ids, in the order in which they began. Each sampled token has mask 1
    in exactly one segment. Each segment holds the trajectory of its own attempt; the numbers of turns continue from one
    attempt to the next. Without token ids or without an answer there are no segments.
    """

    trajectory: Trajectory
    segments: tuple[TokenTrajectory, ...]
    failed_attempts: tuple[FailedAttempt, ...]

    def tokens(self, codec: ChatCodec) -> TokenTrajectory:
        """The episode as one trajectory to train on, with its contexts end to end.

        The rewards are those of the last attempt, whose score is the episode's. Without an answer it has only a prompt.
        """
        if not self.segments:
            prompt = prompt_messages(self.trajectory.instructions, self.trajectory.final_observation)
            codec = codec.with_tools(self.trajectory.meta.get("tools", ()))
            return TokenTrajectory(self.trajectory, codec.encode_prompt(prompt), [], [], [], ())
        return join_contexts([self._as_scored(segment) for segment in self.segments])

    def _as_scored(self, segment: TokenTrajectory) -> TokenTrajectory:
        last = segment.trajectory is self.trajectory
        return segment if last else replace(segment, rewards=[0.0] * len(segment.rewards))


async def play_agent(env: Env, agent: Agent, model: Model, spec: EpisodeSpec, *, limits: Limits) -> AgentEpisode:
    """Play one episode with an agent. `env` is not closed.

    A failure of the environment ends the episode as `env_error`, and no attempt follows. Errors of the model and of the
    caller are raised.
    """
    with closing(EnvRunner.wrapping(env)) as runner:
        return await _play(runner, agent, model, spec, limits)


async def play_many_agents(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | RunnerPool,
    agent: Agent,
    model: Model,
    *,
    limits: Limits,
    concurrency: int = 64,
    on_done: Callable[[AgentEpisode], None] | None = None,
) -> list[AgentEpisode]:
    """Play many episodes with an agent, like `rollout.play_many`. Results are in the order of `specs`."""

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> AgentEpisode:
        return await _play(runner, agent, model, spec, limits)

    return await run_many(specs, envs, one, concurrency, on_done, model.batch)


async def play_many_as_agent(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | RunnerPool,
    agent: Agent,
    engine: Engine,
    codec: ChatCodec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
    concurrency: int = 256,
    on_done: Callable[[TokenTrajectory], None] | None = None,
) -> list[TokenTrajectory]:
    """Play many episodes with an agent on a token engine, like `rollout.play_many`, for training.

    An episode is one trajectory, with its contexts end to end; see `AgentEpisode.tokens`.
    """
    model = TokenModel(engine, codec, sampling)

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> TokenTrajectory:
        return (await _play(runner, agent, model, spec, limits)).tokens(codec)

    return await run_many(specs, envs, one, concurrency, on_done, model.batch)


async def play_as_agent_on(
    runner: StepRunner,
    agent: Agent,
    engine: Engine,
    codec: ChatCodec,
    spec: EpisodeSpec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
) -> TokenTrajectory:
    """Play one episode of `play_many_as_agent` on a runner: for callers that have their own `RunnerPool`."""
    return (await _play(runner, agent, TokenModel(engine, codec, sampling), spec, limits)).tokens(codec)


async def _play(runner: StepRunner, agent: Agent, model: Model, spec: EpisodeSpec, limits: Limits) -> AgentEpisode:
    check_text_only(text_env(runner.last_env))
    limits = spec.within(limits)
    failed: list[FailedAttempt] = []
    segments: list[TokenTrajectory] = []
    usage = Usage()
    while True:
        dialogue = model.open(limits)
        dialogue.tools = tools_of(text_env(runner.last_env).grammar)
        attempt = _Attempt(runner, agent, dialogue, [earlier.lesson for earlier in failed])
        played = await run_episode(runner, attempt.act, spec, limits, attempt.dialogue.add_reward)
        trajectory = attempt.record(played)
        again = len(failed) + 1 < agent.attempts and trajectory.usable and not trajectory.success
        lesson = await attempt.lesson(trajectory) if again else ""
        usage.add(attempt.dialogue.usage)
        if not lesson:  # without a lesson, another attempt would only be another sample
            break
        segments += _segments(attempt, trajectory, failed)
        failed.append(FailedAttempt(trajectory, lesson))
    trajectory = replace(trajectory, meta={**trajectory.meta, **_meta(agent, attempt, usage, failed)})
    return AgentEpisode(trajectory, (*segments, *_segments(attempt, trajectory, failed)), tuple(failed))


def _segments(attempt: _Attempt, trajectory: Trajectory, earlier: Sequence[FailedAttempt]) -> list[TokenTrajectory]:
    """The segments of an attempt, with turns counted from those of the earlier attempts."""
    segments = attempt.dialogue.segments(trajectory)
    played = sum(len(before.trajectory.turns) for before in earlier)
    if not played:
        return segments
    return [replace(own, answer_turns=tuple(played + number for number in own.turn_numbers)) for own in segments]


class _Attempt:
    """An agent in one attempt at an episode."""

    def __init__(self, runner: StepRunner, agent: Agent, dialogue: Dialogue, lessons: Sequence[str]) -> None:
        self.dialogue = dialogue
        self._runner, self._agent, self._lessons = runner, agent, lessons
        self.conversation: Conversation | None = None

    async def act(self, observation: str) -> Answer | None:
        """The agent's next action, or None if the token budget is used up."""
        if self.conversation is None:
            self.conversation = await self._begin(observation)
        else:
            self.conversation.observations.append(observation)
        conversation = self.conversation
        messages = await visible_messages(self._agent.context, conversation, self.dialogue)
        reply = await self.dialogue.reply(messages)
        if reply is None:
            return None
        if self._agent.plans and (plan := revised_plan(reply.text, text_env(self._runner.last_env).grammar)):
            conversation.plan, conversation.planned_at = plan, len(conversation.answers)
        conversation.answers.append(reply.text)
        return reply.answer

    def record(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory with the system message that the model got."""
        return replace(trajectory, instructions=self.conversation.system) if self.conversation else trajectory

    async def lesson(self, trajectory: Trajectory) -> str:
        """The model's lesson from a failed attempt; "" if the budget is too small for one."""
        conversation = self.conversation
        assert conversation is not None
        if len(conversation.observations) == len(conversation.answers):
            conversation.observations.append(trajectory.final_observation)
        end = _ENDS.get(trajectory.stop_reason, "it was cut")
        ask = f"This try is over: {end}. Its score was {trajectory.score:.2f} of 1.\n{ASK_LESSON}"
        first = first_turn_that_fits(conversation, self.dialogue, summary_room(self.dialogue.limits), ask)
        reply = await self.dialogue.reply(conversation.messages(first, ask=ask), SUMMARY_TOKENS)
        return reply.text.strip() if reply else ""

    async def _begin(self, observation: str) -> Conversation:
        env = text_env(self._runner.last_env)
        own = self._agent.instructions(env.grammar)
        conversation = Conversation(system_message(env.instructions, own, self._lessons), [observation])
        if self._agent.plans:
            await self._plan(conversation)
        return conversation

    async def _plan(self, conversation: Conversation) -> None:
        """Ask for the plan, of at most half the budget. Drop a plan that leaves no room to act."""
        messages = conversation.messages(ask=ASK_PLAN)
        reply = await self.dialogue.reply(messages, max(1, self.dialogue.limits.max_tokens // 2))
        if reply is None:
            return
        conversation.opening = [messages[-1], {"role": "assistant", "content": reply.text}, user(AFTER_PLAN)]
        if self.dialogue.room(conversation.messages()) < 1:
            conversation.opening = []
        else:
            conversation.plan = reply.text.strip()


def _meta(agent: Agent, last: _Attempt, usage: Usage, failed: Sequence[FailedAttempt]) -> dict[str, Any]:
    conversation = last.conversation
    described = {
        "name": agent.name,
        "context": str(agent.context),
        "attempts": len(failed) + 1,
        "plan": conversation.plan if conversation and agent.plans else None,
        "summaries": conversation.summaries if conversation else 0,
        **asdict(usage),
    }
    return {"agent": described, **({"attempts": [_attempt_row(attempt) for attempt in failed]} if failed else {})}


def _attempt_row(attempt: FailedAttempt) -> dict[str, Any]:
    played = attempt.trajectory
    return {
        "turns": [asdict(turn) for turn in played.turns],
        "final_observation": played.final_observation,
        "score": played.score,
        "success": played.success,
        "stop_reason": played.stop_reason,
        "lesson": attempt.lesson,
    }

"""The env: plays an episode with verifiers' agents, by the loop that the whole suite uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from agentgym_envs.core import StopReason, TextEnv, text_env
from agentgym_envs.hosting.methods import Env
from agentgym_envs.hosting.session_host import close_quietly, make_env
from agentgym_envs.rollout import EpisodeSpec, Limits
from agentgym_envs.rollout.play import play_text
from agentgym_envs.trajectory import Message, Trajectory
from agentgym_verifiers.harness import close_client
from agentgym_verifiers.taskset import AgentGymTask, is_team

_UNLIMITED = Limits(max_turns=10**9)
"""verifiers limits the turns and tokens of each agent."""


class EpisodeEnvConfig(vf.EnvConfig):
    """The roles and options of the env (`--env.*`)."""

    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig(), max_turns=30)
    """Plays the environment; in a team every agent that `partner` does not play."""
    partner: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig(), max_turns=30)
    """A fixed model that plays the agents in `partner_plays`. It is not trained."""
    partner_plays: list[str] = Field(default_factory=list)
    """Names of agents of a team, such as planner or crafter_1."""


class EpisodeEnv(vf.Env[EpisodeEnvConfig]):
    """One episode of any environment, or of a team with a conversation (a trace) per agent."""

    async def setup(self, agents: vf.Agents) -> None:
        """Mark the partner as not trained."""
        agents.partner.trainable = False

    async def run(self, task: AgentGymTask, agents: vf.Agents) -> None:
        """Play the episode and record its score. Raises EnvError if the environment failed."""
        data = task.data
        env = make_env(data.env_id, data.env_args)
        try:
            play = self._play_team if is_team(text_env(env)) else self._play_one
            await play(env, task, agents, EpisodeSpec(data.task_id, data.seed))
        finally:
            close_quietly(env)

    async def stop(self) -> None:
        """Close the connections to the model."""
        await close_client()

    async def _play_one(self, env: Env, task: AgentGymTask, agents: vf.Agents, spec: EpisodeSpec) -> None:
        async with agents.player.interaction(task) as interaction:
            policy = InteractionPolicy(interaction)
            try:
                trajectory = await play_text(env, policy, spec, limits=_UNLIMITED)
            except AgentStopped:
                _record(interaction.trace, text_env(env).status(), policy.rewards)
                return
            _check(trajectory)
            interaction.trace.stop(trajectory.stop_reason)
            _record(interaction.trace, _outcome(trajectory), [turn.reward for turn in trajectory.turns])

    async def _play_team(self, env: Env, task: AgentGymTask, agents: vf.Agents, spec: EpisodeSpec) -> None:
        from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories, team_prompts
        from agentgym_envs.multiagent.play import play_many_teams_text

        async with AsyncExitStack() as stack:
            open_ones = dict[str, vf.Interaction]()
            for name, prompt in team_prompts(text_env(env).instructions).items():
                agent = agents.partner if name in self.config.partner_plays else agents.player
                own = AgentGymTask(task.data.model_copy(update={"system_prompt": prompt or None}), task.config)
                open_ones[name] = await stack.enter_async_context(agent.interaction(own))
                open_ones[name].trace.info["agent"] = name
            policies = {name: partial(InteractionPolicy, each) for name, each in open_ones.items()}
            try:
                (trajectory,) = await play_many_teams_text([spec], lambda: env, policies, limits=_UNLIMITED)
            except AgentStopped:
                for interaction in open_ones.values():
                    _record(interaction.trace, text_env(env).status(), [])
                return
            _check(trajectory)
            for name, record in per_agent_trajectories(trajectory).items():
                open_ones[name].trace.stop(record.stop_reason)
                _record(open_ones[name].trace, _outcome(record), [turn.reward for turn in record.turns])


class AgentStopped(Exception):
    """verifiers ended the run of an agent, for example at its turn limit."""


class InteractionPolicy:
    """An agent of verifiers as a policy. `rewards` are those before the current turn."""

    def __init__(self, interaction: vf.Interaction) -> None:
        """Play by the turns of `interaction`."""
        self._interaction = interaction
        self._score = 0.0
        self.rewards: list[float] = []

    async def act(self, env: TextEnv, messages: Sequence[Message]) -> str:
        """Send the new observation, and return the reply. Raises AgentStopped."""
        status = env.status()
        if status["turn"]:
            self.rewards.append(status["score"] - self._score)
        self._score = status["score"]
        segment = await self._interaction.turn(messages[-1]["content"])
        if segment.terminated:
            raise AgentStopped
        return str(segment.last_reply)


def _check(trajectory: Trajectory) -> None:
    if trajectory.stop_reason == StopReason.ENV_ERROR:
        raise vf.EnvError(trajectory.error or "the environment failed")


def _outcome(trajectory: Trajectory) -> dict[str, Any]:
    names = ("score", "success", "stop_reason", "seed")
    return {name: getattr(trajectory, name) for name in names} | {"turn": len(trajectory.turns)}


def _record(trace: vf.Trace, outcome: Mapping[str, Any], rewards: Sequence[float]) -> None:
    """Record the outcome while the interaction is open, so that verifiers' log line has it."""
    trace.record_reward("score", outcome["score"])
    trace.record_metric("success", float(outcome["success"]))
    trace.info["agentgym"] = {
        "stop_reason": outcome["stop_reason"] or trace.stop_condition,
        "turns": outcome["turn"],
        "seed": outcome["seed"],
        "rewards": list(rewards),
    }

"""`GymAgentLoop`: plays one episode of the suite as verl's agent loop, with one `AgentLoopOutput` per context."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from agentgym_envs.rollout import TokenTrajectory
from agentgym_envs.trajectory import Trajectory
from agentgym_verl.engine import VerlEngine
from agentgym_verl.episode_runner import runner_of
from agentgym_verl.rows import TaskRow


class EpisodeOutput(AgentLoopOutput):  # type: ignore[misc]
    """An output with rewards on any token; verl's own has one reward, on the last token."""

    token_rewards: list[float] = Field(default_factory=list)
    """As long as `response_ids`."""

    def as_dict(self) -> dict[str, Any]:
        """The columns for verl's trainer, with `rm_scores` (T,) from `token_rewards`."""
        columns: dict[str, Any] = super().as_dict()
        columns.pop("token_rewards", None)
        columns["rm_scores"] = torch.tensor(self.token_rewards, dtype=torch.float32)
        return columns


class GymAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """Plays one episode of a Gymnasium text environment, token ids in and token ids out.

    The tokens, their mask and the limits are those of `agentgym_envs.rollout`, so both trainers train on the same data.
    A response ends with an answer, never with an observation. Every reward is on the last token of an answer, since
    verl's estimators ignore rewards on tokens outside the mask.
    """

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> list[EpisodeOutput]:
        """Play the episode of a dataset row.

        Returns one output per context, or none if every attempt failed; verl then compares the surviving episodes of
        the group. `global_steps`, which counts from 1, decides the max turns.

        Raises:
            UsageError: the row or a setting is invalid.
            EngineError: verl's server failed.
            EnvError: every episode of the group failed.
        """
        runner = runner_of(self.config, self.tokenizer)
        row, engine, episode = await runner.play(self.server_manager, sampling_params, kwargs)
        if episode is None:
            return []
        per_turn = runner.settings.reward == "per_turn" and not row.evaluation
        return _outputs(row, engine, episode, per_turn)


def _outputs(row: TaskRow, engine: VerlEngine, episode: TokenTrajectory, per_turn: bool) -> list[EpisodeOutput]:
    """One output per context; every sampled token of the episode is in exactly one of them.

    Each has the numbers of the whole episode. With `per_turn=False` the last one has all rewards: verl's validation
    reads no other.
    """
    contexts = episode.contexts()
    rewards = [context.rewards if per_turn else [0.0] * len(context.ids) for context in contexts]
    if not per_turn:
        rewards[-1][-1] = sum(turn.reward for turn in episode.trajectory.turns)
    return [_output(row, engine, context, own) for context, own in zip(contexts, rewards, strict=True)]


def _output(row: TaskRow, engine: VerlEngine, context: TokenTrajectory, token_rewards: list[float]) -> EpisodeOutput:
    rewards = [turn.reward for turn in context.trajectory.turns]
    seconds = {"generate_sequences": engine.seconds, "tool_calls": engine.other_seconds}
    preempted = {} if engine.preempted is None else {"num_preempted": engine.preempted}
    metrics = _validation_metrics(row, context.trajectory)
    return EpisodeOutput(
        prompt_ids=context.prompt_ids,
        response_ids=context.ids,
        response_mask=context.assistant_mask,
        response_logprobs=context.logprobs,
        routed_experts=engine.routed_experts,
        reward_score=sum(rewards),
        num_turns=2 * len(rewards),  # verl counts the messages of both sides
        metrics=AgentLoopMetrics(**seconds, **preempted),
        extra_fields={**engine.fields, "turn_scores": rewards, "reward_extra_info": metrics},
        token_rewards=token_rewards,
    )


def _validation_metrics(row: TaskRow, trajectory: Trajectory) -> dict[str, float]:
    """The numbers that verl averages in validation, per environment and per group of tasks."""
    turns = trajectory.turns
    count = max(len(turns), 1)  # an agent may have planned without acting
    success, score = float(bool(trajectory.success)), float(trajectory.score)
    return {
        "success": success,
        "score": score,
        "turns": float(len(turns)),
        "max_turns": float(trajectory.meta["max_turns"]),
        "invalid_actions": sum(turn.info.get("invalid_action") is not None for turn in turns) / count,
        "truncated_answers": sum(turn.info.get("finish") == "length" for turn in turns) / count,
        f"success/{row.group}": success,
        f"score/{row.group}": score,
    }

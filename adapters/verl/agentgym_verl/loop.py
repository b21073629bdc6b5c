"""`GymAgentLoop`: plays one episode of the suite as verl's agent loop, with one `AgentLoopOutput` per episode."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from agentgym_envs.rollout import TokenTrajectory
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

        Returns one output, or none if every attempt failed; verl then compares the surviving episodes of the group.
        `global_steps`, which counts from 1, decides the max turns.

        Raises:
            UsageError: the row or a setting is invalid.
            EngineError: verl's server failed.
            EnvError: every episode of the group failed.
        """
        runner = runner_of(self.config, self.tokenizer)
        row, engine, episode = await runner.play(self.server_manager, sampling_params, kwargs)
        if episode is None:
            return []
        per_turn = runner.settings.reward == "per_turn"
        return [_output(row, engine, episode, per_turn)]


def _output(row: TaskRow, engine: VerlEngine, episode: TokenTrajectory, per_turn: bool) -> EpisodeOutput:
    trajectory = episode.trajectory
    rewards = [turn.reward for turn in trajectory.turns]
    seconds = {"generate_sequences": engine.seconds, "tool_calls": engine.other_seconds}
    preempted = {} if engine.preempted is None else {"num_preempted": engine.preempted}
    return EpisodeOutput(
        prompt_ids=episode.prompt_ids,
        response_ids=episode.ids,
        response_mask=episode.assistant_mask,
        response_logprobs=episode.logprobs,
        routed_experts=engine.routed_experts,
        reward_score=sum(rewards),
        num_turns=2 * len(rewards),  # verl counts the messages of both sides
        metrics=AgentLoopMetrics(**seconds, **preempted),
        extra_fields={**engine.fields, "turn_scores": rewards, "reward_extra_info": _validation_metrics(row, episode)},
        token_rewards=episode.rewards if per_turn else [*[0.0] * (len(episode.ids) - 1), sum(rewards)],
    )


def _validation_metrics(row: TaskRow, episode: TokenTrajectory) -> dict[str, float]:
    """The numbers that verl averages in validation, per environment and per group of tasks."""
    trajectory, turns = episode.trajectory, episode.trajectory.turns
    success, score = float(bool(trajectory.success)), float(trajectory.score)
    return {
        "success": success,
        "score": score,
        "turns": float(len(turns)),
        "max_turns": float(trajectory.meta["max_turns"]),
        "invalid_actions": sum(turn.info.get("invalid_action") is not None for turn in turns) / len(turns),
        "truncated_answers": sum(turn.info.get("finish") == "length" for turn in turns) / len(turns),
        f"success/{row.group}": success,
        f"score/{row.group}": score,
    }

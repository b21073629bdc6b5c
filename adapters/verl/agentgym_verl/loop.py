"""`GymAgentLoop`: one episode of the suite as verl's agent loop, one `AgentLoopOutput` an episode."""

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
    """An output whose reward lies on many tokens; verl's own lays it on the last."""

    token_rewards: list[float] = Field(default_factory=list)
    """As long as `response_ids`."""

    def as_dict(self) -> dict[str, Any]:
        """What verl's trainer keeps of an episode, with `rm_scores` (T,) from `token_rewards`."""
        columns: dict[str, Any] = super().as_dict()
        columns.pop("token_rewards", None)
        columns["rm_scores"] = torch.tensor(self.token_rewards, dtype=torch.float32)
        return columns


class GymAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """Plays one episode of a Gymnasium text environment, token ids in and token ids out.

    The tokens, their mask and the limits are those of `agentgym_envs.rollout`, so that both trainers train on the same.
    A response ends on an answer, never on an observation, and every reward lies on an answer's last token: an
    estimator that looks at masked tokens only would lose it anywhere else.
    """

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> list[EpisodeOutput]:
        """Play the episode of a dataset row.

        Returns one output, or none if the environment failed as often as it was tried: verl then compares what is left
        of the group. `global_steps`, which counts from 1, decides the limit of turns.

        Raises:
            UsageError: the row or the settings cannot be.
            EngineError: verl's server failed.
            EnvError: every episode of the group failed.
        """
        session = runner_of(self.config, self.tokenizer)
        row, engine, episode = await session.play(self.server_manager, sampling_params, kwargs)
        if episode is None:
            return []
        per_turn = session.settings.reward == "per_turn"
        return [_output(row, engine, episode, per_turn)]


def _output(row: TaskRow, engine: VerlEngine, episode: TokenTrajectory, per_turn: bool) -> EpisodeOutput:
    trajectory = episode.trajectory
    rewards = [turn.reward for turn in trajectory.turns]
    waited = {"generate_sequences": engine.seconds, "tool_calls": engine.other_seconds}
    preempted = {} if engine.preempted is None else {"num_preempted": engine.preempted}
    return EpisodeOutput(
        prompt_ids=episode.prompt_ids,
        response_ids=episode.ids,
        response_mask=episode.assistant_mask,
        response_logprobs=episode.logprobs,
        routed_experts=engine.routed_experts,
        reward_score=sum(rewards),
        num_turns=2 * len(rewards),  # verl counts the messages of both sides
        metrics=AgentLoopMetrics(**waited, **preempted),
        extra_fields={**engine.fields, "turn_scores": rewards, "reward_extra_info": _told(row, episode)},
        token_rewards=episode.rewards if per_turn else [*[0.0] * (len(episode.ids) - 1), sum(rewards)],
    )


def _told(row: TaskRow, episode: TokenTrajectory) -> dict[str, float]:
    """What verl averages in validation: of the environment, and of the task's group."""
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

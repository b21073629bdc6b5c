"""Supervised training on recorded trajectories, with the very mask that reinforcement learning uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, TokenTrajectory, encode_trajectory
from agentgym_envs.trajectory import Trajectory

IGNORED = -100
"""The label of a token without loss."""


def labels_of(episode: TokenTrajectory) -> list[int]:
    """Labels for prompt and answers, (P + T,): the id where the policy answered, `IGNORED` elsewhere."""
    answered = [i if m else IGNORED for i, m in zip(episode.ids, episode.assistant_mask, strict=True)]
    return [IGNORED] * len(episode.prompt_ids) + answered


def sft_dataset(trajectories: Iterable[Trajectory], codec: ChatCodec, max_length: int | None = None) -> Any:
    """Rows of `input_ids` and `labels`, which `SFTTrainer` takes as they are.

    Raises:
        UsageError: there is nothing to train on, or a trajectory is longer than `max_length` tokens.
    """
    episodes = [encode_trajectory(trajectory, codec) for trajectory in trajectories if trajectory.usable]
    if not episodes:
        raise UsageError("there is no trajectory to train on")
    rows = [{"input_ids": e.prompt_ids + e.ids, "labels": labels_of(e)} for e in episodes]
    longest = max(len(row["input_ids"]) for row in rows)
    if max_length is not None and longest > max_length:
        raise UsageError(f"a trajectory has {longest} tokens, more than --max_length {max_length}; raise the limit")
    return Dataset.from_list(rows)


def make_sft_trainer(
    model: Any, trajectories: Iterable[Trajectory], codec: ChatCodec, args: SFTConfig, **kwargs: Any
) -> Any:
    """TRL's `SFTTrainer` over those trajectories. Nothing is cut: a trajectory over `args.max_length` is an error."""
    dataset = sft_dataset(trajectories, codec, args.max_length)
    return SFTTrainer(model, args=args, train_dataset=dataset, processing_class=codec.tokenizer, **kwargs)

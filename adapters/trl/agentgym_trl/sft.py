"""Supervised training on recorded trajectories, with the same mask as reinforcement learning."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

import torch
from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, encode_trajectory
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.agent_trajectories import agent_views
from agentgym_trl.collator import MultiTurnCollator, TrainingRow, check_length, rows_of
from agentgym_trl.conversations import ConversationRecord, encode_conversation

Demonstration = Trajectory | ConversationRecord


def sft_dataset(demonstrations: Iterable[Demonstration], codec: ChatCodec, max_length: int | None = None) -> Any:
    """Rows of `input_ids` and `labels` for `SFTTrainer`: one per context of an episode, and per agent of a team.

    Raises:
        UsageError: there is no trajectory to train on, or one is longer than `max_length` tokens.
    """
    usable = [d for d in demonstrations if isinstance(d, ConversationRecord) or d.usable]
    rows = [row for demonstration in usable for row in _rows(demonstration, codec)]
    if not rows:
        raise UsageError("there is no trajectory to train on")
    if max_length is not None:
        check_length(max(len(row["input_ids"]) for row in rows), max_length)
    return Dataset.from_list(rows)


def make_sft_trainer(
    model: Any, demonstrations: Iterable[Demonstration], codec: ChatCodec, args: SFTConfig, **kwargs: Any
) -> Any:
    """Make TRL's `SFTTrainer` over demonstrations, in batches by `MultiTurnCollator`.

    A trajectory over `args.max_length` raises; none is truncated. `args.packing` packs the trajectories of a batch
    into rows of at most `args.max_length`, with the same batches and the same gradient. Without flash attention
    the cost of a row grows with the square of its length, so a limit far above the longest trajectory makes packing
    slower than padding.

    Raises:
        UsageError: there is no trajectory to train on, one is too long, or the model cannot separate packed
            trajectories.
    """
    return make_row_trainer(model, sft_dataset(demonstrations, codec, args.max_length), codec, args, **kwargs)


def make_row_trainer(model: Any, dataset: Any, codec: ChatCodec, args: SFTConfig, **kwargs: Any) -> Any:
    """Make the trainer of `make_sft_trainer` over a dataset of rows (`TrainingRow`)."""
    collator = MultiTurnCollator(
        _pad_id(codec.tokenizer),
        packing=args.packing,
        max_length=args.max_length,
        pad_to_multiple_of=args.pad_to_multiple_of,
    )
    trainer = _Trainer(
        model,
        args=_without_packing(args),
        train_dataset=dataset,
        data_collator=collator,
        processing_class=codec.tokenizer,
        **kwargs,
    )
    if args.packing:
        collator.flat = "flash" in str(trainer.model.config._attn_implementation)
        _check_packing(trainer)
    return trainer


class _Trainer(SFTTrainer):  # type: ignore[misc]
    """Counts the tokens of all packed rows; TRL expects a batch of one packed row and counts that one."""

    _total_train_tokens: int

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Compute TRL's loss."""
        before = self._total_train_tokens
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        if self.model.training and "attention_mask" not in inputs:
            count = torch.tensor(inputs["input_ids"].numel(), device=self.args.device)
            self._total_train_tokens = before + int(self.accelerator.gather_for_metrics(count).sum())
            self._metrics["train"]["num_tokens"] = [self._total_train_tokens]
        return loss


def _rows(demonstration: Demonstration, codec: ChatCodec) -> list[TrainingRow]:
    if isinstance(demonstration, ConversationRecord):
        return encode_conversation(demonstration, codec)
    return [row for view in agent_views(demonstration) if view.turns for row in rows_of(encode_trajectory(view, codec))]


def _pad_id(tokenizer: Any) -> int:
    pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    return int(pad_id or 0)  # any id will do: masks are built from lengths


def _without_packing(args: SFTConfig) -> SFTConfig:
    """The settings with TRL's packing off, as our collator packs. Raises UsageError for settings that cannot work."""
    if args.packing and args.packing_strategy != "bfd":
        raise UsageError(f"--packing_strategy {args.packing_strategy} would truncate trajectories; leave it at bfd")
    if args.padding_free:
        raise UsageError("--padding_free is not for trajectories; use --packing true instead")
    plain = copy(args)
    plain.packing = False
    return plain


def _check_packing(trainer: Any) -> None:
    """Raise UsageError if the first of two packed sequences changes the model's output for the second.

    This depends on the code of the model, so the model is run. Sharded weights cannot be checked.
    """
    parallel = trainer.accelerator.parallelism_config
    if parallel is not None and (parallel.cp_enabled or parallel.sp_enabled):
        raise UsageError(
            "--packing does not work with context or sequence parallelism, which split rows; leave one out"
        )
    weights = list(trainer.model.parameters())
    if any(weight.is_meta or not weight.numel() for weight in weights):
        return
    half = torch.arange(8, device=weights[0].device)
    batches = [torch.cat([first, half])[None] for first in (half, half.flip(0))]
    training = trainer.model.training
    trainer.model.eval()
    with torch.no_grad(), trainer.accelerator.autocast():
        one, two = (trainer.model(input_ids=ids, position_ids=_twice(half), use_cache=False).logits for ids in batches)
    trainer.model.train(training)
    one, two = one[0, 8:], two[0, 8:]
    if not torch.allclose(one, two, rtol=0, atol=float(4 * torch.finfo(one.dtype).eps * one.abs().max())):
        raise UsageError(
            f"--packing: {type(trainer.model).__name__} with {trainer.model.config._attn_implementation} attention "
            "lets packed trajectories attend to each other; train without --packing"
        )


def _twice(positions: torch.Tensor) -> torch.Tensor:
    return torch.cat([positions, positions])[None]

"""Direct preference optimisation over pairs of trajectories, scored on the policy's own tokens only.

What trl 1.16's `DPOTrainer` does with a conversation (read in its source, and seen in a run that the tests repeat): it
scores everything after the prompt. A `chosen` of several messages is rendered by the chat template, and every token
from the first answer on counts as completion, so that observations and the headers of turns enter the
log-probabilities of both sides: the policy would be taught to foretell the environment. `DPOConfig` has no
`assistant_only_loss`, no column can carry a mask, and rows that are tokenised already are refused (`KeyError`).

The seam is its data collator's `completion_mask`: `DPOTrainer` derives everything from it (the labels of policy and
reference, the lengths of `ipo`, `sigmoid_norm`, `ld_alpha` and WPO's weights, the `sft` term, its metrics), while
what the model attends to follows `attention_mask`. So three things are ours: rows that hold ids and masks
(`dpo_dataset`), a collator that lays `assistant_mask` where TRL would put ones (`PairCollator`), and a trainer that
takes such rows as they are (`PairTrainer`). The loss itself is TRL's, with all its types and options.

Source: Direct Preference Optimization, arXiv 2305.18290, equation 7. A trajectory's log-probability is the sum over
the policy's tokens, since what the environment says has the same probability under policy and reference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from datasets import Dataset
from trl import DPOConfig, DPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, encode_trajectory
from agentgym_trl.collator import check_length
from agentgym_trl.error_messages import reject_teams
from agentgym_trl.pairs import Pair

_SIDES = ("chosen", "rejected")
LOSS_TYPES = (
    *("sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard", "aot", "aot_unpaired"),
    *("apo_zero", "apo_down", "discopop", "sft", "sigmoid_norm"),
)
"""What trl 1.16 knows for `loss_type`; it finds out about others in the first step only."""
DIVERGENCES = ("reverse_kl", "forward_kl", "js_divergence", "alpha_divergence")
"""What it knows for `f_divergence_type`."""


def dpo_dataset(pairs: Iterable[Pair], codec: ChatCodec, max_length: int | None = None) -> Any:
    """Rows for `PairTrainer`, one a pair.

    Columns: `prompt_ids` (P,), and for each side `chosen_ids` (T,) and `chosen_mask` (T,), which is the trajectory's
    `assistant_mask`; by the same rule as in reinforcement learning.

    Raises:
        UsageError: there is no pair, a side is a team's record, the sides of a pair have different prompts, or a
            trajectory is longer than `max_length` tokens. Nothing is cut, as the end of a trajectory is what tells the
            sides apart.
    """
    pairs = list(pairs)
    reject_teams((side for pair in pairs for side in (pair.chosen, pair.rejected)), "dpo")
    rows = [_row(pair, codec) for pair in pairs]
    if not rows:
        raise UsageError("there is no pair to train on")
    if max_length is not None:
        lengths = (len(row["prompt_ids"]) + len(row[f"{side}_ids"]) for row in rows for side in _SIDES)
        check_length(max(lengths), max_length)
    return Dataset.from_list(rows)


class PairCollator(DataCollatorForPreference):  # type: ignore[misc]
    """TRL's batch of pairs, in which `completion_mask` is 1 on the policy's own tokens only.

    `input_ids`, `attention_mask` and `completion_mask` are (2B, L), the chosen sides first, padded on the right.
    """

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch of rows of `dpo_dataset`."""
        batch: dict[str, Any] = super().torch_call(examples)
        own = [bit for side in _SIDES for example in examples for bit in example[f"{side}_mask"]]
        completions = batch["completion_mask"].bool()  # row by row, these are the tokens that the masks tell of
        batch["completion_mask"][completions] = torch.tensor(own, dtype=batch["completion_mask"].dtype)
        return batch


class PairTrainer(DPOTrainer):  # type: ignore[misc]
    """TRL's `DPOTrainer` over rows of `dpo_dataset`, also as `eval_dataset`. Give it a `PairCollator`."""

    _tag_names = ["trl", "dpo", "agentgym"]  # noqa: RUF012 (TRL's name and type)

    def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
        return dataset  # ids and masks are made already, and TRL would make others from text

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        self._signature_columns += [c for s in _SIDES if (c := f"{s}_mask") not in self._signature_columns]


def make_dpo_trainer(
    model: Any,
    pairs: Iterable[Pair],
    codec: ChatCodec,
    args: DPOConfig,
    *,
    eval_pairs: Iterable[Pair] | None = None,
    **kwargs: Any,
) -> Any:
    """A trainer over those pairs; `model` and `kwargs` (`ref_model`, `peft_config`, ...) as for TRL's `DPOTrainer`.

    Raises:
        UsageError: as `dpo_dataset`, and for settings that TRL does not know or cannot combine.
    """
    _check(args)
    tokenizer: Any = codec.tokenizer
    tokenizer.pad_token = args.pad_token or tokenizer.pad_token or tokenizer.eos_token
    if tokenizer.pad_token_id is None:
        raise UsageError(
            f"--pad_token {args.pad_token!r} is no token of the model; choose one that is, or leave it out"
        )
    if eval_pairs is not None:
        kwargs["eval_dataset"] = dpo_dataset(eval_pairs, codec, args.max_length)
    try:
        return PairTrainer(
            model,
            args=args,
            data_collator=PairCollator(tokenizer.pad_token_id, pad_to_multiple_of=args.pad_to_multiple_of),
            train_dataset=dpo_dataset(pairs, codec, args.max_length),
            processing_class=tokenizer,
            **kwargs,
        )
    except NotImplementedError as error:  # what TRL cannot combine, such as sync_ref_model with PEFT
        raise UsageError(str(error).split("\n")[0]) from error


def _check(args: DPOConfig) -> None:
    if unknown := [name for name in args.loss_type if name not in LOSS_TYPES]:
        raise UsageError(f"there is no loss_type {unknown[0]!r}; choose from {', '.join(LOSS_TYPES)}")
    if args.f_divergence_type not in DIVERGENCES:
        raise UsageError(
            f"there is no f_divergence_type {args.f_divergence_type!r}; choose from {', '.join(DIVERGENCES)}"
        )
    if args.ld_alpha is not None and not 0.0 <= args.ld_alpha <= 1.0:
        raise UsageError(f"--ld_alpha must lie between 0 and 1, got {args.ld_alpha}")


def _row(pair: Pair, codec: ChatCodec) -> dict[str, Any]:
    chosen, rejected = encode_trajectory(pair.chosen, codec), encode_trajectory(pair.rejected, codec)
    if chosen.prompt_ids != rejected.prompt_ids:
        raise UsageError(
            f"the sides of a pair must have the same prompt; those of task {pair.chosen.task.id} and "
            f"{pair.rejected.task.id} differ (agentgym_trl.pairs.make_pairs makes pairs that do)"
        )
    return {
        "prompt_ids": chosen.prompt_ids,
        "chosen_ids": chosen.ids,
        "chosen_mask": chosen.assistant_mask,
        "rejected_ids": rejected.ids,
        "rejected_mask": rejected.assistant_mask,
    }

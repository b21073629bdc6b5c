"""Direct preference optimisation over pairs of trajectories, scored on the policy's own tokens only.

In trl 1.16, `DPOTrainer` scores every token after the prompt of a conversation (the tests show it in a run). So the
log-probabilities of both sides would include observations and turn headers, and the policy would learn to predict the
environment. `DPOConfig` has no `assistant_only_loss`, no column can carry a mask, and tokenised rows raise `KeyError`.

The place to intervene is the `completion_mask` of TRL's data collator. `DPOTrainer` derives everything from it: the
labels of policy and reference, the lengths of `ipo`, `sigmoid_norm`, `ld_alpha` and WPO's weights, the `sft` term, and
its metrics. Attention follows `attention_mask`. So three things are ours: rows with ids and masks (`dpo_dataset`), a
collator that writes `assistant_mask` where TRL writes ones (`PairCollator`), and a trainer that accepts such rows
(`PairTrainer`). The loss is TRL's, with all its types and options.

A preference compares episodes. If an episode has several contexts, its row has them end to end, so that the
log-probability is summed over all of them. Policy and reference read each context alone (`contexts_apart`).

Source: Direct Preference Optimization, arXiv 2305.18290, equation 7. A trajectory's log-probability is the sum over
the policy's tokens, since observations have the same probability under policy and reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from datasets import Dataset
from trl import DPOConfig, DPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import ChatCodec, TokenTrajectory, encode_trajectory
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.collator import check_length
from agentgym_trl.context_rows import contexts_apart
from agentgym_trl.error_messages import reject_teams
from agentgym_trl.pairs import Pair

Encode = Callable[[Trajectory], TokenTrajectory]
"""Returns the tokens of a trajectory."""
_SIDES = ("chosen", "rejected")
LOSS_TYPES = (
    *("sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard", "aot", "aot_unpaired"),
    *("apo_zero", "apo_down", "discopop", "sft", "sigmoid_norm"),
)
"""The values of `loss_type` in trl 1.16, which rejects others only in the first step."""
DIVERGENCES = ("reverse_kl", "forward_kl", "js_divergence", "alpha_divergence")
"""The values of `f_divergence_type` in trl 1.16."""


def dpo_dataset(
    pairs: Iterable[Pair], codec: ChatCodec, max_length: int | None = None, encode: Encode | None = None
) -> Any:
    """Rows for `PairTrainer`, one per pair.

    Columns: `prompt_ids` (P,); for each side, such as `chosen`, `chosen_ids` (T,), `chosen_mask` (T,), which is the
    trajectory's `assistant_mask`, and `chosen_starts`, its `context_starts`.

    Args:
        pairs: the pairs.
        codec: encodes trajectories.
        max_length: the maximum number of tokens of a context.
        encode: returns the tokens of a trajectory instead of `codec`, such as those that an agent's episode was played
            with (`AgentEpisode.tokens`).

    Raises:
        UsageError: there is no pair, a side is a team's record, the sides of a pair have different prompts, or a
            context is longer than `max_length`. Trajectories are not truncated: the sides differ at the end.
    """
    pairs = list(pairs)
    reject_teams((side for pair in pairs for side in (pair.chosen, pair.rejected)), "dpo")
    if not pairs:
        raise UsageError("there is no pair to train on")
    tokens = encode or (lambda trajectory: encode_trajectory(trajectory, codec))
    sides = [(tokens(pair.chosen), tokens(pair.rejected)) for pair in pairs]
    if max_length is not None:
        contexts = (context for both in sides for side in both for context in side.contexts())
        check_length(max(len(context.prompt_ids) + len(context.ids) for context in contexts), max_length)
    return Dataset.from_list([_row(*both) for both in sides])


class PairCollator(DataCollatorForPreference):  # type: ignore[misc]
    """TRL's batch of pairs, in which `completion_mask` is 1 on the policy's own tokens only.

    `input_ids`, `attention_mask` and `completion_mask` are (2B, L), the chosen sides first, padded on the right. If an
    episode has several contexts, `contexts` (2B, L - 1) has the number of the context of each token but the first.
    """

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch of rows of `dpo_dataset`."""
        batch: dict[str, Any] = super().torch_call(examples)
        masks = [bit for side in _SIDES for example in examples for bit in example[f"{side}_mask"]]
        completions = batch["completion_mask"].bool()  # row by row, these tokens are those of the masks
        batch["completion_mask"][completions] = torch.tensor(masks, dtype=batch["completion_mask"].dtype)
        starts = [
            [len(example["prompt_ids"]) + start for start in example[f"{side}_starts"]]
            for side in _SIDES
            for example in examples
        ]
        if any(starts):
            batch["contexts"] = torch.zeros_like(batch["input_ids"])[:, 1:]
            for row, begins in zip(batch["contexts"], starts, strict=True):
                for begin in begins:
                    row[begin - 1 :] += 1
        return batch


class PairTrainer(DPOTrainer):  # type: ignore[misc]
    """TRL's `DPOTrainer` over rows of `dpo_dataset`, also as `eval_dataset`; needs a `PairCollator`."""

    _tag_names = ["trl", "dpo", "agentgym"]  # noqa: RUF012 (TRL's name and type)

    def compute_ref_log_probs(self, model: Any, inputs: dict[str, Any]) -> Any:
        """TRL's sums of log-probabilities under the reference, over all contexts of an episode."""
        inputs, apart = self._without_contexts(inputs, [model])
        with apart:
            return super().compute_ref_log_probs(model, inputs)

    def _compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool) -> Any:
        """TRL's loss, for which policy and reference read the contexts of episodes one by one."""
        inputs, apart = self._without_contexts(inputs, [model, self.ref_model])
        with apart:
            return super()._compute_loss(model, inputs, return_outputs)

    def _without_contexts(
        self, inputs: dict[str, Any], models: list[Any]
    ) -> tuple[dict[str, Any], AbstractContextManager[None]]:
        """The inputs as TRL knows them, and a context in which the models read their contexts apart."""
        if "contexts" not in inputs:
            return inputs, nullcontext()
        plain = {name: value for name, value in inputs.items() if name != "contexts"}
        inner = [self.accelerator.unwrap_model(model) for model in models if model is not None]
        return plain, contexts_apart(inner, inputs["contexts"], self.data_collator.pad_to_multiple_of)

    def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
        return dataset  # has ids and masks already; TRL would make its own from text

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        ours = [f"{side}_{column}" for side in _SIDES for column in ("mask", "starts")]
        self._signature_columns += [column for column in ours if column not in self._signature_columns]


def make_dpo_trainer(
    model: Any,
    pairs: Iterable[Pair],
    codec: ChatCodec,
    args: DPOConfig,
    *,
    eval_pairs: Iterable[Pair] | None = None,
    encode: Encode | None = None,
    **kwargs: Any,
) -> Any:
    """Make a trainer over pairs.

    `encode` is that of `dpo_dataset`; `model` and `kwargs` (`ref_model`, `peft_config`, ...) are those of TRL's
    `DPOTrainer`. A batch has as many rows as its episodes have contexts.

    Raises:
        UsageError: as `dpo_dataset`, and for settings that TRL does not support or cannot combine.
    """
    _check(args)
    tokenizer: Any = codec.tokenizer
    tokenizer.pad_token = args.pad_token or tokenizer.pad_token or tokenizer.eos_token
    if tokenizer.pad_token_id is None:
        raise UsageError(
            f"--pad_token {args.pad_token!r} is not a token of the model; choose one of its tokens, or leave it out"
        )
    if eval_pairs is not None:
        kwargs["eval_dataset"] = dpo_dataset(eval_pairs, codec, args.max_length, encode)
    try:
        return PairTrainer(
            model,
            args=args,
            data_collator=PairCollator(tokenizer.pad_token_id, pad_to_multiple_of=args.pad_to_multiple_of),
            train_dataset=dpo_dataset(pairs, codec, args.max_length, encode),
            processing_class=tokenizer,
            **kwargs,
        )
    except NotImplementedError as error:  # settings that TRL cannot combine, such as sync_ref_model with PEFT
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


def _row(chosen: TokenTrajectory, rejected: TokenTrajectory) -> dict[str, Any]:
    if chosen.prompt_ids != rejected.prompt_ids:
        raise UsageError(
            f"the sides of a pair must have the same prompt; those of task {chosen.trajectory.task.id} and "
            f"{rejected.trajectory.task.id} differ (agentgym_trl.pairs.make_pairs makes pairs that do)"
        )
    return {
        "prompt_ids": chosen.prompt_ids,
        "chosen_ids": chosen.ids,
        "chosen_mask": chosen.assistant_mask,
        "chosen_starts": list(chosen.context_starts),
        "rejected_ids": rejected.ids,
        "rejected_mask": rejected.assistant_mask,
        "rejected_starts": list(rejected.context_starts),
    }

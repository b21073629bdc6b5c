"""`MultiTurnCollator`: batches trajectories as padded tensors, with a loss on the policy's answers only.

A *row* is one sequence with labels, for supervised training; rows may be packed. Masks are built from lengths and not
from ids, because a tokenizer may pad with its end token.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Literal, TypedDict

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout import TokenTrajectory

Side = Literal["left", "right"]
IGNORED = -100
"""The label of a token without loss."""


class TrainingRow(TypedDict):
    """One sequence to train on; each label is the id of its token, or `IGNORED`."""

    input_ids: list[int]
    labels: list[int]


def make_row(prompt_ids: Sequence[int], ids: Sequence[int], assistant_mask: Sequence[int]) -> TrainingRow:
    """The row of a prompt (P,) and the tokens after it (T,), with labels where the mask is 1."""
    labels = [i if m else IGNORED for i, m in zip(ids, assistant_mask, strict=True)]
    return {"input_ids": [*prompt_ids, *ids], "labels": [IGNORED] * len(prompt_ids) + labels}


def rows_of(episode: TokenTrajectory) -> list[TrainingRow]:
    """The row of each context of a trajectory, P + T long."""
    return [make_row(one.prompt_ids, one.ids, one.assistant_mask) for one in episode.contexts()]


def best_fit(lengths: Sequence[int], max_length: int) -> list[list[int]]:
    """Assign sequences to rows of at most `max_length` tokens: the longest first, each to the fullest row that fits.

    Source: best-fit decreasing as in arXiv 2404.10830. Every index of `lengths` is in exactly one row.

    Raises:
        UsageError: a sequence is longer than a row.
    """
    rows: list[list[int]] = []
    free: list[tuple[int, int]] = []  # free tokens of a row, and its index; sorted
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        check_length(lengths[index], max_length)
        fullest = bisect_left(free, (lengths[index], -1))
        if fullest == len(free):
            free.append((max_length, len(rows)))
            rows.append([])
        tokens, row = free.pop(fullest)
        rows[row].append(index)
        insort(free, (tokens - lengths[index], row))
    return rows


def check_length(length: int, max_length: int) -> None:
    """Raise UsageError if a trajectory of `length` tokens does not fit: trajectories are not truncated."""
    if length > max_length:
        raise UsageError(
            f"a trajectory has {length} tokens, more than --max_length {max_length}, and is not truncated; give "
            f"--max_length {length}"
        )


class MultiTurnCollator:
    """Makes batches of trajectories or rows."""

    def __init__(
        self,
        pad_id: int,
        *,
        padding_side: Side = "right",
        packing: bool = False,
        max_length: int | None = None,
        flat: bool = False,
        pad_to_multiple_of: int | None = None,
    ) -> None:
        """Create a collator.

        Args:
            pad_id: the padding token; any token will do, as masks are not read from ids.
            padding_side: the side on which shorter rows are padded.
            packing: put several trajectories into one row of at most `max_length` tokens.
            max_length: the length of a packed row in tokens.
            flat: concatenate the packed rows of a batch into one, for flash attention.
            pad_to_multiple_of: widen the batch to a multiple of this.

        Raises:
            UsageError: `packing` without `max_length`.
        """
        if packing and max_length is None:
            raise UsageError("packing needs the length of a row: --max_length")
        self.pad_id, self.padding_side, self.packing = pad_id, padding_side, packing
        self.max_length, self.flat, self.pad_to_multiple_of = max_length, flat, pad_to_multiple_of

    def __call__(self, batch: Sequence[TokenTrajectory | TrainingRow]) -> dict[str, Any]:
        """Make a batch of B rows of L tokens for a causal language model; all tensors are int64.

        A trajectory has one row per context.

        Returns:
            `input_ids` and `labels` (B, L). Without packing also `attention_mask` (B, L), and `position_ids` (B, L) if
            the padding is on the left. With packing, B is the number of packed rows, `position_ids` start at 0 in
            every trajectory, and there is no `attention_mask`: transformers separates trajectories by their positions,
            but only without an attention mask and without a cache, hence `use_cache` is False.
        """
        rows = [row for item in batch for row in (rows_of(item) if isinstance(item, TokenTrajectory) else [item])]
        return self._packed(rows) if self.packing else self._unpacked(rows)

    def _unpacked(self, rows: Sequence[TrainingRow]) -> dict[str, Any]:
        ids = [row["input_ids"] for row in rows]
        tensors = {
            "input_ids": self._pad(ids, self.pad_id),
            "labels": self._pad([row["labels"] for row in rows], IGNORED),
            "attention_mask": self._pad(_ones(ids), 0),
        }
        if self.padding_side == "left":  # models count positions from the first column, padding or not
            tensors["position_ids"] = self._pad(_positions(ids), 0)
        return tensors

    def _packed(self, rows: Sequence[TrainingRow]) -> dict[str, Any]:
        assert self.max_length is not None
        groups = best_fit([len(row["input_ids"]) for row in rows], self.max_length)
        groups = [list(chain(*groups))] if self.flat else groups
        ids = [[rows[index]["input_ids"] for index in group] for group in groups]
        labels = [[_without_first(rows[index]["labels"]) for index in group] for group in groups]
        return {
            "input_ids": self._pad(_joined(ids), self.pad_id),
            "labels": self._pad(_joined(labels), IGNORED),
            "position_ids": self._pad(_joined(map(_positions, ids)), 0),  # so pad tokens attend to nothing else
            "use_cache": False,
        }

    def _pad(self, rows: Sequence[Sequence[int]], value: int) -> Tensor:
        tensor = _padded(rows, value, self.padding_side)
        more = -tensor.size(1) % (self.pad_to_multiple_of or 1)
        return pad(tensor, (more, 0) if self.padding_side == "left" else (0, more), value=value)


def _without_first(labels: Sequence[int]) -> list[int]:
    """Mask the label of the first token, which in a packed row follows another trajectory."""
    return [IGNORED, *labels[1:]]


def _positions(rows: Iterable[Sequence[int]]) -> list[list[int]]:
    return [list(range(len(row))) for row in rows]


def _ones(rows: Iterable[Sequence[int]]) -> list[list[int]]:
    return [[1] * len(row) for row in rows]


def _joined(groups: Iterable[Iterable[Sequence[int]]]) -> list[list[int]]:
    return [list(chain(*group)) for group in groups]


def _padded(
    rows: Sequence[Sequence[float]], value: float, side: Side = "right", dtype: torch.dtype = torch.int64
) -> Tensor:
    tensors = [torch.tensor(row, dtype=dtype) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=value, padding_side=side)

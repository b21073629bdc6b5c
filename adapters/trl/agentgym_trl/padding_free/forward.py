"""`PaddingFree`: forward passes over a padded batch without its padding."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from agentgym_trl.padding_free.rows import PackedRows, pack


@dataclass(frozen=True, slots=True)
class PaddingFree:
    """Forward passes over the rows of a padded batch.

    With `flash`, for models on FlashAttention 2, the kernel finds the rows by positions that start again at 0, and
    prompts are not shared.
    """

    flash: bool = False

    def pack(self, ids: Tensor, mask: Tensor) -> PackedRows:
        """Pack a batch (B, S)."""
        return replace(pack(ids, mask, shares=False), blocks=()) if self.flash else pack(ids, mask)

    def score(
        self,
        model: Any,
        ids: Tensor,
        mask: Tensor,
        scored: Tensor,
        *,
        batch_size: int,
        autocast: Callable[[], AbstractContextManager[Any]],
    ) -> tuple[Tensor, Tensor | None]:
        """Return log-probabilities (B, T) and, if the model's head computes them, entropies (B, T).

        Rows are in TRL's layout: prompts padded on the left, completions on the right.

        Args:
            model: a causal model that `enable` accepted, with TRL's fused head.
            ids: (B, P + T)
            mask: (B, P + T), 0 on padding
            scored: (B, T) the tokens to score; the result is 0 on all others.
            batch_size: rows of one forward pass
            autocast: makes the context of a forward pass
        """
        parts = []
        for first in range(0, len(ids), batch_size):
            some = slice(first, first + batch_size)
            with autocast():
                parts.append(self._score(model, ids[some], mask[some], scored[some].bool()))
        logprobs, entropies = zip(*parts, strict=True)
        return torch.cat(logprobs), None if entropies[0] is None else torch.cat(entropies)

    def _score(self, model: Any, ids: Tensor, mask: Tensor, scored: Tensor) -> tuple[Tensor, Tensor | None]:
        width = scored.size(1)
        rows = self.pack(ids, mask)
        scored = scored & (rows.index[:, -width:] >= 0)
        where = scored if scored.any() else rows.index[:, -width:] >= 0  # the head needs a token for a gradient of 0
        before = rows.index[:, -width - 1 : -1][where]
        labels = ids[:, -width:][where][None]
        out = model(**model_inputs(replace(rows, scored=before)), shift_labels=labels, fused_lm_head=True)
        found = [None if x is None else _spread(x[0], where, scored) for x in (out.log_probs, out.entropy)]
        assert found[0] is not None
        return found[0], found[1]


def _spread(values: Tensor, where: Tensor, scored: Tensor) -> Tensor:
    """(M,) values at the True cells of `where` (B, T), and 0 elsewhere and where `scored` is False."""
    full = values.new_zeros(where.shape).masked_scatter(where, values)
    return full * scored


def model_inputs(rows: PackedRows) -> dict[str, Any]:
    """The arguments of a model's forward pass over packed rows."""
    mask = rows.ids.new_zeros(1, 1, 1, 1) if rows.blocks else None  # four dimensions: transformers builds no mask
    return {"input_ids": rows.ids, "position_ids": rows.positions, "attention_mask": mask, "packed": rows}

"""The models that can read packed rows, found by their configuration and by a comparison of hidden states."""

from __future__ import annotations

from typing import Any

import torch

from agentgym_trl.generation.cached_model import evaluating
from agentgym_trl.generation.support import by_config, layer_kinds
from agentgym_trl.padding_free.attention import ATTENTION
from agentgym_trl.padding_free.forward import PaddingFree, model_inputs

_FLASH = "flash_attention_2"
_LENGTHS = ((9, 5), (9, 3), (2, 7))
"""Prompt and completion of the compared rows, in tokens; the first two rows have the same prompt."""
_TOLERANCE = 1e-3
_LOW_PRECISION_TOLERANCE = 5e-2


def enable(model: Any) -> tuple[PaddingFree | None, str]:
    """Prepare a causal model, or its backbone, for packed rows; return None and the reason if it cannot read them.

    On success the model's attention is `ATTENTION`, which is SDPA except for packed rows.
    """
    if reason := by_config(model) or _more_by_config(model):
        return None, reason
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    before = inner.config._attn_implementation
    padding_free = PaddingFree(flash=before == _FLASH)
    if not padding_free.flash:
        inner.set_attn_implementation(ATTENTION)
    if reason := "" if padding_free.flash else _difference(inner, padding_free):
        inner.set_attn_implementation(before)
        return None, reason
    inner.base_model.register_forward_hook(_keep_scored, with_kwargs=True)
    return padding_free, ""


def _more_by_config(model: Any) -> str:
    config = model.config
    if config.get_text_config() is not config:
        return "it reads more than text"
    if config._attn_implementation not in ("sdpa", _FLASH, ATTENTION):
        return f"its attention is {config._attn_implementation!r}; padding-free rows need 'sdpa' or {_FLASH!r}"
    if kind := next((kind for kind in ("dynamic", "longrope") if kind in _rope_types(config)), ""):
        return f"its positions ({kind}) depend on the longest row of a batch"
    return ""


def _rope_types(config: Any) -> set[Any]:
    """The kinds of rotary positions; some models have one for each kind of layer."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    return {rope.get("rope_type"), *(part.get("rope_type") for part in rope.values() if isinstance(part, dict))}


def _keep_scored(module: Any, args: Any, kwargs: dict[str, Any], output: Any) -> Any:
    """Drop the hidden states that the head need not read."""
    rows = kwargs.get("packed")
    if rows is not None and rows.scored is not None:
        output.last_hidden_state = output.last_hidden_state.index_select(1, rows.scored)
    return output


def _difference(model: Any, padding_free: PaddingFree) -> str:
    """Compare the hidden states of packed rows with those of padded ones; a reason if they differ."""
    backbone = model.base_model
    ids, mask = _compared_rows(model)
    rows = padding_free.pack(ids, mask)
    try:
        with evaluating(model):
            padded = backbone(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state.float()
            packed = backbone(**model_inputs(rows), use_cache=False).last_hidden_state[0].float()
    except Exception as error:  # a model may fail in any way
        return f"its forward pass takes no packed rows ({type(error).__name__}: {str(error).splitlines()[:1]})"
    real = mask.bool()
    apart = float((padded[real] - packed[rows.index[real]]).abs().max())
    precise = model.dtype in (torch.float32, torch.float64)
    tolerance = (_TOLERANCE if precise else _LOW_PRECISION_TOLERANCE) * max(1.0, float(padded[real].abs().max()))
    if not apart <= tolerance:
        return f"its hidden states of packed rows differ by {apart:.2g}"
    return _window(model.config, set(rows.masks))


def _compared_rows(model: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask of some rows in TRL's layout."""
    prompt, rest = (max(lengths) for lengths in zip(*_LENGTHS, strict=True))
    step = torch.arange(prompt + rest)
    mask = torch.stack([(step >= prompt - p) & (step < prompt + r) for p, r in _LENGTHS]).long()
    ids = (7 * step + 3 * (step >= prompt) * torch.arange(len(_LENGTHS))[:, None]) % model.config.vocab_size
    return (ids * mask).to(model.device), mask.to(model.device)


def _window(config: Any, seen: set[int | None]) -> str:
    """The compared rows are shorter than any window, so it must have been given to attention."""
    if "sliding_attention" in layer_kinds(config) and config.sliding_window not in seen:
        return "its sliding windows are unknown to its attention function"
    return ""

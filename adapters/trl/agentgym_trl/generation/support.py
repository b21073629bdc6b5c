"""The models that `CachedDecoder` works with, found by their configuration and by a comparison of logits."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

_log = logging.getLogger(__name__)
_BY_POSITION = {"full_attention", "sliding_attention"}
_known: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def layer_kinds(config: Any) -> set[str]:
    """The kinds of attention in a text config. Models that name none, such as Mistral, have one kind in all layers."""
    window = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    return set(getattr(config, "layer_types", None) or ["sliding_attention" if window else "full_attention"])


def why_not(model: Any, compare: Callable[[], str]) -> str:
    """The reason to use `generate` for a model; empty if its keys and values can be kept.

    `compare` runs once per model and returns a reason too. A reason is logged once.
    """
    if model in _known:
        return _known[model]
    reason = _known[model] = _no_generation(model) or by_config(model) or compare()
    if reason:
        _log.warning(
            "%s generates with `generate`, which reads every conversation again in each turn: %s",
            type(model).__name__,
            reason,
        )
    return reason


def _no_generation(model: Any) -> str:
    return "" if hasattr(model, "generate") else "it is not a transformers model"


def by_config(model: Any) -> str:
    """The reason in a model's configuration why its layers are not attention by position only; empty if they are."""
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "get_text_config"):
        return "it is not a transformers model"
    if getattr(config, "is_encoder_decoder", False):
        return "it has an encoder"
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    if getattr(inner, "_is_stateful", False):
        return "it has recurrent layers"
    text = config.get_text_config()
    if other := sorted(layer_kinds(text) - _BY_POSITION):
        return f"it has layers of the kind {', '.join(other)}"
    if any(getattr(c, "is_prompt_learning", False) for c in getattr(model, "peft_config", {}).values()):
        return "its adapter has a learned prompt"
    return "" if hasattr(text, "num_hidden_layers") else "its configuration has no number of layers"

"""`CachedModel`: forward passes of a model over some rows of a `RowCache`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from agentgym_trl.generation.kv_cache import RowCache, grouped
from agentgym_trl.generation.support import layer_kinds

_COMPARED = 24  # tokens
_TOLERANCE = 1e-3
_LOW_PRECISION_TOLERANCE = 5e-2


class CachedModel:
    """A model and its cache. Rows, tokens and places are numpy arrays; `cache` has the tensors."""

    def __init__(self, model: Any) -> None:
        """`model` is a causal language model of transformers, possibly with a PEFT adapter."""
        self.model = model
        self.config = model.config.get_text_config()
        self.cache = RowCache(self.config.num_hidden_layers)
        self._kinds = layer_kinds(self.config)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Prepare the model for `forward` and `read`."""
        with evaluating(self.model), grouped(self.config):
            yield

    def forward(self, rows: np.ndarray, ids: np.ndarray, positions: np.ndarray, places: np.ndarray) -> torch.Tensor:
        """Return the logits (n, vocabulary) after the last of the tokens (n, q); they are written to `places`."""
        device = self.model.device
        at = torch.from_numpy(places).to(device)
        self.cache.select(torch.from_numpy(rows).to(device), at)
        out = self.model(
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask=self._mask(at),
            position_ids=torch.from_numpy(positions).to(device),
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = out.logits[:, -1].float()
        return logits

    def read(self, rows: Sequence[int], known: Sequence[int], ends: Sequence[Sequence[int]]) -> torch.Tensor:
        """Read the tokens `ends` of some rows, in ascending order, after the `known` tokens that each row holds."""
        width = max(map(len, ends))
        ids, positions, places = (np.zeros((len(rows), width), np.int64) for _ in range(3))
        for k, (start, tokens) in enumerate(zip(known, ends, strict=True)):
            pad, end = width - len(tokens), start + len(tokens)
            ids[k, pad:] = tokens
            positions[k, pad:] = places[k, pad:] = np.arange(start, end)
            places[k, :pad] = np.arange(end, end + pad)  # after the end, where nothing is read before it is overwritten
        return self.forward(np.asarray(rows), ids, positions, places)

    def weights(self) -> list[tuple[int, int, int]]:
        """A value that changes when the weights do, unless they change without torch's version counters."""
        parameters = self.model.parameters()
        return [(id(p), p.data_ptr(), 0 if p.is_inference() else p._version) for p in parameters]

    def bytes_per_place(self) -> int:
        """The size of the keys and values of one token, by the configuration."""
        config = self.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        dtype = self.cache.dtype or self.model.dtype
        return int(2 * config.num_hidden_layers * heads * size * dtype.itemsize)

    def _mask(self, at: torch.Tensor) -> Any:
        """The mask (n, 1, q, places) of every kind of layer: a token at place k sees the places up to k."""
        places = torch.arange(self.cache.used, device=at.device)
        own = at[:, None, :, None]
        full = places <= own
        masks = dict.fromkeys(self._kinds, full)
        if "sliding_attention" in masks:
            masks["sliding_attention"] = full & (places > own - self.config.sliding_window)
        if self.config._attn_implementation == "eager":
            dtype = self.cache.dtype or self.model.dtype
            masks = {kind: _additive(mask, dtype) for kind, mask in masks.items()}
        return masks if len(masks) > 1 else next(iter(masks.values()))


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Evaluate a model without gradients, dropout and checkpointing; checkpointing would forbid a cache."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


def difference(model: Any, ids: Sequence[int]) -> str:
    """Compare the logits of a cached reading of a text with those of a whole one; a reason if they differ."""
    text = (list(ids) * _COMPARED)[:_COMPARED]
    try:
        cached = CachedModel(model)
        with evaluating(model):
            whole = model(input_ids=torch.tensor([text], device=model.device), use_cache=False).logits[0, -1].float()
        with cached.running():
            found = _in_pieces(cached, text)
    except Exception as error:  # a model may fail in any way
        return f"its forward pass takes no cache of rows ({type(error).__name__}: {str(error).splitlines()[:1]})"
    precise = cached.cache.dtype in (torch.float32, torch.float64)
    tolerance = (_TOLERANCE if precise else _LOW_PRECISION_TOLERANCE) * max(1.0, float(whole.abs().max()))
    apart = float((whole - found).abs().max())
    return "" if apart <= tolerance else f"its logits with kept keys and values differ by {apart:.2g}"


def device_memory(device: torch.device) -> int:
    """The total memory of a device in bytes; of an unknown one, that of the machine."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _in_pieces(cached: CachedModel, text: Sequence[int]) -> torch.Tensor:
    """The logits after `text`, read in two pieces in the second of two rows of different lengths."""
    half = len(text) // 2
    cached.cache.resize(torch.zeros(0, dtype=torch.long), 2, 2 * len(text))
    cached.read([0, 1], [0, 0], [text[: half + 3], text[:half]])
    return cached.read([0, 1], [half + 3, half], [text[half + 3 :], text[half:]])[1]


def _additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, torch.finfo(dtype).min)

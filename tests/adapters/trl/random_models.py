"""Random models of several families, small, with weights large enough that answers differ."""

from __future__ import annotations

from typing import Any

import torch
import transformers

VOCABULARY = 300
_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
}
_WINDOW: dict[str, Any] = {"head_dim": 16, "sliding_window": 16}
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", {}),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {"head_dim": 16}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", {}),
    "llama-eager": ("LlamaForCausalLM", "LlamaConfig", {"attn_implementation": "eager"}),
    "mistral": ("MistralForCausalLM", "MistralConfig", {"sliding_window": 16}),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**_WINDOW, "attn_implementation": "eager"}),
    "gemma2-sdpa": ("Gemma2ForCausalLM", "Gemma2Config", {**_WINDOW, "attn_implementation": "sdpa"}),
    "gemma3": (
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        {**_WINDOW, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]},
    ),
    "mamba": ("MambaForCausalLM", "MambaConfig", {}),
    "bloom": ("BloomForCausalLM", "BloomConfig", {}),
}


def random_model(name: str) -> Any:
    family, config, options = FAMILIES[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = getattr(transformers, family)(getattr(transformers, config)(**{**_SIZES, **options}))
    for parameter in model.parameters():
        parameter.data.mul_(3.0 if parameter.dim() > 1 else 1.0)
    return model.eval()


@torch.no_grad()
def full_logprobs(model: Any, prompt: list[int], answer: list[int], temperature: float = 1.0) -> torch.Tensor:
    """(answer,) of one pass over everything."""
    logits = model(torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1].float() / temperature
    return logits.log_softmax(-1).gather(1, torch.tensor(answer)[:, None])[:, 0]


def greedy(model: Any, prompt: list[int], limit: int, stop_ids: Any) -> list[int]:
    """The answer of `generate`."""
    out = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        max_new_tokens=limit,
        do_sample=False,
        eos_token_id=list(stop_ids) or None,
        pad_token_id=0,
    )
    return out[0, len(prompt) :].tolist()

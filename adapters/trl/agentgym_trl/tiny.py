"""A small untrained language model and its tokenizer, for the demo and for tests, without downloads.

The tokenizer is a byte-level BPE. Its tokens are bytes, the common words of the environment's texts, and pairs of
letters to spell all other words. It encodes any text without loss, and the usual texts in few tokens. The model is a
Llama of about 0.6 million parameters with random weights.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from agentgym_envs.errors import UsageError

PAD, END = "<|pad|>", "<|end|>"
ROLES = ["<|system|>", "<|user|>", "<|assistant|>"]
CHAT_TEMPLATE = (  # one token per role: longer headers would fill half of a small model's context
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_CONSONANTS, _VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"
_SPELLING = rf" ?[{_CONSONANTS}][{_VOWELS}]| ?[A-Za-z]| ?\d| ?[^\sA-Za-z\d]|\s"
_COMMON = 20
"""The min number of texts with a word for it to be a token of its own."""


def make_tokenizer(corpus: Iterable[str], *, closed: bool = False) -> PreTrainedTokenizerFast:
    """A lossless tokenizer whose tokens are bytes, the common words of `corpus`, and parts of other words.

    Other words are spelled in letters and in pairs of consonant and vowel, so that a small model can copy unseen words,
    such as the names of an invented world. With `closed`, every word of `corpus` is a token and other words are spelled
    in bytes: sequences and vocabulary are shorter, for environments that use few words.
    """
    words = _common_words(corpus, 1 if closed else _COMMON)
    splitter = _splitter(words)
    pairs = [] if closed else [*(c + v for c in _CONSONANTS for v in _VOWELS), *string.ascii_letters]
    units = [*words, *pairs, *string.digits, *string.punctuation]
    pieces = {piece for unit in units for text in (unit, f" {unit}") for piece, _ in splitter.pre_tokenize_str(text)}
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*alphabet, *sorted(pieces - set(alphabet))])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    backend.pre_tokenizer = splitter
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token=END, pad_token=PAD, additional_special_tokens=ROLES, padding_side="left"
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _common_words(texts: Iterable[str], minimum: int) -> list[str]:
    count = Counter(word for text in texts for word in set(re.findall("[A-Za-z]+", text)))
    return sorted(word for word, times in count.items() if times >= minimum)


def _splitter(words: Sequence[str]) -> Any:
    whole = [rf" ?(?<![A-Za-z])(?:{'|'.join(words)})(?![A-Za-z])"] if words else []
    pattern = Regex("|".join([*whole, _SPELLING]))
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(pattern, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )


def make_model(
    tokenizer: Any,
    *,
    seed: int = 0,
    hidden_size: int = 128,
    layers: int = 3,
    heads: int = 4,
    embedding_std: float = 0.05,
) -> LlamaForCausalLM:
    """An untrained model for a tokenizer; equal seeds give equal weights, and global random state does not change.

    `embedding_std` is the standard deviation of the embeddings, which are also the weights of the output.
    """
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=2 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        torch.nn.init.normal_(model.get_input_embeddings().weight, std=embedding_std)
    return model


def save_tiny_model(
    out: str | Path,
    corpus: Iterable[str],
    *,
    seed: int = 0,
    closed: bool = False,
    embedding_std: float = 0.05,
    **sizes: int,
) -> dict[str, Any]:
    """Make a model and a tokenizer and save them in `out`, for `from_pretrained`; return their sizes.

    `closed` is the option of `make_tokenizer`; `embedding_std` and `sizes` (`hidden_size`, `layers`, `heads`) are those
    of `make_model`.

    Raises:
        UsageError: `out` exists and is not an empty directory; the sizes do not fit together.
    """
    _check_sizes(**sizes)
    path = Path(out)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} exists and is not an empty directory; choose another directory")
    tokenizer = make_tokenizer(corpus, closed=closed)
    model = make_model(tokenizer, seed=seed, embedding_std=embedding_std, **sizes)
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    facts = {"parameters": sum(p.numel() for p in model.parameters()), "vocabulary": len(tokenizer), "seed": seed}
    (path / "tiny_model.json").write_text(json.dumps(facts) + "\n")
    return facts


def _check_sizes(hidden_size: int = 128, layers: int = 3, heads: int = 4) -> None:
    """Raise UsageError unless each head has an even width: rotary embeddings rotate pairs."""
    if min(hidden_size, layers, heads) < 1 or hidden_size % (2 * heads):
        raise UsageError(
            f"sizes must be positive and the hidden size a multiple of twice the heads, got hidden size {hidden_size}, "
            f"{layers} layers, {heads} heads"
        )

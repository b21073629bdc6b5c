"""A tokenizer like SentencePiece: `▁` for a space, bytes as `<0x41>`, and no space before the first word."""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from tests.rollout.families import WITH_EOS

_WORDS = ["▁up", "▁go", "▁", "a", "é", "到"]


def sentencepiece() -> Any:
    """A tokenizer with a few words and characters, and bytes for the rest."""
    special = {"<unk>": 0, "<s>": 1, "</s>": 2}
    names = [*(f"<0x{byte:02X}>" for byte in range(256)), *_WORDS, *"upgo"]
    vocabulary = special | {name: number for number, name in enumerate(names, len(special))}
    merges = [("u", "p"), ("g", "o"), ("▁", "up"), ("▁", "go")]
    vocabulary |= {word: len(vocabulary) + number for number, word in enumerate(("up", "go"))}
    backend = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    tokenizer.chat_template = WITH_EOS
    return tokenizer

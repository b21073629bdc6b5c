"""Tokenizers with the special tokens and chat templates of the model families, and an environment with given texts.

Every tokenizer is made here: one token a byte, with the byte as its id, except for the word "up", which is token 256.
Special tokens follow from 257 in the order of `Family.special`. So expected ids can be written by hand.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.rollout import ChatCodec, EpisodeSpec, Limits, ScriptedEngine, TokenTrajectory, play
from agentgym_envs.task import Task, TaskTable

UP = 256

SMOLLM2 = (
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im_start|>system\nYou are a helpful AI"
    " assistant named SmolLM<|im_end|>\n{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WITH_EOS = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}Assistant: {{ m.content }}{{ eos_token }}\n"
    "{% else %}{{ m.role | capitalize }}: {{ m.content }}\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}Assistant: {% endif %}"
)
WITHOUT_EOS = (
    "{% for m in messages %}{{ m.role | capitalize }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant: {% endif %}"
)
NO_SYSTEM = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}"
    "{% endif %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %}{{ m.content }}{{ eos_token }}"
    "{% endif %}{% endfor %}"
)
TRIMMING = (
    "{{ bos_token }}{% for m in messages %}<|turn|>{{ m.role }}\n{{ m.content | trim }}<|done|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
HEADERS_ONLY = (  # as in GLM: the header of the next role ends an answer
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def trl_template(name: str) -> str:
    """The text of a chat template that TRL ships."""
    spec = importlib.util.find_spec("trl")
    assert spec is not None and spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]) / "chat_templates" / f"{name}.jinja").read_text("utf-8")


@dataclass(frozen=True)
class Family:
    """A template with its special tokens. `named` are those that the tokenizer has a role for."""

    template: str
    special: tuple[str, ...]
    named: dict[str, str]
    ordinary: tuple[str, ...] = ()
    thought: str = ""

    def tokenizer(self) -> Any:
        backend = Tokenizer(models.BPE(vocab=_vocabulary(), merges=[("u", "p")]))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.decoder = decoders.ByteLevel()
        backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in self.special])
        backend.add_tokens([AddedToken(token, special=False, normalized=False) for token in self.ordinary])
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **self.named)
        tokenizer.chat_template = self.template
        return tokenizer


def _vocabulary() -> dict[str, int]:
    """The vocabulary of byte-level BPE: printable bytes are themselves, others are characters from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {**{b: chr(b) for b in printable}, **{b: chr(256 + n) for n, b in enumerate(others)}}
    return {**{characters[byte]: byte for byte in range(256)}, "up": UP}


_QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_QWEN_NAMED = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
_QWEN_WORDS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
_LLAMA = ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
_PLAIN = {"bos_token": "<s>", "eos_token": "</s>"}

FAMILIES = {
    "qwen2.5": Family(trl_template("qwen2_5"), _QWEN, _QWEN_NAMED, _QWEN_WORDS),
    "qwen2.5-training": Family(trl_template("qwen2_5_training"), _QWEN, _QWEN_NAMED, _QWEN_WORDS),
    "qwen3-training": Family(
        trl_template("qwen3_training"), _QWEN, _QWEN_NAMED, _QWEN_WORDS, "<think>\nI must go.\n</think>\n\n"
    ),
    # Llama-3's tokenizers give a role only to the first and last token; the headers are special tokens without one.
    "llama-3": Family(
        trl_template("llama3"), _LLAMA, {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
    ),
    "llama-3-training": Family(
        trl_template("llama3_training"), _LLAMA, {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}
    ),
    "smollm2": Family(SMOLLM2, _QWEN, {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}),
    "with-eos": Family(WITH_EOS, ("<s>", "</s>"), _PLAIN),
    "no-system": Family(NO_SYSTEM, ("<s>", "</s>"), _PLAIN),
    "trimming": Family(TRIMMING, ("<s>", "</s>", "<|turn|>", "<|done|>"), _PLAIN),
    "headers-only": Family(
        HEADERS_ONLY, ("<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"), _PLAIN
    ),
}  # fmt: skip
MISTRAL = Family(
    NO_SYSTEM.replace("{% else %}{{ m.content }}", "{% else %} {{ m.content }}"),
    ("<s>", "</s>", "[INST]", "[/INST]"),
    _PLAIN,
)
"""Not in `FAMILIES`: a space before each answer belongs to the answer, and scripted answers have none."""
NO_END = Family(WITHOUT_EOS, ("<s>", "</s>"), _PLAIN)
"""Not in `FAMILIES`: its rendering shows no end of an answer, so it never equals a conversation's ids."""


class TalkEnv(TextEnv):
    """Returns the texts of `says` one by one, with `rewards`. The last one ends the episode."""

    tasks = TaskTable("talk", 1, [Task("talk/1", "train", "talk", "talk", {})])

    def __init__(self, says: Sequence[str], rewards: Sequence[float] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._says, self._rewards = list(says), list(rewards)

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return self._says[0]

    def _act(self, command: str) -> Transition:
        reward = self._rewards[self._turn - 1] if self._rewards else 0.0
        return Transition(self._says[self._turn], reward, self._turn + 1 == len(self._says))

    def _command(self, action: str) -> str:
        return action  # any text is allowed here, also invalid Unicode


def roll(
    codec: ChatCodec,
    answers: Sequence[Sequence[int]],
    says: Sequence[str],
    *,
    instructions: str = "Be brief.",
    rewards: Sequence[float] = (),
    limits: Limits | None = None,
) -> TokenTrajectory:
    """Play an episode with given answers and observations."""
    env = TalkEnv(says, rewards, instructions=instructions)
    engine = ScriptedEngine(answers, codec.stop_ids)
    return asyncio.run(play(env, engine, codec, EpisodeSpec(), limits=limits or Limits()))


def spans(tokens: TokenTrajectory) -> list[tuple[int, list[int]]]:
    """The ids after the prompt, in runs of equal mask: (mask, ids)."""
    runs: list[tuple[int, list[int]]] = []
    for token, mask in zip(tokens.ids, tokens.assistant_mask, strict=True):
        if not runs or runs[-1][0] != mask:
            runs.append((mask, []))
        runs[-1][1].append(token)
    return runs

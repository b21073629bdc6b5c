"""A chat codec for tests without a tokenizer."""

from __future__ import annotations

from typing import Any, ClassVar


class Codec:
    """A codec in which every character is a token."""

    stop_ids: ClassVar[frozenset[int]] = frozenset({10})
    turn_end_id = 10
    rewrites = False
    tools = ()

    def continues(self, messages: Any) -> bool:
        return True

    def encode_prompt(self, messages: Any) -> list[int]:
        return [ord(letter) for message in messages for letter in message["content"]]

    def with_tools(self, tools: Any) -> Codec:
        return self

    def encode_observation(self, text: str, answer: str = "") -> list[int]:
        return [ord(letter) for letter in text]

    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids)).strip()

    def pieces(self, ids: list[int]) -> list[str]:
        return list(map(chr, ids))

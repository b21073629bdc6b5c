"""The interface of a tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Tokenizer(Protocol):
    """The part of a Hugging Face tokenizer that this package uses."""

    chat_template: Any
    eos_token: Any
    eos_token_id: Any

    @property
    def all_special_tokens(self) -> list[str]: ...  # noqa: D102
    @property
    def added_tokens_decoder(self) -> Mapping[int, Any]: ...  # noqa: D102
    def apply_chat_template(self, conversation: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def __call__(self, text: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def decode(self, token_ids: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def convert_tokens_to_ids(self, tokens: Any) -> Any: ...  # noqa: D102

"""What every single token says: pieces of text that join to the text of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_envs.rollout.chat import Tokenizer

_BROKEN = "\ufffd"
_LONGEST = 16
"""How many tokens are looked at together at most; four bytes make a character, so longer runs are broken anyway."""


class Pieces:
    """Splits the text of token ids by token.

    A token that holds only a part of a character (a byte or two of an emoji) says nothing, and the one that completes
    the character says it. What a token says does not hang on its neighbours otherwise, so it is asked for once.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """`tokenizer` is a Hugging Face tokenizer."""
        self._tokenizer = tokenizer
        anchor = tokenizer("a", add_special_tokens=False)["input_ids"]
        self._anchor = list(anchor)[-1:]
        self._anchor_length = len(self._decode(self._anchor))
        self._known: dict[int, str] = {}

    def of(self, ids: Sequence[int]) -> list[str]:
        """One text a token, special tokens by their names; joined they are the decoded text.

        Beside bytes that are no text, what is readable is kept, also where the decoder (SentencePiece's) would not.
        """
        pieces: list[str] = []
        for whole, group in groupby(ids, self._is_whole):
            run = list(group)
            if not whole:
                pieces += self._characters(run, first=not pieces)
            elif pieces:
                pieces += map(self._text, run)
            else:  # some tokenizers drop the space before the first word
                pieces += [self._decode(run[:1]), *map(self._text, run[1:])]
        return pieces

    def _is_whole(self, token: int) -> bool:
        return _BROKEN not in self._text(token)

    def _text(self, token: int) -> str:
        if token not in self._known:
            self._known[token] = self._inside([token])
        return self._known[token]

    def _characters(self, run: list[int], *, first: bool) -> list[str]:
        """The pieces of tokens that share characters."""
        whole = self._decode(run) if first else self._inside(run)
        pieces = list(self._grow(run, first))
        return pieces if "".join(pieces) == whole else [""] * (len(run) - 1) + [whole]

    def _grow(self, run: list[int], first: bool) -> Iterator[str]:
        """Token by token, what is certain by then."""
        begin, said = 0, 0
        for end in range(1, len(run) + 1):
            text = self._decode(run[begin:end]) if first and begin == 0 else self._inside(run[begin:end])
            done = not text.endswith(_BROKEN) or end - begin == _LONGEST or end == len(run)
            certain = len(text) if done else max(said, len(text) - 1)  # only the last may still become a character
            yield text[said:certain]
            begin, said = (end, 0) if done else (begin, certain)

    def _inside(self, ids: list[int]) -> str:
        """The text of tokens that do not stand at the beginning."""
        return self._decode(self._anchor + ids)[self._anchor_length :]

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

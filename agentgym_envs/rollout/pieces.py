"""The text of each single token, such that the pieces join to the whole text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from agentgym_envs.rollout.tokenizer import Tokenizer

_BROKEN = "\ufffd"
_LONGEST = 16
"""The maximum number of tokens decoded together. A character has at most four bytes, so longer runs are broken text."""


class Pieces:
    """Splits the text of token ids by token.

    A token with only a part of a character (a byte or two of an emoji) gets an empty piece; the token that completes
    it gets all of it. Otherwise a token's text does not depend on its neighbors, so it is cached.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """`tokenizer` is a Hugging Face tokenizer."""
        self._tokenizer = tokenizer
        anchor = tokenizer("a", add_special_tokens=False)["input_ids"]
        self._anchor = list(anchor)[-1:]
        self._anchor_length = len(self._decode(self._anchor))
        self._known: dict[int, str] = {}

    def of(self, ids: Sequence[int]) -> list[str]:
        """One text per token, special tokens by name. The texts join to the decoded text.

        Readable text next to invalid bytes is kept, also where SentencePiece's decoder would drop it.
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
        """The pieces of successive tokens that share characters."""
        whole = self._decode(run) if first else self._inside(run)
        pieces = list(self._split(run, first))
        return pieces if "".join(pieces) == whole else [""] * (len(run) - 1) + [whole]

    def _split(self, run: list[int], first: bool) -> Iterator[str]:
        """Yield for each token the text that is certain once the token is read."""
        begin, emitted = 0, 0
        for end in range(1, len(run) + 1):
            text = self._decode(run[begin:end]) if first and begin == 0 else self._inside(run[begin:end])
            done = not text.endswith(_BROKEN) or end - begin == _LONGEST or end == len(run)
            certain = len(text) if done else max(emitted, len(text) - 1)  # the last character may be incomplete
            yield text[emitted:certain]
            begin, emitted = (end, 0) if done else (begin, certain)

    def _inside(self, ids: list[int]) -> str:
        """The text of tokens that are not the first of a sequence."""
        return self._decode(self._anchor + ids)[self._anchor_length :]

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

"""What all lexical engines have in common: which words do not count, and how many do."""

from __future__ import annotations

import re

_STOP_WORDS = (
    "a about an and are as at be been being but by can could did do does for from had has have he her hers him his "
    "how i if in into is it its may me might my no not of on or our shall she should so such than that the their "
    "them then there these they this those to us was we were what when where which while who whom whose why will "
    "with would you your"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that say nothing of what a text is about: without them a query is several times faster."""
MAX_QUERY_WORDS = 64
"""Further words of a query are not looked for."""
_UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which are written without spaces between the words."""


def spaced(text: str) -> str:
    """The text with letters of such scripts apart, so that each is a word, and what is asked for need not be all."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)

"""Text rules that all lexical engines share: stop words, query length, and scripts without spaces."""

from __future__ import annotations

import re

_STOP_WORDS = (
    "a about an and are as at be been being but by can could did do does for from had has have he her hers him his "
    "how i if in into is it its may me might my no not of on or our shall she should so such than that the their "
    "them then there these they this those to us was we were what when where which while who whom whose why will "
    "with would you your"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that carry little meaning. Without them a query is several times faster."""
MAX_QUERY_WORDS = 64
"""Further words of a query are ignored."""
_UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which are written without spaces between words."""


def spaced(text: str) -> str:
    """Put spaces around letters of scripts without spaces, so that each letter is a word and partial matches work."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)

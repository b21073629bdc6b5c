"""What all lexical engines have in common: which words do not count, and how many do."""

from __future__ import annotations

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

"""The ranking of a lexical engine: the weights of its fields, and the words that it compares. Options of an index.

The manifest of an index records the options that it was built with, so an index keeps its ranking. An index has up to
three fields: the title, the text, and the labels in the text, which are the words before a colon ("Climate: ...").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.errors import UsageError
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.words import spaced

Analyze = Callable[[str], list[str]]
TITLE_WEIGHT = 3.0
"""The default weight of the title, relative to the text."""
COMMON_SHARE = 0.3
"""With `presence`, words in a larger share of the passages are ignored, unless a query has no others. They say little
and take most of the time.
"""
MOST_WORDS = 8
"""With `presence`, further words of a query than the rarest are ignored, but not those as rare as the last of these."""
_QUESTION_WORDS = frozenset(["s", "t", "mani", "much", "come", "go", "like", "most", "get", "what", "ie"])
"""Stems of words that only belong to the form of a question."""
_LABEL = re.compile(r"(?:^|(?<=[.)\]] ))([^.:;]{2,80}?):(?= )", re.MULTILINE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SIGNED = re.compile(r"(?<![\w.])([.+#])(\w+)")
_SIGNS = {".": "dotsign", "+": "plussign", "#": "hashsign"}


class RankingOptions(NamedTuple):
    """The options of a lexical engine.

    Attributes:
        title_weight: the weight of a match in the title; the text has 1.
        label_weight: the weight of a match in a label; 0 leaves the field out.
        presence: count a word of the text or a label once, however often it occurs and however long the passage is.
            Otherwise BM25 counts occurrences relative to the length.
        title_letters: compare only that many letters of the words of titles, so that "Austrian" matches "Austria"; 0
            compares whole words.
        signs: take "1,234" for one number, and keep a sign before a word (".de", "+43").
    """

    title_weight: float = TITLE_WEIGHT
    label_weight: float = 0.0
    presence: bool = False
    title_letters: int = 0
    signs: bool = False

    def prepare(self, text: str) -> str:
        """Return a text as it is given to the analyzer."""
        text = spaced(text)
        if self.signs:
            text = _SIGNED.sub(lambda found: f"{found[2]} {_SIGNS[found[1]]}{found[2]}", _THOUSANDS.sub("", text))
        return text

    def labels(self, passage: Passage) -> str:
        """Return the labels in the text of a passage, prepared; its title at the beginning of the text is no label."""
        if not self.label_weight:
            return ""
        return self.prepare(" ".join(_LABEL.findall(passage.text.removeprefix(passage.title))))

    def of_title(self, words: Sequence[str]) -> list[str]:
        """Return words as titles have them."""
        return [word[: self.title_letters] for word in words] if self.title_letters else list(words)

    def of_query(self, words: list[str]) -> list[str]:
        """Return the words of a query without those that only belong to its form, unless it has no others."""
        return [word for word in words if word not in _QUESTION_WORDS] or words if self.presence else words


CLASSIC = RankingOptions()
RANKINGS: Mapping[str, RankingOptions] = {
    "classic": CLASSIC,
    "natural": RankingOptions(title_weight=1.2, label_weight=0.8, presence=True, title_letters=6, signs=True),
}
"""Rankings by name. "classic" finds the page that a query names. "natural" was chosen on natural questions about the
embedded corpus (`benchmarks.search_questions`).
"""
OPTIONS = ("ranking", *RankingOptions._fields)


def read_ranking(options: Mapping[str, Any]) -> RankingOptions:
    """Return the ranking of options: `ranking`, a name in `RANKINGS`, and changes to it. Raises UsageError."""
    name = options.get("ranking", "classic")
    if name not in RANKINGS:
        raise UsageError(f"there is no ranking {name!r}; choose one of {', '.join(RANKINGS)}")
    changes = {key: value for key, value in options.items() if key != "ranking"}
    for key, value in changes.items():
        _check(key, value)
    return RANKINGS[name]._replace(**changes)


def _check(name: str, value: object) -> None:
    if name not in RankingOptions._fields:
        raise UsageError(f"a lexical engine has no option {name!r}; it takes {', '.join(OPTIONS)}")
    if name in ("presence", "signs"):
        valid, form = isinstance(value, bool), "true or false"
    elif name == "title_letters":
        valid, form = type(value) is int and 0 <= value <= 64, "a whole number from 0 to 64"
    else:
        valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100
        form = "a number from 0 to 100"
    if not valid:
        raise UsageError(f"{name} must be {form}, got {value!r}")


def rarest(words: Sequence[str], counts: Sequence[int], passages: int) -> Sequence[str]:
    """Return the words that are not common, or all if all are; at most the `MOST_WORDS` rarest of them.

    `counts` has the number of passages with each word in their texts. Unknown words are kept: a title may have them.
    """
    most = COMMON_SHARE * passages
    known = sorted(count for count in counts if 0 < count <= most)
    if len(known) > MOST_WORDS:
        most = known[MOST_WORDS - 1]
    return [word for word, count in zip(words, counts, strict=True) if count <= most] or words


def joined(words: Iterable[str]) -> str:
    """Return analyzed words as a text that is only split at spaces."""
    return " ".join(words)

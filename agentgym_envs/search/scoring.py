"""Scores of answers, of retrieval and of the format of turns: pure functions with values in [0, 1].

`em` is exactly Search-R1's exact match. `em_plus` is a more lenient variant. `search_r1_score` is Search-R1's score of
a whole transcript, including its quirks.

Source: https://github.com/PeterGriffinJin/Search-R1 (qa_em.py, qa_em_format.py; arXiv 2503.09516), whose normalisation
and F1 are SQuAD's (arXiv 1606.05250).
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_ACCENTS = dict.fromkeys(range(0x300, 0x370))  # of Latin, Greek and Cyrillic; in other scripts, marks are vowels
_QUOTES = dict.fromkeys(map(ord, "\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u2018\u2019\u201b\u2032"), "'")
_MINUS = {0x2212: "-", 0x2043: "-"}
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)  # letters that Unicode does not decompose


def normalise(text: str) -> str:
    """Normalise as SQuAD does: lower case; no ASCII punctuation, articles or extra white space.

    Punctuation is removed without leaving a space.
    """
    words = _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION))
    return " ".join(words.split())


def em(prediction: str, answers: str | Sequence[str]) -> bool:
    """Return true if the prediction equals one of the answers after Search-R1's normalisation.

    Accents, curly quotes and dashes matter. "Guinea-Bissau" becomes "guineabissau" and not "guinea bissau". An answer
    that is empty after normalisation ("The") equals any prediction that is empty after normalisation.
    """
    wanted = normalise(prediction)
    return any(normalise(answer) == wanted for answer in _listed(answers))


def em_plus(prediction: str, answers: str | Sequence[str]) -> bool:
    """Return true if `em` is, or if only accents, ligatures, widths, punctuation, or hyphens and spaces differ."""
    if em(prediction, answers):
        return True
    wanted = _foldings(prediction)
    return any(wanted & _foldings(answer) for answer in _listed(answers))


def subem(prediction: str, answers: str | Sequence[str]) -> bool:
    """Return true if the prediction contains one of the answers; answers that normalise to nothing do not count."""
    text = normalise(prediction)
    return any(wanted in text for wanted in map(normalise, _listed(answers)) if wanted)


def f1(prediction: str, answers: str | Sequence[str]) -> float:
    """Return the word F1 with the closest answer; 0 without answers.

    If the prediction or an answer normalises to nothing, their F1 is 1 if both do, else 0.
    """
    words = normalise(prediction).split()
    return max((_overlap(words, normalise(answer).split()) for answer in _listed(answers)), default=0.0)


def recall(found: Iterable[str], gold: Collection[str]) -> float | None:
    """Return the share of the gold passages (ids) that were found; None if no gold passages are known."""
    wanted = set(gold)
    return len(wanted.intersection(found)) / len(wanted) if wanted else None


def search_r1_score(transcript: str, answers: str | Sequence[str]) -> float:
    """Return Search-R1's score of a whole transcript, including the prompt and retrieved text: 1 or 0.

    The last `<answer>` counts, even if it is in a retrieved text. Search-R1's prompt contains an example `<answer>`, so
    a transcript with only one has no answer.
    """
    written = list(_answers_in(transcript))
    return float(len(written) > 1 and em(written[-1], answers))


def well_formed(turns: Sequence[str], actions: Sequence[str] = ("search",)) -> bool:
    """Return true if each turn is a thought and one of the actions, and the last one is a thought and an answer.

    Args:
        turns: the text of the model, turn by turn, without retrieved text. Only white space may be between and around
            the tags, and they must not contain further tags.
        actions: the names of the tags of the turns before the last one.
    """
    if not turns:
        return False
    tag = _tags_of(("think", *actions, "information", "answer"))
    allowed = [actions] * (len(turns) - 1) + [("answer",)]
    return all(_is_thought_and(names, tag.split(turn)) for names, turn in zip(allowed, turns, strict=True))


class RewardWeights(NamedTuple):
    """The weights of the terms of Search-R1's reward (`qa_em_format.py`), with the names there.

    Search-R1 v0.3 trains with 0.2, 0 and 0.1.
    """

    structure_format_score: float = 0.0
    """For well-formed turns."""
    retrieval_score: float = 0.0
    """For well-formed turns whose observations held an accepted answer, although the agent's answer is wrong."""
    final_format_score: float = 0.0
    """For a wrong answer after ill-formed turns. It rewards any guess."""


def combine_rewards(score: float, formed: bool, retrieved: bool, weights: RewardWeights) -> float:
    """Combine the score of an answer with the terms for format and retrieval.

    For exact match this is Search-R1's table; for a score between 0 and 1, the value in proportion between its rows.

    | answer | well formed | ill formed |
    |---|---|---|
    | right | 1 | 1 - structure |
    | wrong, the observations held an accepted answer | structure + retrieval | final |
    | wrong otherwise | structure | final |
    """
    structure, retrieval, final = weights
    right = 1.0 if formed else 1.0 - structure
    wrong = structure + retrieval * retrieved if formed else final
    return score * right + (1.0 - score) * wrong


def _listed(answers: str | Sequence[str]) -> Sequence[str]:
    return [answers] if isinstance(answers, str) else answers


def _foldings(text: str) -> set[str]:
    """Forms of the text in plain letters, with each hyphen as a space and removed; empty forms are left out."""
    plain = unicodedata.normalize("NFKD", text.translate(_QUOTES)).translate(_ACCENTS)
    plain = plain.casefold().translate(_LETTERS).translate(_MINUS)
    spaced = "".join(map(_plain_sign, plain))
    return {normalise(form) for form in (spaced.replace("-", " "), spaced)} - {""}


def _plain_sign(character: str) -> str:
    """Replace any dash by a hyphen, and remove other non-ASCII punctuation."""
    if character.isascii():
        return character
    kind = unicodedata.category(character)
    return "-" if kind == "Pd" else "" if kind.startswith("P") else character


def _overlap(words: list[str], wanted: list[str]) -> float:
    if not words or not wanted:
        return float(words == wanted)
    common = (Counter(words) & Counter(wanted)).total()
    return 2 * common / (len(words) + len(wanted))


def _answers_in(transcript: str) -> Iterator[str]:
    """Yield the stripped content of each `<answer>...</answer>`, in linear time (a regex would be quadratic)."""
    end = 0
    while (start := transcript.find("<answer>", end)) >= 0:
        close = transcript.find("</answer>", start)
        if close < 0:
            return
        yield transcript[start + len("<answer>") : close].strip()
        end = close + len("</answer>")


def _is_thought_and(actions: Collection[str], pieces: Sequence[str]) -> bool:
    """Check a turn that was split at its tags, so that every second piece is a tag."""
    outside, tags = pieces[0::4], list(pieces[1::2])
    wanted = (["<think>", "</think>", f"<{action}>", f"</{action}>"] for action in actions)
    return tags in wanted and not "".join(outside).strip()


@lru_cache
def _tags_of(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(</?(?:{'|'.join(names)})>)")

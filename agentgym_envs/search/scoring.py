"""How an answer is scored, and how what was found and written is: pure functions, everything in [0, 1].

`em` is Search-R1's exact match bit for bit, `em_plus` what it should have been, `search_r1_score` its whole scoring of
a transcript, oddities included.

Source: https://github.com/PeterGriffinJin/Search-R1 (qa_em.py, qa_em_format.py; arXiv 2503.09516), whose normalisation
and F1 are SQuAD's (arXiv 1606.05250).
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_TAG = re.compile(r"(</?(?:think|search|information|answer)>)")
_ACCENTS = dict.fromkeys(range(0x300, 0x370))  # of Latin, Greek and Cyrillic; other scripts write vowels as marks
_QUOTES = dict.fromkeys(map(ord, "\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u2018\u2019\u201b\u2032"), "'")
_MINUS = {0x2212: "-", 0x2043: "-"}
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)  # those that Unicode does not take apart


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation (which leaves no space), the articles and superfluous white space."""
    words = _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION))
    return " ".join(words.split())


def em(prediction: str, answers: str | Sequence[str]) -> bool:
    """Whether the prediction is one of the answers, as Search-R1 sees it.

    Accents, curly quotes and dashes count, "Guinea-Bissau" is "guineabissau" and not "guinea bissau", and an answer of
    which nothing is left ("The") equals a prediction of which nothing is left.
    """
    wanted = normalise(prediction)
    return any(normalise(answer) == wanted for answer in _listed(answers))


def em_plus(prediction: str, answers: str | Sequence[str]) -> bool:
    """`em`, or equal but for accents, ligatures and widths, punctuation of any script, and hyphens for spaces."""
    if em(prediction, answers):
        return True
    wanted = _foldings(prediction)
    return any(wanted & _foldings(answer) for answer in _listed(answers))


def subem(prediction: str, answers: str | Sequence[str]) -> bool:
    """Whether one of the answers stands in the prediction; one of which nothing is left ("The") does not count."""
    text = normalise(prediction)
    return any(wanted in text for wanted in map(normalise, _listed(answers)) if wanted)


def f1(prediction: str, answers: str | Sequence[str]) -> float:
    """The F1 of words with the answer that is nearest; 0 without answers.

    Where nothing is left of either, it is 1 if nothing is left of both.
    """
    words = normalise(prediction).split()
    return max((_overlap(words, normalise(answer).split()) for answer in _listed(answers)), default=0.0)


def recall(found: Iterable[str], gold: Collection[str]) -> float | None:
    """The share of the gold passages (ids) among those found; None if no gold passages are known."""
    wanted = set(gold)
    return len(wanted.intersection(found)) / len(wanted) if wanted else None


def search_r1_score(transcript: str, answers: str | Sequence[str]) -> float:
    """Search-R1's score of a whole transcript, prompt and retrieved text included: 1 or 0.

    The last `<answer>` counts, whoever wrote it; since its prompt shows one as an example, a single one is no answer.
    """
    written = list(_answers_in(transcript))
    return float(len(written) > 1 and em(written[-1], answers))


def well_formed(turns: Sequence[str]) -> bool:
    """Whether the model wrote each turn as it should: a thought and a search, and last a thought and an answer.

    Args:
        turns: what the model wrote, turn by turn; nothing that was retrieved. Between and around the tags there may be
            white space only, and in them no further tag of ours.
    """
    return bool(turns) and all(
        _is_thought_and(action, turn)
        for action, turn in zip(["search"] * (len(turns) - 1) + ["answer"], turns, strict=True)
    )


def with_form(worth: float, formed: bool, weight: float) -> float:
    """What an answer is worth, from 0 to 1, when the form of the turns is worth `weight` of it.

    For exact match this is the table of Search-R1 v0.3, whose weight is 0.2, without its 0.1 for what is wrong and ill
    formed, which rewards a guess of any shape:

    | answer | well formed | ill formed |
    |---|---|---|
    | right | 1 | 1 - weight |
    | wrong | weight | 0 |
    """
    return (1.0 - weight) * worth + weight * formed


def _listed(answers: str | Sequence[str]) -> Sequence[str]:
    return [answers] if isinstance(answers, str) else answers


def _foldings(text: str) -> set[str]:
    """The text in plain letters, with a space and with nothing for each hyphen; without what is empty then."""
    plain = unicodedata.normalize("NFKD", text.translate(_QUOTES)).translate(_ACCENTS)
    plain = plain.casefold().translate(_LETTERS).translate(_MINUS)
    spaced = "".join(map(_plain_sign, plain))
    return {normalise(form) for form in (spaced.replace("-", " "), spaced)} - {""}


def _plain_sign(character: str) -> str:
    """A hyphen for any dash, nothing for any other punctuation that is not ASCII."""
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
    """What stands in each `<answer>...</answer>`, stripped; in linear time, as a regex would not be."""
    end = 0
    while (start := transcript.find("<answer>", end)) >= 0:
        close = transcript.find("</answer>", start)
        if close < 0:
            return
        yield transcript[start + len("<answer>") : close].strip()
        end = close + len("</answer>")


def _is_thought_and(action: str, turn: str) -> bool:
    outside, tags = _TAG.split(turn)[0::4], _TAG.split(turn)[1::2]
    return tags == ["<think>", "</think>", f"<{action}>", f"</{action}>"] and not "".join(outside).strip()

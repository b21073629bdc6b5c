"""The wording of answers: layout, number words, repetitions of the question, negations and hedges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from agentgym_envs.webarena.evaluators.values import clean

_LINK = re.compile(r"!?\[([^\[\]\n]+)\]\([^()\s]*\)")
_RULE = re.compile(r"^[\s|:-]*\|[\s|:-]*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:(?:[-*+•·‣◦–—]|#{1,6}|>)[ \t]+)+", re.MULTILINE)
_NUMBERING = re.compile(r"^[ \t]*(\d{1,2})[.)][ \t]+", re.MULTILINE)
_ESCAPE = re.compile(r"\\([^\w\s])")
_EMPHASIS = re.compile(r"\*+|`+|~~|(?<!\w)_+(?=\w)|(?<=[\w.!?)%])_+(?!\w)")
_DASH = re.compile(r"—|(?<=[^\W\d])–|(?<=\))–|–(?!\d)")
_LOOSE = re.compile(r"[()\"]|\[(?!\d+\])|(?<!\d)\]|,(?!\d)|(?<!\w)'|'(?!\w)")
_SENTENCES = re.compile(r"(?<=[.?!:;])\s+")
_SIGNIFICANT = re.compile(r"\d|[^\W\d_]{5}")
_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {
    **{word: number for number, word in enumerate(_SMALL)},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
}
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_BEFORE_PRONOUN = ("the", "this", "that", "which", "each", "every", "any", "no", "last", "other", "another", *_ORDINALS)
_PRONOUN = "".join(rf"(?<!\b{word} )" for word in (*_BEFORE_PRONOUN, "the only"))
_ONE = rf"{_PRONOUN}one(?! (?:that|which|who|whose|with|i)\b)"
_NUMBER_WORD = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<rest>{'|'.join(_SMALL[1:10])}))?"
    rf"|(?P<small>{'|'.join(('zero', *_SMALL[2:]))})|(?P<one>{_ONE}))\b"
)

MARK, GAP = "\x01", "\x02"
"""Replacements for a value that was found in an answer, and for a part that was removed."""
_RESERVED = {ord(MARK): " ", ord(GAP): " "}
_ASIDE = r"counting|includ(?:e|es|ed|ing)|considering|yet"
"""Words after "not" that deny no answer."""
_NEGATION = re.compile(
    rf"\bnot\b(?! (?:{_ASIDE})\b)"
    r"|\b(?:never|neither|nor|cannot|unlike|except|doubt|hardly|no longer)\b"
    r"|\b(?:(?:any|every|no)(?:thing| ?one|body|1)|all) but\b|\b(?:other|rather) than\b|\binstead of\b"
    rf"|\b(?:no|without|before|after|prior to)\s+(?:\S+\s+)?(?={MARK})|^no\b"
)
_RETRACTION = re.compile(r"\b(?:right|correct|true|sure|certain|answer|mind|know|tell|verify|confirm|determine)\b")
_WRONG = re.compile(r"\b(?:wrong|incorrect|untrue|false)\b")
_NO_DENIAL = rf"(?! (?:(?:so |very |too |that )?(?:far|long|much|many|hard|difficult|expensive)|{_ASIDE})\b)"
_DENIED_LIST = re.compile(
    rf"(?:^|[.?!;]\s+)(?:(?:(?:it|that|this) (?:is |was )?)?(?:not|never)\b{_NO_DENIAL}|neither\b"
    r"|(?:it|that|this) (?:cannot|could not|will not|might not) be\b"
    r"|i (?:doubt|(?:do not|cannot|would not|would never|never) (?:think|believe|say))\b"
    r"|(?:any|every|some|no)(?:thing| ?1|body) (?:but|except|other than)\b|all (?:but|except)\b)"
    rf"[^.?!;:]*:\s+{MARK}"
)
"""As in "it is not by car: 1 min", where a colon ends the part that denies; "it is not far: 1 min" denies nothing."""
_HEDGE = re.compile(
    r"\b(?:or|maybe|perhaps|possibly|probably|presumably|likely|either|otherwise|alternatively|unless|guess(?:ing)?"
    r"|unsure|uncertain|unclear|(?:could|might|may) (?:also |well )?be|n/a)\b"
)


@lru_cache(maxsize=20_000)
def normal(text: str) -> str:
    """Return a `plain` text without quotation marks, parentheses and commas between words."""
    return " ".join(_LOOSE.sub(" ", plain(text)).split())


def plain(text: str) -> str:
    """Return a cleaned text without Markdown, with digits for number words, and with "is not" for "isn't"."""
    text = clean(_without_layout(text.translate(_RESERVED))).replace("n't", " not").replace("&", " and ")
    return " ".join(_NUMBER_WORD.sub(_digits, text).split())


def _without_layout(text: str) -> str:
    """Remove the marks of Markdown and lists; a dash between words gets spaces around it."""
    text = _BULLET.sub("", _RULE.sub("", _LINK.sub(r"\1", text)))
    numbers = [int(number) for number in _NUMBERING.findall(text)]
    if len(numbers) > 1 and all(number in (1, last + 1) for last, number in zip([0, *numbers], numbers, strict=False)):
        text = _NUMBERING.sub("", text)
    return _DASH.sub(" - ", _EMPHASIS.sub("", _ESCAPE.sub(r"\1", text.replace("|", " "))))


def _digits(match: re.Match[str]) -> str:
    words = (match["tens"], match["rest"], match["small"], match["one"])
    return str(sum(_VALUES[word] for word in words if word))


def sentences(text: str) -> list[str]:
    """Split a text after full stops, question marks, exclamation marks, colons and semicolons."""
    return _SENTENCES.split(text)


def without_question(text: str, question: str) -> str:
    """Remove the question, or whole sentences of it, from an answer; both are normal."""
    for part in (question, *(one for one in re.split(r"(?<=[.?!:])\s+", question) if one.count(" ") > 2)):
        text = text.replace(part, " ") if part else text
    return " ".join(text.split())


def without_repeats(text: str, question: str) -> tuple[str, str]:
    """Remove the runs of words that repeat the question: three words or more, or two with a number.

    A run like "it is not" may have another meaning, so one of the words is long or a number. Returns the rest, and the
    runs; both texts are normal.
    """
    runs = list(_runs(text, f" {' '.join(_TOKEN.findall(question))} "))
    rest, end = [], 0
    for start, stop in runs:
        rest.append(text[end:start])
        end = stop
    return f" {GAP} ".join([*rest, text[end:]]), f" {GAP} ".join(text[start:stop] for start, stop in runs)


def _runs(text: str, question: str) -> Iterator[tuple[int, int]]:
    tokens = list(_TOKEN.finditer(text))
    first = 0
    while first < len(tokens):
        last, words = first, ""
        while last < len(tokens) and f"{words} {tokens[last][0]} " in question:
            words += f" {tokens[last][0]}"
            last += 1
        if last - first > 1 and _SIGNIFICANT.search(words) and (last - first > 2 or re.search(r"\d", words)):
            yield tokens[first].start(), tokens[last - 1].end()
            first = last
        else:
            first += 1


def hedges(text: str) -> bool:
    """Return True if a normal text leaves its answer open ("maybe", "or"); it must not contain the answer itself."""
    return _HEDGE.search(text) is not None


def denies(text: str) -> bool:
    """Return True if a normal text takes its answer back or denies it; `MARK` represents the answer."""
    if _WRONG.search(text) or _DENIED_LIST.search(text):
        return True
    return any(_denies(sentence) for sentence in sentences(text))


def _denies(sentence: str) -> bool:
    if not _NEGATION.search(sentence):
        return False
    return MARK in sentence or _RETRACTION.search(sentence) is not None or len(sentence.split()) <= 3

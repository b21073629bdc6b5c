"""Numbers, amounts, dates and times of day in answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from agentgym_envs.webarena.evaluators.values import (
    PART_OF_DATE,
    Found,
    find_dates,
    find_quantities,
    find_times,
    read_date,
    read_quantity,
    read_time,
    unit_of,
)
from agentgym_envs.webarena.evaluators.wording import GAP, MARK

_NUMBER = r"[$€£¥]? ?\d+(?:[.,]\d+)*"
_THRESHOLD = re.compile(
    r"\b(?:below|under|above|over|beyond|(?:more|greater|higher|less|fewer|lower) than|at least|at most"
    rf"|exceed(?:ing|s)?|(?:minimum|maximum) of) {_NUMBER}"
    rf"|{_NUMBER}\+|{_NUMBER} (?:\w+ )?(?:or|and) (?:more|fewer|less|higher|lower|above|below|over)\b"
)
_TOTAL = re.compile(
    r"(?<=\d) ?(?:[a-z]+ )?(?:out )?of (?:the |a total of )?\d+\b(?![.,]\d)|^(?:out )?of (?:the )?\d+ (?!of\b)(?=[a-z])"
)
_SCALE = re.compile(r"(?<=\d\.\d)/(?:5|10|100)\b|(?<=\d\.\d\d)/(?:5|10|100)\b")
_LABEL = re.compile(
    r"\bpage \d+ (?:of|/) \d+|(?<!\bthe )(?<!\bthis )\b(?:page|step|tab|row|line|item|nr|no\.|order|invoice|element|id"
    r"|section|option|version) #?\d+\b|#\d+"
    rf"|(?:(?<=\S )|(?<={MARK}  ))\[\d+\]"  # a name before it may be taken already, with a space on both sides
)
_CURRENCIES = {"$", "€", "£", "¥"}
_NONE = re.compile(r"\b(?:none|no (?:one\b|1\b)|nobody|never(?! (?:\w+ )?\d)|not (?:\w+ )?any|no(?= [a-z]))\b|^no\W*$")
_CLOCK = re.compile(r"(?<![\d:.])(\d{1,2}):(\d\d)(?: ?h(?:ours?)?)?(?![\d:])")
_ASKED_UNIT = re.compile(r"\b(?:how many|in|the) (?:working )?(km/h|[a-z]+)")

Spellings: TypeAlias = Sequence[str]


@lru_cache(maxsize=20_000)
def kind_of(reference: str) -> str:
    """Return the kind of a wanted text: "number", "date", "time" or "name"."""
    readers = (("number", read_quantity), ("date", read_date), ("time", read_time))
    return next((kind for kind, read in readers if read(reference) is not None), "name")


def without_thresholds(text: str) -> str:
    """Remove numbers that are limits ("more than 5", "5 or fewer") from a normal text."""
    return _THRESHOLD.sub(GAP, text)


def without_labels(text: str) -> str:
    """Remove numbers of pages, orders and elements ("page 2", "[54]") from a normal text."""
    return _LABEL.sub(GAP, text)


def numbers_in(text: str) -> set[str]:
    """Return the digits of all numbers in a normal text that are no labels."""
    return {found.digits for found in find_quantities(without_labels(text))}


@dataclass(frozen=True, slots=True)
class Values:
    """The wanted values of an answer to an intent; `limit` accepts numbers that are limits."""

    intent: str
    wanted: Sequence[Spellings]
    limit: bool = False

    def take(self, rest: str, repeated: str) -> tuple[str, str]:
        """Put `MARK` in the place of all wanted values, in the part of an answer that does not repeat the intent.

        If it has no value of a kind, those in `repeated` count. Returns the text, and what is wrong with it, as a
        predicate: a missing value, or one that is not wanted. All texts are normal.
        """
        for kind, find in (("date", _dates), ("time", _times), ("number", self._numbers)):
            wanted = [spellings for spellings in self.wanted if kind_of(spellings[0]) == kind]
            rest, problem = _take(find, wanted, rest, repeated) if wanted else (rest, "")
            if problem:
                return rest, problem
        return rest, ""

    def _numbers(self, text: str, wanted: Sequence[Spellings]) -> tuple[str, list[Candidate]]:
        sought = [_Sought.read(spellings[0], self.intent) for spellings in wanted]
        text = self._without_other_numbers(text, sought)
        found = [one for one in find_quantities(text) if any(other.rivals(one, self.intent) for other in sought)]
        return text, [(one.start, one.end, _index(other.equals(one) for other in sought)) for one in found]

    def _without_other_numbers(self, text: str, sought: Sequence[_Sought]) -> str:
        """Remove what is no candidate: dates, numbers of pages and orders, limits, totals, references."""
        plain = all(one.dimension == "" for one in sought)
        if any(one.number == 0 for one in sought):
            text = _NONE.sub(" 0 ", text)
        if any(one.dimension == "time" for one in sought):
            text = _CLOCK.sub(r"\1 h \2 min", re.sub(r"(\d)h(?=\d)", r"\1 h ", text))
        if len(sought) > 1:
            text = re.sub(r"(?<=\d)-(?=[$€£]?\d)", " - ", text)
        text = _without_dates(re.sub(r"\bnone\b", "0", _SCALE.sub("", text)))
        text = without_labels(text if self.limit else without_thresholds(text))
        return _TOTAL.sub(GAP, text, count=1) if plain else text


Candidate: TypeAlias = tuple[int, int, int | None]
"""The span of a value, and the position of the wanted value that it equals."""
Find: TypeAlias = Callable[[str, Sequence[Spellings]], tuple[str, list[Candidate]]]


def _take(find: Find, wanted: Sequence[Spellings], rest: str, repeated: str) -> tuple[str, str]:
    text, candidates = find(rest, wanted)
    if candidates:
        text = _marked(text, [(start, end) for start, end, _ in candidates])
    else:
        text, (_, candidates) = text.replace(GAP, MARK), find(repeated, wanted)
    found = {position for _, _, position in candidates}
    missing = next((spellings[0] for number, spellings in enumerate(wanted) if number not in found), None)
    if missing is not None:
        return text, f"does not include {missing!r}"
    return text, f"names more than {wanted[0][0]!r}" if None in found else ""


def _marked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]} {MARK} {text[end:]}"
    return text


def _index(matches: Iterable[bool]) -> int | None:
    return next((number for number, match in enumerate(matches) if match), None)


def _dates(text: str, wanted: Sequence[Spellings]) -> tuple[str, list[Candidate]]:
    return text, _moments(find_dates(text), [read_date(spellings[0]) for spellings in wanted])


def _times(text: str, wanted: Sequence[Spellings]) -> tuple[str, list[Candidate]]:
    text = re.sub(r"(?<![\d.,])(\d\d?)\.([0-5]\d)(?![\d.,])", r"\1:\2", text)
    return text, _moments(find_times(text), [read_time(spellings[0]) for spellings in wanted])


def _moments(found: Iterable[tuple[int, int, Hashable]], wanted: Sequence[Hashable]) -> list[Candidate]:
    return [(start, end, wanted.index(moment) if moment in wanted else None) for start, end, moment in found]


def _without_dates(text: str) -> str:
    for start, end, _ in sorted(find_dates(text), reverse=True):
        text = text[:start] + GAP + text[end:]
    return PART_OF_DATE.sub(GAP, text)


@dataclass(frozen=True, slots=True)
class _Sought:
    """A wanted number, as it is written, with its dimension and unit, which may be those that the intent asks for."""

    number: Decimal
    dimension: str
    factor: Decimal

    @property
    def fraction(self) -> bool:
        """True if it is written with decimals, as an average is."""
        return self.number.as_tuple().exponent != 0

    @classmethod
    def read(cls, reference: str, intent: str) -> _Sought:
        (found,) = find_quantities(reference)
        units = [found.unit] if found.unit else _ASKED_UNIT.findall(intent)
        known = next((known for unit in units if (known := unit_of(unit)) and known[0]), ("", Decimal(1)))
        if found.quantity is not None and found.quantity.dimension:
            return cls(found.quantity.value / known[1], *known)
        return cls(found.number, *known)

    def equals(self, found: Found) -> bool:
        """Return True for the same number in this unit, or without a unit, or the same quantity in another one."""
        if found.quantity is None or not found.quantity.dimension:
            return self.number == (found.quantity.value if found.quantity else found.number)
        if self.dimension in ("" if found.quantity.dimension != "%" else "%", found.quantity.dimension):
            return found.quantity.value == self.number * self.factor
        return False

    def rivals(self, found: Found, intent: str) -> bool:
        """Return True if a number in an answer could be meant as the answer; "3 orders" is no amount of money."""
        if re.match(r"-?0\d", found.digits) or (found.quantity is None and found.touching):
            return False
        dimension = found.quantity.dimension if found.quantity else ""
        if dimension and self.dimension:
            return dimension == self.dimension or {dimension, self.dimension} <= _CURRENCIES
        counts = found.unit[-1:] == "s" and len(found.unit) > 4 and (self.dimension or self.fraction)
        return not (counts and re.search(rf"\b{re.escape(found.unit[:-1])}s?\b", intent))

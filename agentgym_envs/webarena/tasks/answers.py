"""Evaluators of answers, which reject lists of guesses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.strings import OR, includes, shown
from agentgym_envs.webarena.evaluators.values import (
    Quantity,
    clean,
    dates_in,
    quantities_in,
    read_date,
    read_quantity,
    same_value,
)

NOT_ACHIEVABLE = "N/A"
"""The answer to an impossible task, as in WebArena."""


@dataclass(frozen=True, slots=True)
class Says:
    """The answer includes each of `wanted` and none of `others`.

    Each is a text, a number or a date; " |OR| " separates alternatives. Numbers and dates match in any spelling, and
    names only as whole words. If one number or date is wanted, the answer may not contain another one of its kind,
    unless the intent names it: so a list of guesses fails.
    """

    wanted: Sequence[str]
    others: Sequence[str] = ()

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        answer = _in_digits(clean(episode.answer))
        if len(self.wanted) == 1 and any(same_value(one, answer) for one in self.wanted[0].split(OR)):
            return Verdict(1.0)
        named = self._named(answer)
        for reference in self.wanted:
            if not named & {*reference.split(OR)}:
                return Verdict(0.0, f"the answer {shown(episode.answer)} does not include {shown(reference)}")
        if wrong := sorted(named - {name for reference in self.wanted for name in reference.split(OR)}):
            return Verdict(0.0, f"the answer {shown(episode.answer)} also includes {shown(wrong[0])}")
        if self._guesses(answer, clean(episode.intent)):
            return Verdict(0.0, f"the answer {shown(episode.answer)} names more than {shown(self.wanted[0])}")
        return Verdict(1.0)

    def _named(self, left: str) -> set[str]:
        """Return the wanted and unwanted names in an answer; a part of a longer name does not count."""
        names = {name for reference in (*self.wanted, *self.others) for name in reference.split(OR)}
        found = set()
        for name in sorted(names, key=lambda name: (-len(name), name)):
            if includes(left, name) and _as_word(left, name):
                found.add(name)
                left = left.replace(clean(name), " ")
        return found

    def _guesses(self, answer: str, intent: str) -> bool:
        """Return whether the answer has a number or date that is neither wanted nor part of the intent."""
        dates = {date for name in self.wanted if (date := read_date(clean(name))) is not None}
        if len(dates) == 1:
            return bool({*dates_in(answer)} - dates - {*dates_in(intent)})
        wanted = [q for name in self.wanted if (q := read_quantity(clean(name))) is not None]
        if len(wanted) != 1:
            return False
        known = [*quantities_in(intent), *wanted]
        quantities = list(quantities_in(_OUT_OF.sub(" ", answer, count=1)))
        if not any(one.same(wanted[0]) for one in quantities):
            return True
        guesses = (
            one for one in quantities if _same_kind(one, wanted[0]) and not any(one.same(other) for other in known)
        )
        return any(wanted[0].dimension == "" or not _is_count(answer, one) for one in guesses)


_OUT_OF = re.compile(r"\b(?:out )?of (?:the )?\d[\d,.]*\b")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBERS = {word: str(number) for number, word in enumerate(_WORDS)} | {"none": "0", "no": "0"}


def _in_digits(answer: str) -> str:
    """Return an answer that is a number word ("eight") in digits."""
    return _NUMBERS.get(answer.rstrip("."), answer)


def _as_word(text: str, name: str) -> bool:
    """Return whether a text contains a name as a whole word; numbers and dates pass, they are matched elsewhere."""
    plain = clean(name)
    if read_quantity(plain) is not None or read_date(plain) is not None:
        return True
    before = r"(?<!\w)" if plain[:1].isalnum() else ""
    after = r"(?!\w)" if plain[-1:].isalnum() else ""
    return re.search(f"{before}{re.escape(plain)}{after}", text) is not None


def _same_kind(one: Quantity, wanted: Quantity) -> bool:
    """Return whether a number has the dimension of the wanted one; amounts and shares may lack their sign."""
    return one.dimension == wanted.dimension or (one.dimension == "" and wanted.dimension in ("$", "%"))


def _is_count(answer: str, one: Quantity) -> bool:
    """Return whether a number is a count in parentheses after an amount: "$260.72 (3 orders)"."""
    return re.search(rf"\(\s*{one.value}\s+[a-z]+\s*\)", answer) is not None


def says(*wanted: object, others: Sequence[object] = ()) -> Says:
    """Return an evaluator for an answer with all of these, as texts, and none of the others."""
    return Says(tuple(map(str, wanted)), tuple(map(str, others)))


@dataclass(frozen=True, slots=True)
class NotAchievable:
    """The answer is "N/A", optionally followed by a reason."""

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        if re.match(r"n/?a\.?(?![a-z0-9])", clean(episode.answer)):
            return Verdict(1.0)
        return Verdict(0.0, f"the task cannot be done, and the answer {shown(episode.answer)} is not N/A")

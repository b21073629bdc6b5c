"""Evaluators that compare the agent's answer with reference answers by rules.

Source: exact_match and must_include of WebArena (arXiv 2307.13854, section 3.2). Unlike there, numbers and dates match
in any notation, and a number never matches part of another number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.values import (
    clean,
    dates_in,
    quantities_in,
    read_date,
    read_quantity,
    same_value,
)

OR = " |OR| "
"""The separator between the alternatives of a reference."""


@dataclass(frozen=True, slots=True)
class ExactAnswer:
    """The answer has the same content as the reference, and nothing else."""

    reference: str

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        if same_value(self.reference, episode.answer):
            return Verdict(1.0)
        return Verdict(0.0, f"the answer {shown(episode.answer)} is not {shown(self.reference)}")


@dataclass(frozen=True, slots=True)
class AnswerIncludes:
    """The answer includes every reference, and none of `others`."""

    references: Sequence[str]
    others: Sequence[str] = ()

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        for reference in self.references:
            if not includes(episode.answer, reference):
                return Verdict(0.0, f"the answer {shown(episode.answer)} does not include {shown(reference)}")
        for other in self.others:
            if includes(episode.answer, other):
                return Verdict(0.0, f"the answer {shown(episode.answer)} also includes {shown(other)}")
        return Verdict(1.0)


def includes(text: str, reference: str) -> bool:
    """Return True if a text includes a reference, or one of its alternatives (" |OR| ").

    A reference that begins or ends with a digit does not match within a longer number. A number with decimals matches
    one with more decimals (40.442 in 40.44254), as coordinates need. A single character matches only as a word. A
    number, a quantity or a date also matches in another notation.
    """
    text = clean(text)
    return any(_includes(text, clean(alternative)) for alternative in reference.split(OR))


def _includes(text: str, reference: str) -> bool:
    if reference and re.search(_pattern(reference), text):
        return True
    quantity = read_quantity(reference)
    if quantity is not None:
        return any(quantity.same(other) for other in quantities_in(text))
    date = read_date(reference)
    return date is not None and date in dates_in(text)


def _pattern(reference: str) -> str:
    before = after = ""
    if len(reference) == 1:
        before, after = r"(?<![\w-])(?<!\d[.,:/])", r"(?!\w)(?![.,:/-]\d)"
    else:
        before = r"(?<![\d.])(?<!\d,)" if reference[0].isdecimal() else ""
        if reference[-1].isdecimal() and not re.fullmatch(r"\D*[\d,]+\.\d+", reference):
            after = r"(?!\d|\.\d|,\d{3})"
    return f"{before}{re.escape(reference)}{after}"


def shown(text: str) -> str:
    """Quote a text for a reason, in at most 120 characters."""
    return repr(text if len(text) <= 120 else f"{text[:117]}...")

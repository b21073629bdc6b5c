"""Evaluators of answers: right in any wording; wrong if they deny, hedge, or name a second candidate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.evaluators.base import FinishedEpisode, Verdict
from agentgym_envs.webarena.evaluators.strings import OR, shown
from agentgym_envs.webarena.evaluators.values import same_value
from agentgym_envs.webarena.evaluators.wording import (
    MARK,
    denies,
    hedges,
    normal,
    plain,
    sentences,
    without_question,
    without_repeats,
)
from agentgym_envs.webarena.tasks.answer_names import take_names
from agentgym_envs.webarena.tasks.answer_values import Values, kind_of, numbers_in, without_labels, without_thresholds

NOT_ACHIEVABLE = "N/A"
"""The answer to an impossible task, as in WebArena."""


_YEAR_NOTE = re.compile(r"(?<=\d) \((?:19|20)\d\d\)")
"""The year of a figure, as in "79,638 (2025)"."""


@dataclass(frozen=True, slots=True)
class Says:
    """The answer includes each of `wanted` and none of `others`.

    Each is a name or text, a number or amount, a date, or a time of day; " |OR| " separates alternatives. Values match
    in any notation, and names only as whole words. The answer fails if it denies or hedges, if it has a value of the
    same kind that is not wanted, or a text that differs from a wanted one only in its numbers. Words that repeat the
    intent do not count. `limit` means that a wanted number is a limit, which "over 100" names, too.
    """

    wanted: Sequence[str]
    others: Sequence[str] = ()
    limit: bool = False

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        answer = _YEAR_NOTE.sub("", episode.answer)
        if problem := self._problem(normal(answer), normal(episode.intent)):
            return Verdict(0.0, f"the answer {shown(episode.answer)} {problem}")
        return Verdict(1.0)

    def _problem(self, answer: str, intent: str) -> str:
        """Return what is wrong with an answer, as a predicate; "" if it is right."""
        wanted = [[normal(one) for one in reference.split(OR)] for reference in self.wanted]
        if len(wanted) == 1 and any(_is(one, answer, intent) for one in wanted[0]):
            return ""
        kinds = {kind_of(one[0]) for one in wanted}
        others = {normal(one) for reference in self.others for one in reference.split(OR)}
        others -= {one for spellings in wanted for one in spellings}
        numbers = {one for one in others if kind_of(one) == "number"}
        others = {one for one in others - numbers if kind_of(one) not in kinds - {"name"}}  # `Values` rejects those
        names = [spellings for spellings in wanted if kind_of(spellings[0]) == "name"]
        rest, problem = take_names(without_question(answer, intent), intent, names, _opposed(names, others))
        if problem:
            return problem
        rest, repeated = without_repeats(rest, intent)
        values = Values(intent, [one for one in wanted if one not in names], self.limit)
        rest, problem = values.take(rest, repeated)
        if not problem and "number" not in kinds and numbers & numbers_in(rest):
            return f"also includes {min(numbers & numbers_in(rest))!r}"
        rest = re.sub(rf"({MARK}\s+)or more", r"\1", rest) if self.limit else rest
        return problem or _open(rest, deniable=names != [["no"]])


def _is(wanted: str, answer: str, intent: str) -> bool:
    """Return True if an answer is a wanted text; "5%" is 5 only where per cent were asked for."""
    is_share = (
        "%" not in answer or re.search("%|percent|share|proportion|how much of", f"{wanted} {intent}") is not None
    )
    return is_share and same_value(wanted, answer)


def _opposed(names: Sequence[Sequence[str]], others: Iterable[str]) -> list[str]:
    """Return the unwanted names; those of yes and no are each other."""
    return [*others, *({"yes": "no", "no": "yes"}.get(spellings[0], "") for spellings in names)]


def _open(rest: str, *, deniable: bool) -> str:
    """Return whether an answer without its values hedges or denies, as a predicate; "" if it does not."""
    if hedges(without_thresholds(rest)):
        return "leaves the answer open"
    return "denies the answer" if deniable and denies(rest) else ""


def says(*wanted: object, others: Sequence[object] = (), limit: bool = False) -> Says:
    """Return an evaluator for an answer with all of these, as texts, and none of the others.

    Raises ValueError if two of them are equal: an answer includes a value once, so no answer would pass.
    """
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"{wanted} has a value twice, so no answer would pass; make no task of it")
    return Says(tuple(map(str, wanted)), tuple(map(str, others)), limit)


def says_first(ranked: Iterable[Any]) -> Says:
    """Return an evaluator for an answer with the first of these and none of the others."""
    first, *others = ranked
    return says(first, others=others)


_NA = re.compile(r"(?<![\w/.])(?:n/?a|n\.a\.?|not applicable)(?![\w/])")
_CLAUSE = re.compile(r"[,;:]\s|\s-+\s|\b(?:so|because|since|as|therefore|hence|thus|and)\b")
_NOT = r"\b(?:no|not|cannot|never|none|nothing|neither|nor|without)\b"
_IMPOSSIBLE = re.compile(rf"{_NOT}|\b(?:impossible|unable|missing|invalid|expired|fail(?:s|ed)?|un\w+able)\b")
_ALTERNATIVE = re.compile(
    rf"{MARK}[\s,;:.-]*(?:or|if)\b|\bor\s+(?:\w+\s+){{0,3}}{MARK}|\bor else\b|\bbut\b.*\d"
    r"|\b(?:maybe|perhaps|possibly|probably|alternatively|otherwise|unless|either|guess)\b"
)
_DENIED = re.compile(
    rf"{_NOT}[^\n]*{MARK}|{MARK} (?:is|was)\b.*\bnot\b"
    rf"|{MARK}.*\b(?:wrong|incorrect|not (?:right|correct|true|the answer|it))\b"
)
_CODE = re.compile(r"\b[\w.]*\d[\w.]*\w")
_RESULT = re.compile(r"[\d@]|\b(?:done|completed|finished|success(?:ful|fully)?)\b")


@dataclass(frozen=True, slots=True)
class NotAchievable:
    """The answer is "N/A", in any sentence and with any reason, but without another answer."""

    async def __call__(self, episode: FinishedEpisode) -> Verdict:
        """Score the episode."""
        answer = without_question(plain(episode.answer), plain(episode.intent))
        if _is_not_achievable(_NA.sub(MARK, answer), plain(episode.intent)):
            return Verdict(1.0)
        return Verdict(0.0, f"the task cannot be done, and the answer {shown(episode.answer)} is not N/A alone")


def _is_not_achievable(answer: str, intent: str) -> bool:
    if MARK not in answer or _ALTERNATIVE.search(answer):
        return False
    if any(_DENIED.search(clause) for one in sentences(answer) for clause in _CLAUSE.split(one)):
        return False
    rest, _ = without_repeats(without_labels(answer), intent)
    known = set(_CODE.findall(intent))
    rest = _CODE.sub(lambda code: "" if code[0] in known else code[0], rest)
    return all(_IMPOSSIBLE.search(one) for one in sentences(rest) if _RESULT.search(one))

"""The oracle's grounds: its answer counts only if what its searches show holds it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from agentgym_envs.search.scoring import normalise
from agentgym_envs.task import Task

_ANYWHERE = frozenset({"yes", "no"})
"""Answers that occur in texts about anything, so finding them shows nothing."""


def queries_of(task: Task) -> list[str]:
    """The queries that lead to the answer; for a question without any, the question."""
    return list(task.data.get("queries") or [task.goal])


def holds_answer(text: str, answers: Iterable[str]) -> bool:
    """Return true if the text contains one of the answers as whole words, after Search-R1's normalisation."""
    words = f" {normalise(text)} "
    return any(f" {answer} " in words for answer in map(normalise, answers) if answer and answer not in _ANYWHERE)


def is_grounded(texts: Iterable[str], found: Collection[str], gold: Sequence[str], answers: Sequence[str]) -> bool:
    """Return true if every gold passage was found, or one of the texts holds an answer.

    The answer of a question that counts or compares is in no text, so finding its gold passages is enough.
    """
    if gold and set(gold) <= set(found):
        return True
    return any(holds_answer(text, answers) for text in texts)

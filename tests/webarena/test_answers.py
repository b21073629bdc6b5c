"""Answers to the tasks of the embedded sites: right ones in any words, no lists of guesses."""

from __future__ import annotations

import asyncio

import pytest

from agentgym_envs.webarena.evaluators.base import Finished
from agentgym_envs.webarena.tasks.answers import NotAchievable, says


async def _nothing(url: str | None, script: str = "") -> str:
    return ""


def score(evaluator: object, answer: str) -> float:
    assert callable(evaluator)
    return asyncio.run(evaluator(Finished("", answer, "", _nothing))).score


@pytest.mark.parametrize(
    ("evaluator", "right", "wrong"),
    [
        (says(3), ["3", "There are 3.", "3 reviews"], ["", "13", "2 or 3", "1, 2, 3, 4", "3.5"]),
        (says("$12.50"), ["$12.50", "12.5", "It costs $12.50 today."], ["$12.51", "$12.50 or $13", "$1,112.50"]),
        (says("Ida Holm", others=["Eva Holm"]), ["Ida Holm", "it was ida holm"], ["Ida", "Ida Holm, Eva Holm"]),
        (says("a lamp", "a desk"), ["a desk and a lamp"], ["a desk", "a lamp"]),
        (says("Mar 16, 2026"), ["2026-03-16", "on March 16, 2026", "16 March 2026"], ["March 2026", "Mar 17, 2026"]),
        (says("Oak", others=["Oak Hill"]), ["Oak"], ["Oak Hill", "Oak Hill, Oak"]),
        (says("Oak Hill", others=["Oak"]), ["Oak Hill"], ["Oak Hill or Oak"]),
        (NotAchievable(), ["N/A", "n/a", "N/A: there is no such board"], ["", "NA", "no", "N/Able", "not N/A"]),
    ],
)
def test_answers(evaluator: object, right: list[str], wrong: list[str]) -> None:
    assert [score(evaluator, answer) for answer in right] == [1.0] * len(right)
    assert [score(evaluator, answer) for answer in wrong] == [0.0] * len(wrong)

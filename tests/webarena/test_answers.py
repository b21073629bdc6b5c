"""Evaluators of answers: right answers pass in any wording, lists of guesses fail."""

from __future__ import annotations

import asyncio

import pytest

from agentgym_envs.webarena.evaluators.base import FinishedEpisode
from agentgym_envs.webarena.evaluators.wording import GAP, MARK
from agentgym_envs.webarena.tasks.answers import NotAchievable, says


async def _nothing(url: str | None, script: str = "") -> str:
    return ""


def score(evaluator: object, answer: str, intent: str = "") -> float:
    assert callable(evaluator)
    return asyncio.run(evaluator(FinishedEpisode(intent, answer, "", _nothing))).score


@pytest.mark.parametrize(
    ("evaluator", "right", "wrong"),
    [
        (says(3), ["3", "There are 3.", "3 reviews"], ["", "13", "2 or 3", "1, 2, 3, 4", "3.5"]),
        (
            says(8),
            ["eight", "8.", "8 of 24", "8 (of 24)", "8 out of the 24"],
            ["eighty", "of 7 of 8 of 9", "8 of 9 of 10", "9 of 8", "7, 8"],
        ),
        (says(0), ["none", "No.", "zero", "0"], ["nothing", "10"]),
        (says("$12.50"), ["$12.50", "12.5", "It costs $12.50 today."], ["$12.51", "$12.50 or $13", "$1,112.50"]),
        (says("$12.50"), ["USD 12.50", "It is $ 12.50 in all"], ["12.50, 13.50, 14.50", "12, 12.50"]),
        (says("1 h 35 min"), ["1 h 35 min", "95 minutes"], ["1 h 36 min"]),
        (says("12 km"), ["12 km", "It is 12 km.", "12,000 m", "12"], ["12 km or 13 km", "12 miles"]),
        (says("Mailsieve", 12), ["Mailsieve has 12"], ["Mailsieve, 11 12 13", "12"]),
        (says("Card"), ["a card"], ["Cardboard"]),
        (says("Apache-2.0", others=["MIT"]), ["It's permitted under Apache-2.0"], ["Apache-2.0 or MIT"]),
        (says("Ida Holm", others=["Eva Holm"]), ["Ida Holm", "it was ida holm"], ["Ida", "Ida Holm, Eva Holm"]),
        (says("a lamp", "a desk"), ["a desk and a lamp"], ["a desk", "a lamp"]),
        (says("Mar 16, 2026"), ["2026-03-16", "on March 16, 2026", "16 March 2026"], ["March 2026", "Mar 17, 2026"]),
        (says("Mar 4, 2025"), ["on 4 March 2025"], ["Mar 3, 2025, Mar 4, 2025, Mar 5, 2025"]),
        (says("Oak", others=["Oak Hill"]), ["Oak"], ["Oak Hill", "Oak Hill, Oak"]),
        (says("Oak Hill", others=["Oak"]), ["Oak Hill"], ["Oak Hill or Oak"]),
        (
            NotAchievable(),
            ["N/A", "n/a", "NA", "N/A: there is no such board"],
            ["", "no", "N/Able", "Nancy", "not N/A"],
        ),
    ],
)
def test_right_answers_pass_and_wrong_ones_fail(evaluator: object, right: list[str], wrong: list[str]) -> None:
    assert [score(evaluator, answer) for answer in right] == [1.0] * len(right)
    assert [score(evaluator, answer) for answer in wrong] == [0.0] * len(wrong)


@pytest.mark.parametrize(
    ("expected", "evaluator", "answer", "intent"),
    [
        (1.0, says(2), "Answer - 2", ""),
        (1.0, says("Knightschool", 26), "- Knightschool\n- 26", ""),
        (1.0, says("Knightschool", 26), "Knightschool—26", ""),
        (0.0, says(2), "-2", ""),
        (1.0, NotAchievable(), "**N/A**", ""),
        (1.0, NotAchievable(), "The order has already been shipped and can't be canceled, so the answer is N/A.", ""),
        (0.0, NotAchievable(), "N/A, or else $49.99", ""),
        (0.0, NotAchievable(), "It is not N/A.", ""),
        (0.0, says("$49.99"), "of 52.99 $49.99", ""),
        (0.0, says(2), "2 or 3", "How many 3-star reviews does the lamp have?"),
        (1.0, says(2), "2 of the 3-star reviews", "How many 3-star reviews does the lamp have?"),
        (0.0, says("Ida Holm"), "It is not Ida Holm.", ""),
        (1.0, says("Ida Holm"), "Ida Holm has not approved it yet", "Who has not approved it yet?"),
        (1.0, says("85.3 km"), "85.3", ""),
        (0.0, says("85.3 km"), "85.3 miles", ""),
        (1.0, says("194.2"), "194.2 km, which takes 2 h 31 min", "How many kilometres is it?"),
        (1.0, says(5), "5. I found it on page 2.", ""),
        (0.0, says(5), "5%", "How many orders are pending?"),
        (1.0, says(5), "5%", "What percentage of the orders is pending?"),
        (1.0, says(79638), "Population: 79,638 (2025)", "What is the population?"),
        (1.0, says(2025), "Founded (2025)", "In which year was it founded?"),
        (1.0, says("Sep 25, 2016"), "20160925", "When did they join?"),
        (0.0, says("Sep 25, 2016"), "20160926", "When did they join?"),
        (1.0, says("Ida Holm", others=["Eva Holm"]), "Ida Holm, compared to Eva Holm with 3", "Who has more?"),
        (0.0, says("Ida Holm", others=["Eva Holm"]), "Eva Holm, compared to Ida Holm with 3", "Who has more?"),
        (1.0, says("Ahead of Time", others=["Late"]), "Ahead of Time", "Which book is it?"),
        (
            1.0,
            says("Elm Fell", others=["Oak Top"]),
            "Elm Fell is higher than Oak Top.",
            "Is Elm Fell or Oak Top higher?",
        ),
        (
            0.0,
            says("Elm Fell", others=["Oak Top"]),
            "Elm Fell is lower than Oak Top.",
            "Is Elm Fell or Oak Top higher?",
        ),
        (1.0, says("$90", limit=True), "It is free for orders over $90.", ""),
        (0.0, says("$90"), "It costs over $90.", ""),
    ],
)
def test_the_meaning_of_an_answer_counts_not_its_wording(
    expected: float, evaluator: object, answer: str, intent: str
) -> None:
    assert score(evaluator, answer, intent) == expected


def test_numbers_and_dates_of_the_intent_are_not_guesses() -> None:
    intent = "How many pieces of the Gel Pen Set, 36 Pieces, were sold after Mar 4, 2025?"
    assert score(says(35), "Gel Pen Set, 36 Pieces: 35", intent) == 1.0
    assert score(says(35), "35 after Mar 4, 2025", intent) == 1.0
    assert score(says(35), "36, 35, 34", intent) == 0.0
    assert score(says("Mar 9, 2025"), "Mar 9, 2025, after Mar 4, 2025", intent) == 1.0


@pytest.mark.parametrize("mark", [MARK, GAP])
def test_the_marks_of_the_rules_are_no_answer(mark: str) -> None:
    assert score(NotAchievable(), mark) == 0.0
    assert score(says(5), f"{mark} {mark}") == 0.0


def test_an_amount_may_come_with_a_count_of_things_in_the_intent() -> None:
    intent = "What do the orders of May come to altogether?"
    assert score(says("$12.50"), "$12.50 (3 orders)", intent) == 1.0
    assert score(says("$3.00"), "$12.50 (3 orders)", intent) == 0.0
    assert score(says("$12.50"), "$12.50 (13 orders)", "What does the lamp cost?") == 0.0


def test_a_value_that_is_wanted_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="has a value twice"):
        says("1 min", "4 min", "1 min")

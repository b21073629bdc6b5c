"""Scores of answers, of retrieval and of the format of turns."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_envs.search.scoring import (
    RewardWeights,
    combine_rewards,
    em,
    em_plus,
    f1,
    normalise,
    recall,
    search_r1_score,
    subem,
    well_formed,
)

TEXTS = st.text(st.one_of(st.sampled_from("aA nthe-–’'.,é1́ß\n"), st.characters(exclude_categories=["Cs"])), max_size=30)


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "plus"),
    [
        ("Rome", "rome", True, True),
        (" The  Rome. ", "Rome", True, True),
        ("Rome", "Paris", False, False),
        ("Bogota", "Bogotá", False, True),
        ("O’Brien", "O'Brien", False, True),
        ("“Guernica”", "Guernica", False, True),
        ("Guinea Bissau", "Guinea-Bissau", False, True),
        ("Guinea–Bissau", "Guinea-Bissau", False, True),
        ("guineabissau", "Guinea-Bissau", True, True),
        ("1,234", "1234", True, True),
        ("email", "e–mail", False, True),
        ("-5 °C", "−5 °C", False, True),
        ("1939–1945", "1939-1945", False, True),
        ("Lodz", "Łódź", False, True),
        ("Tromso", "Tromsø", False, True),
        ("Hawaii", "Hawaiʻi", False, True),
        ("Strasse", "Straße", False, True),
        ("Ｒｏｍｅ", "Rome", False, True),
        ("ﬁnch", "finch", False, True),
        ("a", "The", True, True),
        ("à", "The", False, False),
        ("·", "-", False, False),
        ("किताब", "कताब", False, False),
        ("there", "re", False, False),
        ("A", "B", False, False),
    ],
)
def test_exact_match_scores_an_answer(prediction: str, answer: str, exact: bool, plus: bool) -> None:
    assert em(prediction, [answer]) is em(prediction, answer) is em(prediction, ["other", answer]) is exact
    assert em_plus(prediction, [answer]) is em_plus(prediction, answer) is plus
    assert em_plus(answer, [prediction]) is plus


def test_without_accepted_answers_nothing_is_right() -> None:
    assert not em("x", []) and not em_plus("x", []) and not subem("x", []) and f1("x", []) == 0.0


def test_a_string_counts_as_a_single_answer() -> None:
    assert not em("R", "R o m e") and f1("o", "R o m e") == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("prediction", "answer", "inside"),
    [
        ("It is Rome.", "ROME", True),
        ("banana", "The", False),
        ("banana", "nan", True),
        ("", "x", False),
        ("", "", False),
    ],
)
def test_substring_match_scores_an_answer(prediction: str, answer: str, inside: bool) -> None:
    assert subem(prediction, [answer]) is inside


@pytest.mark.parametrize(
    ("prediction", "answers", "wanted"),
    [
        ("Rome", ["Rome"], 1.0),
        ("the city of Rome", ["Rome"], 0.5),
        ("Rome Rome", ["Rome"], 2 / 3),
        ("Rome", ["Paris", "Rome in Italy"], 0.5),
        ("Oslo", ["Rome"], 0.0),
        ("the", ["a"], 1.0),
        ("the", ["Rome"], 0.0),
    ],
)
def test_f1_uses_the_closest_answer(prediction: str, answers: list[str], wanted: float) -> None:
    assert f1(prediction, answers) == pytest.approx(wanted)


def test_recall_is_the_share_of_the_gold_passages() -> None:
    assert recall(["a", "x", "b", "a"], ["a", "b", "c", "c"]) == pytest.approx(2 / 3)
    assert recall([], ["a"]) == 0.0
    assert recall(["a"], []) is None


@pytest.mark.parametrize(
    ("transcript", "score"),
    [
        ("<answer> Rome </answer>", 0.0),
        ("For example, <answer> Beijing </answer>. <answer>\nThe Rome!\n</answer>", 1.0),
        ("<answer>x</answer><answer>Paris</answer>", 0.0),
        ("<answer>x</answer><information><answer>Rome</answer></information>", 1.0),
        ("<answer>x</answer><answer>Rome</answer> <answer>Paris</answer>", 0.0),
        ("<answer>x</answer><answer>Rome</answer><answer>Paris", 1.0),
        ("<answer>x</answer></answer><answer><answer>Rome</answer>", 0.0),
        ("<answer>x</answer><Answer>Rome</Answer>", 0.0),
        ("", 0.0),
    ],
)
def test_search_r1_scores_the_last_answer_but_never_a_single_one(transcript: str, score: float) -> None:
    assert search_r1_score(transcript, ["Rome"]) == score


SEARCH, ANSWER = "<think>t</think>\n<search>q</search>", "<think>t</think>\n<answer>a</answer>"


@pytest.mark.parametrize("turns", [[ANSWER], [SEARCH, ANSWER], [f"\n{SEARCH} ", SEARCH, f" {ANSWER}\n"]])
def test_well_formed_accepts_valid_turns(turns: list[str]) -> None:
    assert well_formed(turns)


@pytest.mark.parametrize(
    "turns",
    [
        [],
        [""],
        [SEARCH],
        [ANSWER, ANSWER],
        [SEARCH, SEARCH],
        [ANSWER, SEARCH],
        ["<answer>a</answer>"],
        ["<think>t<answer>a</answer>"],
        [f"So: {ANSWER}"],
        [f"{ANSWER} Done."],
        [f"{ANSWER}<answer>b</answer>"],
        ["<think>t</think> and <answer>a</answer>"],
        ["<think>t</think><answer>a<search>q</search></answer>"],
        ["<think><answer>x</answer></think><answer>a</answer>"],
        ["<think>t</think><answer>a</search>"],
        ["<think>t</think><information>i</information><answer>a</answer>"],
        ["<Think>t</Think><Answer>a</Answer>"],
    ],
)
def test_well_formed_rejects_invalid_turns(turns: list[str]) -> None:
    assert not well_formed(turns)


@pytest.mark.parametrize(
    ("worth", "formed", "score"),
    [(1.0, True, 1.0), (1.0, False, 0.8), (0.5, True, 0.6), (0.5, False, 0.4), (0.0, True, 0.2), (0.0, False, 0.0)],
)
def test_the_format_reward_equals_the_table(worth: float, formed: bool, score: float) -> None:
    assert combine_rewards(worth, formed, True, RewardWeights(0.2)) == pytest.approx(score)
    assert combine_rewards(worth, formed, True, RewardWeights()) == worth


@given(TEXTS)
def test_a_text_matches_itself(text: str) -> None:
    assert em(text, [text]) and em_plus(text, [text]) and f1(text, [text]) == 1.0
    assert subem(text, [text]) is bool(normalise(text))


@given(TEXTS, st.lists(TEXTS, max_size=3))
@example("ΟΔΟΣ.", ["οδος"])
@example("a.b", ["ab"])
def test_the_metrics_are_consistent(prediction: str, answers: list[str]) -> None:
    exact, share = em(prediction, answers), f1(prediction, answers)
    assert 0.0 <= share <= 1.0
    if exact:
        assert em_plus(prediction, answers) and share == 1.0
    if any(map(normalise, answers)) and exact and normalise(prediction):
        assert subem(prediction, answers)


@given(TEXTS, TEXTS)
def test_metrics_are_symmetric_for_one_answer(one: str, other: str) -> None:
    assert em(one, other) == em(other, one) and em_plus(one, other) == em_plus(other, one)
    assert f1(one, other) == pytest.approx(f1(other, one))


@pytest.mark.slow_after(9)
@pytest.mark.parametrize(
    "work",
    [
        lambda text: em(text, [text + "x"]),
        lambda text: em_plus(text, [text + "x"]),
        lambda text: subem(text, ["b" * 50]),
        lambda text: f1(text, [text + "x"]),
        lambda text: search_r1_score(text, ["x"]),
        lambda text: well_formed([text]),
    ],
)
@pytest.mark.parametrize("piece", ["<answer>", "a the - ", "</answer><answer>", "<think>", "’é–", " "])
def test_scoring_takes_linear_time(work: Callable[[str], object], piece: str) -> None:
    start = time.process_time()
    work(piece * (100_000 // len(piece)))
    assert time.process_time() - start < 2.0  # tens of milliseconds; a quadratic algorithm takes minutes

"""The oracle answers only what its searches show."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import NoOracle
from agentgym_envs.search.env import SearchEnv
from agentgym_envs.search.oracle import holds_answer, is_grounded
from tests.search.conftest import Make
from tests.search.test_env import Broken


def questions(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


KNOWN = {"question": "Which river flows through Poland?", "golden_answers": ["The San"]}
UNKNOWN = {"question": "Which river flows through Lima?", "golden_answers": ["Rímac"]}
YES = {"question": "Is Quito the capital of Ecuador?", "golden_answers": ["no", "yes"]}


@pytest.mark.parametrize(
    ("text", "answers", "held"),
    [
        ("The river San flows.", ["san"], True),
        ("A sanctuary.", ["san"], False),
        ("It is 1,234 m high", ["1234"], True),
        ("It is 12345 m high", ["1234"], False),
        ("anything", ["the"], False),
        ("Yes, there is no doubt", ["yes", "no"], False),
        ("Guinea-Bissau", ["x", "guinea-bissau"], True),
    ],
)
def test_a_text_holds_an_answer_as_whole_words(text: str, answers: list[str], held: bool) -> None:
    assert holds_answer(text, answers) is held


def test_all_gold_passages_are_enough_as_computed_answers_are_in_no_text() -> None:
    assert is_grounded(["two and three"], ["a", "b"], ["a", "b"], ["5"])
    assert not is_grounded(["two and three"], ["a"], ["a", "b"], ["5"])
    assert is_grounded(["five: 5"], ["c"], ["a"], ["5"])


def plan(env: SearchEnv, number: int) -> list[str]:
    env.reset(seed=0, options={"task": f"mine/{number}"})
    return list(env.oracle())


def test_a_question_whose_answer_no_passage_shows_has_no_oracle(make: Make, tmp_path: Path) -> None:
    env = make(questions=questions(tmp_path, KNOWN, UNKNOWN, YES))
    assert plan(env, 0) == [f"<search>{KNOWN['question']}</search>", "<answer>The San</answer>"]
    for number in (1, 2):
        with pytest.raises(NoOracle, match=f"mine/{number}.*do not hold"):
            plan(env, number)
    assert env.snapshot().actions == ()


def test_a_passage_that_is_not_shown_does_not_ground_an_answer(make: Make, tmp_path: Path) -> None:
    peak = {"question": "Which mountain is in Peru?", "golden_answers": ["Huascarán"]}
    assert plan(make(questions=questions(tmp_path, peak), top_k=1), 0)
    with pytest.raises(NoOracle):
        plan(make(questions=questions(tmp_path, peak), top_k=1, max_chars=30), 0)


def test_an_engine_that_fails_during_planning_leaves_the_episode_running(make: Make) -> None:
    env = make(retriever=Broken(OSError("down")))
    env.reset(seed=0, options={"task": "toy/1"})
    with pytest.raises(NoOracle, match="failed during planning"):
        env.oracle()
    assert env.status()["stop_reason"] is None

"""The reward with all terms, against a second implementation of the published rule over whole transcripts.

Source of the rule: Search-R1's qa_em_format.py at commit a14dc3a. The oracle here is written from its description.
"""

import itertools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_envs.search.env import SearchEnv
from agentgym_envs.search.retrieval.base import Hit
from agentgym_envs.search.scoring import normalise
from agentgym_envs.task import TaskTable
from tests.search.conftest import PASSAGES, TASKS, Make
from tests.search.test_env import Broken

TURNS = (
    "<think>a</think><search>Peru</search>",
    "<think>a</think>\n<search>nothing</search>\n",
    "<search>Peru</search>",
    "<think>a</think> so <search>Peru</search>",
    "hm",
    "<think>a<search>Peru</search>",
)
ANSWERS = (
    "<think>b</think><answer>Huascarán</answer>",
    "<think>b</think> <answer>Lima</answer>",
    "<answer>the huascarán</answer>",
    "<answer>Lima</answer>",
    "<think>b</think><answer>Lima</answer> Done.",
)


class Peru(Broken):
    """Finds the page of Peru for queries that name it."""

    def search(self, queries: Any, k: int) -> list[list[Hit]]:
        return [[Hit(PASSAGES[1], 1.0)] if "Peru" in query else [] for query in queries]


def published(transcript: str, golds: list[str], structure: float, retrieval: float, final: float) -> float:
    """The reward of a transcript: an automaton over its tags as one regular expression, then the published table."""
    names = {"think": "t", "search": "s", "information": "i", "answer": "a"}
    word, rest = "", transcript
    while found := re.search(r"<(/?)(think|search|information|answer)>", rest):
        outside = word == "" or word[-1].isupper()
        if rest[: found.start()].strip():
            word += "" if not outside else "x"
        letter = names[found[2]]
        word += letter.upper() if found[1] else letter
        rest = rest[found.end() :]
    word += "x" if rest.strip() else ""
    valid = re.fullmatch("(tTsSiI)*tTaA", word) is not None
    answers = re.findall("<answer>(.*?)</answer>", transcript, re.DOTALL)
    right = bool(answers) and normalise(answers[-1]) in map(normalise, golds)
    shown = [normalise(text) for text in re.findall("<information>(.*?)</information>", transcript, re.DOTALL)]
    retrieved = any(normalise(gold) in text for gold in golds for text in shown)
    if right:
        return 1.0 if valid else 1.0 - structure
    return (structure + (retrieval if retrieved else 0.0)) if valid else final


@pytest.fixture(scope="module")
def env() -> SearchEnv:
    options: dict[str, Any] = {"format_reward": 0.2, "retrieval_score": 0.1, "final_format_score": 0.15}
    questions = TaskTable("toy", 1, TASKS)
    return SearchEnv(questions=questions, retriever=Peru(OSError()), split=None, format="search-r1", **options)


def check(env: SearchEnv, turns: tuple[str, ...]) -> None:
    env.reset(seed=0, options={"task": "toy/0"})
    transcript, reward = "", 0.0
    for turn in turns:
        observation, reward, terminated, *_ = env.step(turn)
        transcript += turn if terminated else turn + observation
    assert env.status()["stop_reason"] in ("success", "failure")
    assert reward == pytest.approx(published(transcript, TASKS[0].data["answers"], 0.2, 0.1, 0.15)), turns


def test_short_episodes_have_the_published_reward(env: SearchEnv) -> None:
    for turn, answer in itertools.product(("", *TURNS), ANSWERS):
        check(env, (turn, answer) if turn else (answer,))


@settings(max_examples=60)
@given(turns=st.lists(st.sampled_from(TURNS), max_size=4), answer=st.sampled_from(ANSWERS))
def test_episodes_have_the_published_reward(env: SearchEnv, turns: list[str], answer: str) -> None:
    check(env, (*turns, answer))


def test_the_retrieval_term_survives_a_snapshot(env: SearchEnv) -> None:
    env.reset(seed=0, options={"task": "toy/0"})
    env.step(TURNS[0])
    snapshot = env.snapshot()
    env.reset(seed=0, options={"task": "toy/0"})
    env.restore(snapshot)
    assert env.step(ANSWERS[1])[1] == pytest.approx(0.3)


def test_weights_of_a_wrong_answer_stay_below_1(make: Make) -> None:
    for options in ({"format_reward": 0.5, "retrieval_score": 0.5}, {"final_format_score": 1.0}):
        with pytest.raises(UsageError, match="below 1"):
            make(**options)
    with pytest.raises(UsageError, match=r"remove retrieval_score=0.1"):
        make(compat="search-r1", retrieval_score=0.1)

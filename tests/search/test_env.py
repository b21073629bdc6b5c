"""The environment over a small corpus."""

import asyncio
import copy
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.errors import MissingExtra, RetrieverError, UsageError
from agentgym_envs.grammar import tools_of
from agentgym_envs.search.env import SearchEnv
from agentgym_envs.search.retrieval.base import Hit, Retriever
from tests.search.conftest import PASSAGES, Make

HOP = {"task": "toy/0"}
FORMED = "<think>So.</think><answer>Huascarán</answer>"


class Broken(Retriever):
    """A retriever that raises an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        raise self.error

    def describe(self) -> dict[str, Any]:
        return {"engine": "broken"}


def play(env: SearchEnv, task: str, *actions: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
    env.reset(seed=0, options={"task": task})
    for action in actions[:-1]:
        env.step(action)
    return env.step(actions[-1])


def test_an_episode_runs_from_question_to_answer(make: Make) -> None:
    env = make()
    observation, info = env.reset(seed=0, options=HOP)
    assert observation == "Question: What is the highest mountain of the country whose capital is Lima?"
    assert info["recall"] == 0.0
    shown, reward, *_, info = env.step("<think>Where is Lima?</think>\n<search>Lima capital</search>")
    assert shown.startswith('<information>Doc 1(Title: "Lima") Lima is the capital of Peru.') and reward == 0.0
    assert (info["query"], info["answer"], info["hits"][0], info["recall"]) == ("Lima capital", None, "lima", 0.5)
    env.step("<search>Peru</search>")
    shown, reward, terminated, truncated, info = env.step("<answer>huascaran</answer>")
    assert (shown, reward, terminated, truncated) == ("That answer is right.", 1.0, True, False)
    assert info["answers"] == ["Huascarán", "Huascaran"] and info["answer"] == "huascaran"
    assert (info["success"], info["recall"], info["em"], info["f1"]) == (True, 1.0, 1.0, 1.0)


def test_a_wrong_answer_ends_the_episode(make: Make) -> None:
    shown, reward, terminated, _, info = play(make(), "toy/1", "<answer>Lima</answer>")
    assert (shown, reward, terminated, info["stop_reason"]) == ("That answer is wrong.", 0.0, True, "failure")


def test_with_retry_a_wrong_answer_does_not_end_the_episode(make_retry: Make) -> None:
    env = make_retry()
    shown, reward, terminated, _, info = play(env, "toy/1", "<answer>Lima</answer>")
    assert "wrong" in shown and "again" in shown and "answers" not in info
    assert (reward, terminated, info["stop_reason"], info["invalid_action"]) == (0.0, False, None, None)
    _, reward, terminated, _, info = env.step("<answer>Quito</answer>")
    assert (reward, terminated, info["success"]) == (1.0, True, True)
    assert "if it is wrong" in env.instructions


def test_the_answer_that_ends_the_episode_is_the_one_that_is_scored(make: Make) -> None:
    *_, info = play(make(), "toy/1", "<answer>Lima</answer><answer>Quito</answer>")
    assert (info["answer"], info["score"]) == ("Lima", 0.0)
    *_, info = play(make(), "toy/1", "<think><answer>Lima</answer></think><answer>Quito</answer>")
    assert (info["answer"], info["score"]) == ("Quito", 1.0)


def test_tags_in_passages_have_no_effect(make: Make) -> None:
    shown, *_ = play(make(), "toy/1", "<search>Quito Ecuador</search>")
    assert shown.count("</information>") == 1 and "&lt;/information> &lt;answer>Rome&lt;/answer>" in shown


def test_an_invalid_action_only_costs_a_turn(make: Make) -> None:
    env = make()
    env.reset(seed=0, options=HOP)
    shown, reward, terminated, truncated, info = env.step("Huascarán")
    assert shown == info["invalid_action"] and "<search>" in shown
    assert (reward, terminated, truncated, info["turn"]) == (0.0, False, False, 1)


@pytest.mark.parametrize(
    ("metric", "answer", "worth"),
    [("em", "the huascarán!", 1.0), ("em_plus", "HUASCARA\u0301N", 1.0), ("subem", "It is Huascarán", 1.0)],
)
def test_each_metric_can_be_the_reward(make: Make, metric: str, answer: str, worth: float) -> None:
    _, reward, _, _, info = play(make(metric=metric), "toy/0", f"<answer>{answer}</answer>")
    assert reward == worth == info[metric]


def test_a_partial_f1_is_a_reward_but_not_a_success(make: Make) -> None:
    _, reward, _, _, info = play(make(metric="f1"), "toy/0", "<answer>Huascarán mountain</answer>")
    assert reward == pytest.approx(2 / 3) and not info["success"] and info["stop_reason"] == "failure"


@pytest.mark.parametrize(
    ("actions", "reward"),
    [
        (["<think>a</think><search>Peru</search>", FORMED], 1.0),
        (["<search>Peru</search>", FORMED], 0.8),
        (["<think>a</think><answer>Lima</answer>"], 0.2),
        (["<answer>Lima</answer>"], 0.0),
        (["hm", FORMED], 0.8),
        (["<think>a</think> hm", "<think>a</think><search>Peru</search>", FORMED], 0.8),
    ],
)
def test_the_format_reward_is_added_for_well_formed_turns(make: Make, actions: Sequence[str], reward: float) -> None:
    _, got, _, _, info = play(make(format_reward=0.2), "toy/0", *actions)
    assert got == pytest.approx(reward) and info["success"] == (reward >= 0.8)


def test_the_format_reward_works_in_every_grammar(make: Make) -> None:
    for grammar in ("bare", "react", "tool_call", "tools"):
        env = make(format_reward=0.2, grammar=grammar)
        _, reward, *_ = play(env, "toy/0", env.grammar.format("<answer>Huascarán</answer>", "So."))
        assert reward == 1.0, grammar


def test_compat_scores_the_last_answer_of_the_transcript_as_search_r1_does(make: Make) -> None:
    _, reward, *_ = play(make(compat="search-r1"), "toy/1", "<answer>Quito</answer>")
    assert reward == 1.0
    *_, info = play(make(compat="search-r1"), "toy/1", "<think><answer>Quito</answer></think><answer>Lima</answer>")
    assert (info["answer"], info["score"]) == ("Quito", 1.0)  # truncated after the first </answer>
    env = make(compat="search-r1")
    shown, *_ = play(env, "toy/1", "<think><search>Ecuador</search> <answer>no</answer></think>")
    assert "<answer>Rome</answer>" in shown
    assert env.step("<answer></answer>")[4]["answer"] == ""


def test_compat_scores_each_episode_by_its_own_transcript(make: Make) -> None:
    env = make(compat="search-r1")
    play(env, "toy/1", "<search>Lima</search>", "<answer>Quito</answer>")
    assert play(env, "toy/0", "<answer>Quito</answer>")[1] == 0.0
    assert [len(env._transcript)] == [2]


def test_retry_continues_until_an_answer_is_fully_right(make_retry: Make) -> None:
    _, reward, terminated, *_ = play(make_retry(metric="f1"), "toy/0", "<answer>Huascarán mountain</answer>")
    assert (reward, terminated) == (0.0, False)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({}, False),
        ({"retriever": "tantivy"}, False),
        ({"retriever": "dense"}, True),
        ({"retriever": "http://127.0.0.1:1"}, True),
        ({"retriever": "skyrl+http://127.0.0.1:1"}, True),
    ],
)
def test_retrievers_that_wait_or_take_cpu_need_a_worker(options: dict[str, Any], where: bool) -> None:
    assert SearchEnv.needs_worker(options) == where


def test_a_retriever_can_declare_that_it_waits(make: Make) -> None:
    class Slow(Broken):
        waits = True

    for retriever, waits in ((Broken(OSError()), False), (Slow(OSError()), True)):
        assert SearchEnv.needs_worker({"retriever": retriever}) == make(retriever=retriever).blocking == waits


class Generous(Broken):
    """A retriever that returns more hits than requested."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [[Hit(passage, 1.0) for passage in PASSAGES] for _ in queries]


def test_surplus_hits_are_dropped(make: Make) -> None:
    env = make(retriever=Generous(OSError()), top_k=2)
    assert play(env, "toy/0", "<search>x</search>")[4]["hits"] == ["lima", "peru"]


def test_passages_that_are_not_shown_do_not_count_as_found(make: Make) -> None:
    *_, info = play(make(retriever=Generous(OSError()), max_chars=20), "toy/0", "<search>x</search>")
    assert (info["hits"], info["recall"]) == (["lima"], 0.5)


def test_recall_covers_all_searches_so_far(make: Make) -> None:
    actions = ("<search>Lima capital</search>", "<search>Peru mountain</search>", "<search>Poland</search>")
    assert play(make(top_k=1), "toy/0", *actions)[4]["recall"] == 1.0


def test_a_snapshot_is_restored_without_searching_again(make: Make) -> None:
    env, other = make(), make(top_k=2)
    play(env, "toy/0", "<search>Lima capital</search>")
    snapshot = env.snapshot()
    env.step("<search>Peru</search>")
    env._retriever = Broken(OSError("nobody should ask"))
    env.restore(snapshot)
    assert env.step("<answer>Huascarán</answer>")[4]["recall"] == 0.5
    with pytest.raises(UsageError, match="another search engine"):
        other.restore(snapshot)


def test_prepare_opens_the_engine(make: Make) -> None:
    env = make()
    env.prepare()
    assert env._retriever is not None


def test_the_rules_mention_tools_with_the_tool_grammar(make: Make) -> None:
    assert "search(query) searches" in make(grammar="tool_call").instructions
    assert "<search>" not in make(grammar="tool_call").instructions
    native = make(grammar="tools")
    assert "search(query) searches" in native.instructions and "<tool_call>" not in native.instructions
    assert [tool["function"]["name"] for tool in tools_of(native.grammar)] == ["search", "answer"]
    assert "<search>query</search> searches" in make(grammar="react").instructions


def test_compat_takes_no_other_options(make: Make, make_retry: Make) -> None:
    for options in ({"grammar": "react"}, {"metric": "f1"}, {"format_reward": 0.2}):
        with pytest.raises(UsageError, match=next(iter(options))):
            make(compat="search-r1", **options)
    with pytest.raises(UsageError, match="retry"):
        make_retry(compat="search-r1")


@pytest.mark.parametrize("error", [RetrieverError("the server is down"), OSError("connection reset"), KeyError("x")])
def test_an_engine_error_ends_the_episode_and_is_not_shown(make: Make, error: Exception) -> None:
    env = make(retriever=Broken(error))
    shown, reward, terminated, truncated, info = play(env, "toy/1", "<search>Quito</search>")
    assert str(error).strip("'") not in shown.replace("x", "") and (reward, terminated, truncated) == (0.0, False, True)
    assert info["stop_reason"] == "env_error" and str(error) in info["error"]
    env.reset(seed=0, options=HOP)

    async def there() -> Any:
        return await env.astep("<search>Quito</search>")

    assert asyncio.run(there())[4]["stop_reason"] == "env_error"


def test_top_k_and_max_chars_are_honoured(make: Make) -> None:
    *_, info = play(make(top_k=1), "toy/0", "<search>Lima Peru Quito San</search>")
    assert len(info["hits"]) == 1
    shown, *_ = play(make(max_chars=10), "toy/0", "<search>Lima Peru</search>")
    assert len(shown) < 80 and shown.endswith("</information>")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"top_k": 0}, "top_k"),
        ({"top_k": 51}, "top_k"),
        ({"top_k": True}, "top_k"),
        ({"max_chars": 0}, "max_chars"),
        ({"max_chars": 20_001, "format": "skyrl"}, "20000"),
        ({"retriever": "bm25s"}, "not built for the engine"),
        ({"metric": "bleu"}, "em_plus"),
        ({"format": "xml"}, "search-r1"),
        ({"format_reward": 1.0}, "format_reward"),
        ({"format_reward": "0.2"}, "format_reward"),
        ({"compat": "skyrl"}, "compat"),
        ({"retriever": "google"}, "tantivy"),
        ({"retriever": 7}, "retriever"),
        ({"index": "/no/such/folder"}, "index"),
        ({"questions": "/no/such/folder"}, "no/such/folder"),
        ({"questions": 7}, "questions"),
    ],
)
def test_invalid_arguments_are_refused(make: Make, options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        make(**options)


def test_queries_of_any_script_and_length_work(make: Make) -> None:
    env = make()
    env.reset(seed=0, options=HOP)
    for query in ("北京", "ما هي عاصمة", "?!", "é" * 10_000, "Lima " * 3_000, "\u0000", 'AND OR NOT ( ) " : ^ ~ *'):
        shown, *_, info = env.step(f"<search>{query}</search>")
        assert info["invalid_action"] is None and shown.startswith("<information>")


def test_equal_states_have_equal_keys_after_any_thoughts(make: Make) -> None:
    env = make()
    keys = {
        play(env, "toy/0", f"{thought}<search>Peru</search>")[4]["state_key"]
        for thought in ("", "<think>one</think>", "<think>two</think> ")
    }
    assert len(keys) == 1
    assert play(env, "toy/0", "<search>Lima</search>")[4]["state_key"] not in keys


def test_a_copy_is_independent(make: Make) -> None:
    env = make()
    play(env, "toy/0", "<search>Lima capital</search>")
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert other.step("<search>Peru</search>")[4]["recall"] == 1.0
        assert other.retriever is env.retriever
        assert len(other.tasks.sample()) == len(env.tasks.sample()) == 3
    assert env.step("<answer>Lima</answer>")[4]["recall"] == 0.5


def test_the_oracle_works_from_any_state(make: Make) -> None:
    env = make()
    play(env, "toy/0", "<search>Lima capital</search>")
    assert list(env.oracle()) == ["<search>Peru</search>", "<answer>Huascarán</answer>"]


def test_rendering_shows_the_question_the_actions_and_the_last_observation(make: Make) -> None:
    env = make(render_mode="ansi")
    shown, *_ = play(env, "toy/0", "<search>Peru</search>")
    assert env.render() == f"Question: {env.task.goal}\n<search>Peru</search>\n{shown}"  # type: ignore[union-attr]


def test_without_the_package_the_error_names_the_extra(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "tantivy", None)
    with pytest.raises(MissingExtra, match=r"agentgym-envs\[search\]"):
        SearchEnv(questions=make().tasks, index=Path("/elsewhere"))

"""ATIF: every export is valid, and importing it gives the episode back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from agentgym_envs.errors import TrajectoryError, UsageError
from agentgym_envs.export.atif import to_atif
from agentgym_envs.export.atif_import import from_atif, tokens_of_atif
from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.export.text import valid_json
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.rollout.token_file import TokenRecord
from agentgym_envs.times import EpisodeTimes, TurnTimes
from agentgym_envs.trajectory import Trajectory, strict_json
from tests.export.atif_schema import faults
from tests.export.episodes import STRANGE, failed_at_reset, of_team, played, samples, with_answers
from tests.peers import run_with
from tests.viewer.token_episodes import CODEC, episode

HARBOR = """
import json, sys
from harbor.utils.trajectory_validator import TrajectoryValidator
for line in sys.stdin:
    validator = TrajectoryValidator()
    print(json.dumps([] if validator.validate(json.loads(line)) else [str(each)[:300] for each in validator.errors]))
"""
NEMO = """
import json, sys
from nemo_gym.atif_v1_7 import AtifTrajectoryV1_7
for line in sys.stdin:
    print(len(AtifTrajectoryV1_7.model_validate_json(line).steps))
"""


def exported(one: ExportEpisode, version: str = "1.8") -> dict[str, Any]:
    """The document as a reader of the file sees it."""
    document: dict[str, Any] = json.loads(strict_json(to_atif(one, version=version)))
    return document


def plain(one: Trajectory) -> Trajectory:
    """The record with valid Unicode, and null for NaN, as an export writes it."""
    return Trajectory.from_json(strict_json(valid_json(json.loads(one.to_json()))))


def numbers(record: TokenRecord) -> TokenRecord:
    """The record without the texts of its tokens, which the format has no field for."""
    return replace(record, prompt_pieces=[""] * len(record.prompt_ids), pieces=[""] * len(record.ids))


@settings(max_examples=60)
@given(STRANGE)
def test_any_record_is_exported_and_restored(one: Trajectory) -> None:
    document = exported(ExportEpisode(one))
    assert faults(document) == []
    wanted, found = plain(one), from_atif(document)
    assert found == wanted and found.times == wanted.times


@pytest.mark.parametrize("version", ["1.8", "1.7"])
def test_every_kind_of_episode_is_valid_and_restored(version: str) -> None:
    for one in samples():
        document = exported(one, version)
        assert document["schema_version"] == f"ATIF-v{version}" and faults(document) == []
        assert from_atif(document) == one.trajectory


@pytest.mark.slow
def test_harbor_accepts_every_export() -> None:
    documents = [exported(one, version) for one in samples() for version in ("1.8", "1.7")]

    @settings(max_examples=60, database=None)
    @given(STRANGE)
    def add(one: Trajectory) -> None:
        documents.append(exported(ExportEpisode(one)))

    add()
    lines = run_with("harbor", HARBOR, map(json.dumps, documents))
    assert [json.loads(line) for line in lines] == [[]] * len(documents)


@pytest.mark.slow
def test_nemo_gym_reads_version_1_7() -> None:
    documents = [exported(one, "1.7") for one in samples()]
    lines = run_with("nemo_gym.atif_v1_7", NEMO, map(json.dumps, documents))
    assert lines == [str(len(document["steps"])) for document in documents]


@pytest.mark.slow
def test_harbor_and_our_schema_refuse_the_same_documents() -> None:
    good = exported(with_answers("go"))
    agent = next(step for step in good["steps"] if step["source"] == "agent")
    bad = [
        {**good, "steps": []},
        {**good, "reward": 1},
        {**good, "schema_version": "ATIF-v9"},
        {**good, "steps": [{**agent, "step_id": 2}]},
        {**good, "steps": [{**agent, "step_id": 1, "source": "user"}]},
        {**good, "steps": [{**agent, "step_id": 1, "tool_calls": []}]},
        {**good, "subagent_trajectories": [{**good, "trajectory_id": "a"}, {**good, "trajectory_id": "a"}]},
    ]
    assert all(faults(each) for each in bad)
    lines = run_with("harbor", HARBOR, map(json.dumps, [good, *bad]))
    assert [bool(json.loads(line)) for line in lines] == [False, *[True] * len(bad)]


def test_tokens_are_those_of_each_answer() -> None:
    one = with_answers("go", "stay", "go")
    document = exported(one)
    (record,) = one.tokens
    metrics = [step["metrics"] for step in document["steps"] if step["source"] == "agent"]
    for (begin, end), found in zip(record.turn_spans, metrics, strict=True):
        assert record.logprobs is not None
        assert found["prompt_token_ids"] == [*record.prompt_ids, *record.ids[:begin]]
        assert found["completion_token_ids"] == record.ids[begin:end]
        assert found["logprobs"] == record.logprobs[begin:end]
        assert (found["prompt_tokens"], found["completion_tokens"]) == (len(record.prompt_ids) + begin, end - begin)
    assert [numbers(each) for each in tokens_of_atif(document)] == [numbers(record)]


def test_contexts_that_begin_again_are_segments_of_their_own() -> None:
    first, second = (TokenRecord.of(episode(answer), CODEC) for answer in ("go", "stay"))
    joint = episode("go", "stay").trajectory
    document = exported(ExportEpisode(joint, [first, second]))
    assert [numbers(each) for each in tokens_of_atif(document)] == [numbers(first), numbers(second)]


def test_answers_that_are_no_turns_keep_their_tokens() -> None:
    """Plans and summaries are sampled, too, so an episode may have more answers than turns."""
    plan = TokenRecord.of(episode("plan", "go"), CODEC)
    document = exported(ExportEpisode(episode("go").trajectory, [plan]))
    assert faults(document) == [] and [numbers(each) for each in tokens_of_atif(document)] == [numbers(plan)]


def test_an_infinite_logprob_leaves_out_those_of_its_answer() -> None:
    one = with_answers("go", "stay")
    (record,) = one.tokens
    assert record.logprobs is not None
    begin = record.turn_spans[0][0]
    logprobs = [None if index == begin else value for index, value in enumerate(record.logprobs)]
    document = exported(ExportEpisode(one.trajectory, [replace(record, logprobs=logprobs)]))
    first, second = (step["metrics"] for step in document["steps"] if step["source"] == "agent")
    assert "logprobs" not in first and "logprobs" in second and faults(document) == []


def test_a_team_is_a_record_with_its_agents_as_sub_agents() -> None:
    one = of_team()
    document = exported(one)
    views = per_agent_trajectories(one.trajectory)
    agents = document["subagent_trajectories"]
    assert [agent["agent"]["name"] for agent in agents] == list(views)
    for agent, view, record in zip(agents, views.values(), one.tokens, strict=True):
        assert from_atif(agent) == view
        assert [numbers(each) for each in tokens_of_atif(agent)] == [numbers(record)]
    references = document["steps"][-1]["observation"]["results"][0]["subagent_trajectory_ref"]
    assert [each["trajectory_id"] for each in references] == [agent["trajectory_id"] for agent in agents]


def test_an_episode_without_turns_has_a_step() -> None:
    document = exported(ExportEpisode(replace(failed_at_reset(), instructions="")))
    assert [step["source"] for step in document["steps"]] == ["user"] and faults(document) == []
    assert document["extra"]["agentgym"]["error"] == "gone"


def test_actions_are_tool_calls_and_thoughts_are_reasoning() -> None:
    one = played(grammar="react")
    turns = tuple(replace(turn, action=f"Thought: hm\n{turn.action.split(chr(10))[-1]}") for turn in one.turns)
    step = exported(ExportEpisode(replace(one, turns=turns)))["steps"][2]
    command = turns[0].action.rpartition("Action: ")[2]
    assert step["reasoning_content"] == "hm" and step["message"] == turns[0].action
    (call,) = step["tool_calls"]
    assert (call["function_name"], call["arguments"]) == ("act", {"action": command})
    assert step["observation"]["results"][0]["source_call_id"] == call["tool_call_id"]


def test_native_tools_keep_their_names() -> None:
    document = exported(ExportEpisode(played(grammar="tools")))
    known = {tool["function"]["name"] for tool in document["agent"]["tool_definitions"]}
    called = {call["function_name"] for step in document["steps"] for call in step.get("tool_calls", ())}
    assert called and called <= known


def test_an_answer_without_an_action_has_no_call() -> None:
    one = played(grammar="react")
    turns = (replace(one.turns[0], action="I give up"), *one.turns[1:])
    step = exported(ExportEpisode(replace(one, turns=turns)))["steps"][2]
    assert "tool_calls" not in step and "source_call_id" not in step["observation"]["results"][0]


def test_steps_have_the_time_of_the_answer() -> None:
    times = EpisodeTimes(0.0, 1.0, (TurnTimes(1.0, 2.5, 0.25), TurnTimes(4.0, 1.0, 0.0)))
    document = exported(ExportEpisode(replace(with_answers("go", "stay").trajectory, times=times)))
    stamps = [step["timestamp"] for step in document["steps"] if "timestamp" in step]
    assert stamps == ["1970-01-01T00:00:01.000000Z", "1970-01-01T00:00:03.500000Z", "1970-01-01T00:00:05.000000Z"]


def test_ids_follow_from_the_record() -> None:
    one = with_answers("go").trajectory
    first, again = (exported(ExportEpisode(Trajectory.from_json(one.to_json())))["trajectory_id"] for _ in range(2))
    assert first == again != exported(ExportEpisode(replace(one, seed=one.seed + 1)))["trajectory_id"]


def test_another_version_is_refused() -> None:
    with pytest.raises(UsageError, match=r"1\.8 or 1\.7, not '2'"):
        to_atif(with_answers("go"), version="2")


FOREIGN: dict[str, Any] = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s-1",
    "agent": {"name": "terminus", "version": "2", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "Fix it."}]},
        {
            "step_id": 3,
            "source": "agent",
            "message": "Looking.",
            "reasoning_content": "hm",
            "tool_calls": [
                {"tool_call_id": "a", "function_name": "ls", "arguments": {"path": "."}},
                {"tool_call_id": "b", "function_name": "cat", "arguments": {}},
            ],
            "observation": {
                "results": [
                    {"source_call_id": "a", "content": "x.py"},
                    {
                        "source_call_id": "b",
                        "content": [{"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}],
                    },
                    {},
                ]
            },
            "metrics": {"completion_tokens": 7, "completion_token_ids": [4, 5], "prompt_token_ids": [1]},
        },
        {"step_id": 4, "source": "user", "message": "And?"},
        {"step_id": 5, "source": "agent", "message": "Done."},
    ],
    "final_metrics": {"extra": {"reward": 1.0}},
}


def test_a_foreign_document_becomes_turns() -> None:
    assert faults({**FOREIGN, "schema_version": "ATIF-v1.8"}) == []
    one = from_atif(FOREIGN)
    assert (one.instructions, one.task.id, one.task.goal, one.score, one.success) == (
        "Be brief.",
        "s-1",
        "Fix it.",
        1.0,
        True,
    )
    first, second = one.turns
    assert first.observation == "Fix it." and first.info["tokens"] == 7
    assert first.action.startswith("<think>\nhm\n</think>\n\nLooking.\n\n<tool_call>\n")
    assert first.action.count("<tool_call>") == 2
    assert second.observation == "x.py\n\n[image image/png: a.png]\n\nAnd?" and second.action == "Done."
    assert (one.meta["policy"], one.meta["agent"]["name"]) == ("m", "terminus")
    (segment,) = tokens_of_atif(FOREIGN)
    assert (segment.prompt_ids, segment.ids, segment.mask) == ([1], [4, 5], [1, 1])


def test_a_foreign_document_may_lack_almost_everything() -> None:
    step = {"source": "agent", "message": "", "observation": {"results": [{"content": None}]}}
    one = from_atif({"schema_version": "ATIF-v1.0", "agent": {}, "steps": [step]})
    assert len(one.turns) == 1 and one.stop_reason == "unknown" and one.score == 0.0


@pytest.mark.parametrize(
    "document",
    [
        3,
        {},
        {"schema_version": "2"},
        {"schema_version": "ATIF-v1.8"},
        {"schema_version": "ATIF-v1.8", "steps": [3]},
        {"schema_version": "ATIF-v1.8", "steps": [{"source": "agent", "message": 5}]},
        {"schema_version": "ATIF-v1.8", "steps": [], "extra": {"agentgym": {"env_id": 3}}},
        {"schema_version": "ATIF-v1.8", "steps": [], "extra": 3},
    ],
)
def test_malformed_documents_are_refused(document: object) -> None:
    with pytest.raises(TrajectoryError, match=r"not an? "):
        from_atif(document)

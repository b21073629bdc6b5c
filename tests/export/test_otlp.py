"""OTLP: traces that OpenTelemetry's own messages accept, with real times and deterministic ids."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from agentgym_envs.export import genai
from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.export.otlp import to_otlp, write_line
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.times import EpisodeTimes, TurnTimes
from agentgym_envs.trajectory import Trajectory
from tests.export.episodes import STRANGE, failed_at_reset, of_team, played, samples, with_answers
from tests.peers import run_with

PARSE = """
import base64, json, sys
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
for line in sys.stdin:
    row = json.loads(line)
    for spans in (s["spans"] for r in row["resourceSpans"] for s in r["scopeSpans"]):
        for span in spans:  # ids are hex in OTLP/JSON, and base64 in protobuf's own JSON
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    request = ParseDict(row, ExportTraceServiceRequest())
    spans = request.resource_spans[0].scope_spans[0].spans
    print(json.dumps([len(spans), all(len(s.trace_id) == 16 and len(s.span_id) == 8 for s in spans)]))
"""
KNOWN = """
import sys
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes
known = {v for m in (gen_ai_attributes, error_attributes) for v in vars(m).values() if isinstance(v, str)}
for line in sys.stdin:
    print(line.strip() in known)
"""
TIMES = EpisodeTimes(1_700_000_000.25, 1.0, (TurnTimes(1.0, 2.5, 0.25), TurnTimes(4.0, 1.0, 0.5)))


def spans_of(one: ExportEpisode | Trajectory, *, content: bool = False) -> list[dict[str, Any]]:
    """The spans as a reader of the file sees them, with their attributes as an object."""
    episode = one if isinstance(one, ExportEpisode) else ExportEpisode(one)
    row = json.loads(write_line(to_otlp(episode, content=content)))
    (scope,) = row["resourceSpans"][0]["scopeSpans"]
    assert scope["schemaUrl"] == genai.SCHEMA_URL
    return [{**span, "attributes": plain(span["attributes"])} for span in scope["spans"]]


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    """Attributes as an object of their values."""
    return {each["key"]: next(iter(each["value"].values())) for each in attributes}


def interval(span: dict[str, Any]) -> tuple[int, int]:
    return int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])


def test_a_turn_is_an_answer_and_a_step_with_their_times() -> None:
    root, reset, first, second, *steps = spans_of(replace(with_answers("go", "stay").trajectory, times=TIMES))
    start = 1_700_000_000_250_000_000
    assert interval(root) == (start, start + 5_500_000_000)
    assert interval(reset) == (start, start + 1_000_000_000)
    assert interval(first) == (start + 1_000_000_000, start + 3_500_000_000)
    assert interval(second) == (start + 4_000_000_000, start + 5_000_000_000)
    assert [interval(step)[1] - interval(step)[0] for step in steps] == [250_000_000, 500_000_000]
    assert [interval(step)[0] for step in steps] == [interval(first)[1], interval(second)[1]]
    assert root["attributes"]["agentgym.has_times"] is True and "parentSpanId" not in root
    assert {span["parentSpanId"] for span in (reset, first, second, *steps)} == {root["spanId"]}
    assert [span["name"] for span in (first, *steps)] == ["chat unknown", *["execute_tool act"] * 2]


def test_without_times_the_order_is_kept() -> None:
    for one in (played(), replace(played(), times=TIMES)):  # none, or those of another number of turns
        root, _, *rest = spans_of(replace(one, times=None))
        assert root["attributes"]["agentgym.has_times"] is False
        turns = {span["attributes"][genai.TURN] for span in rest}
        for turn in turns:
            answer, step = (span for span in rest if span["attributes"][genai.TURN] == turn)
            assert interval(answer)[1] == interval(step)[0] < interval(step)[1]


def test_the_score_is_an_event() -> None:
    one = played()
    (event,) = spans_of(one)[0]["events"]
    values = plain(event["attributes"])
    assert event["name"] == "gen_ai.evaluation.result"
    assert (values[genai.EVALUATION_VALUE], values[genai.EVALUATION_LABEL]) == (one.score, "pass")


def test_an_infrastructure_error_is_the_status_of_the_trace() -> None:
    root = spans_of(failed_at_reset())[0]
    assert root["status"] == {"code": 2, "message": "gone"} and root["attributes"]["error.type"] == "env_error"
    assert "status" not in spans_of(played())[0]


def test_contents_are_left_out_unless_asked_for() -> None:
    one = played(grammar="react")
    secrets = [one.instructions, *one.actions, *(turn.observation for turn in one.turns), one.final_observation]
    without, with_content = (write_line(to_otlp(ExportEpisode(one), content=content)) for content in (False, True))
    for secret in secrets:
        part = json.dumps(secret, ensure_ascii=False)[1:-1]
        assert part not in without
        assert part in with_content or json.dumps(part, ensure_ascii=False)[1:-1] in with_content


def test_the_reply_to_an_invalid_action_is_a_content() -> None:
    one = with_answers("go").trajectory
    turn = replace(one.turns[0], info={"invalid_action": "there is no 'secret word'"})
    line = write_line(to_otlp(ExportEpisode(replace(one, turns=(turn,)))))
    assert "secret" not in line and '"agentgym.invalid_action"' in line


def test_tokens_are_counted() -> None:
    one = with_answers("go", "stay")
    (record,) = one.tokens
    answers = [span["attributes"] for span in spans_of(one) if span["name"].startswith("chat")]
    prompts = [len(record.prompt_ids) + begin for begin, _ in record.turn_spans]
    assert [int(answer[genai.INPUT_TOKENS]) for answer in answers] == prompts
    assert [int(answer[genai.OUTPUT_TOKENS]) for answer in answers] == [end - begin for begin, end in record.turn_spans]


def test_the_agents_of_a_team_have_their_own_spans() -> None:
    one = of_team()
    spans = spans_of(one)
    views = per_agent_trajectories(one.trajectory)
    agents = {span["name"]: span["spanId"] for span in spans if span["name"].startswith("invoke_agent")}
    assert list(agents)[1:] == [f"invoke_agent {name}" for name in views]
    for name, view in views.items():
        own = [span for span in spans if span.get("parentSpanId") == agents[f"invoke_agent {name}"]]
        assert len(own) == len(view.turns) and {span["attributes"][genai.AGENT] for span in own} == {name}
        assert view.times is not None
        lengths = [interval(span)[1] - interval(span)[0] for span in own]
        assert lengths == pytest.approx([1e9 * turn.generation for turn in view.times.turns], abs=1)
    assert sum(span["name"] == "execute_tool act" for span in spans) == len(one.trajectory.turns)


def test_ids_follow_from_the_record_and_are_unique() -> None:
    one = played()
    first, again, other = spans_of(one), spans_of(one), spans_of(replace(one, seed=one.seed + 1))
    assert first == again
    assert {span["traceId"] for span in first}.isdisjoint(span["traceId"] for span in other)
    ids = [span["spanId"] for span in first]
    assert len(set(ids)) == len(ids)


@settings(max_examples=60)
@given(STRANGE)
def test_any_record_is_exported(one: Trajectory) -> None:
    for content in (True, False):
        spans = spans_of(one, content=content)
        assert all(re.fullmatch("[0-9a-f]{32}", span["traceId"]) for span in spans)
        assert all(re.fullmatch("[0-9a-f]{16}", span["spanId"]) for span in spans)
        assert all(0 <= interval(span)[0] <= interval(span)[1] for span in spans)


@pytest.mark.slow
def test_opentelemetry_parses_every_export() -> None:
    requests = [to_otlp(one, content=content) for one in samples() for content in (True, False)]

    @settings(max_examples=60, database=None)
    @given(STRANGE)
    def add(one: Trajectory) -> None:
        requests.append(to_otlp(ExportEpisode(one), content=True))

    add()
    found = [json.loads(line) for line in run_with("opentelemetry.proto", PARSE, map(write_line, requests))]
    counts = [len(request["resourceSpans"][0]["scopeSpans"][0]["spans"]) for request in requests]
    assert found == [[count, True] for count in counts]


@pytest.mark.slow
def test_opentelemetry_knows_the_names() -> None:
    names = [value for key, value in vars(genai).items() if key.isupper() and not key.endswith(("URL", "EVENT"))]
    ours = [name for name in names if not name.startswith("agentgym.")]
    found = run_with("opentelemetry.semconv", KNOWN, ours)
    assert [name for name, known in zip(ours, found, strict=True) if known != "True"] == []

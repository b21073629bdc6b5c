"""Trajectories as OpenTelemetry spans, in OTLP/JSON: one request per line, as the collector's `otlpjsonfile` reads.

An episode is a trace. Its root is a span `invoke_agent`, with the score as an event. Below it are the reset, and for
each turn a span `chat` for the answer and a span `execute_tool` for the step of the environment. The agents of a team
have spans `invoke_agent` of their own, with their answers below.

Without recorded times the spans have only their order: they begin in 1970 and each lasts a millisecond.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import agentgym_envs
from agentgym_envs.core import StopReason
from agentgym_envs.export import genai
from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.export.text import valid_json
from agentgym_envs.export.tokens import AnswerTokens, answers_of, segments_by_agent
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.multiagent.joint_format import is_team_record
from agentgym_envs.times import EpisodeTimes, TurnTimes
from agentgym_envs.trajectory import Trajectory, strict_json

_INTERNAL, _CLIENT, _FAILED = 1, 3, 2
_NANO = 1_000_000_000
_INT64 = 1 << 63
_STEP_SECONDS = 0.001
_Json = dict[str, Any]


def to_otlp(episode: ExportEpisode, *, content: bool = False) -> _Json:
    """Convert an episode to an `ExportTraceServiceRequest` in OTLP/JSON. Its ids follow from the record.

    Args:
        episode: the episode; its tokens are only counted.
        content: add observations, answers and instructions. A span has the last message, not the whole conversation.
    """
    trajectory = episode.trajectory
    trace = _Trace(episode.id[:32], _clock(trajectory), content, str(trajectory.meta.get("policy") or "unknown"))
    views, tokens = {"": trajectory}, {"": episode.tokens}
    if is_team_record(trajectory):
        views = per_agent_trajectories(trajectory)
        tokens = segments_by_agent(views, episode.tokens)
    _add_root(trace, trajectory)
    for agent, view in views.items():
        parent = trace.root if not agent else _add_agent(trace, agent, view)
        _add_answers(trace, parent, view, answers_of(view, tokens[agent]))
    _add_steps(trace, trajectory)
    resource = {"service.name": "agentgym", "service.version": agentgym_envs.__version__}
    scope = {"name": "agentgym_envs", "version": agentgym_envs.__version__}
    scopes = [{"scope": scope, "schemaUrl": genai.SCHEMA_URL, "spans": trace.spans}]
    return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": scopes}]}


@dataclass(slots=True)
class _Trace:
    """Collects the spans of an episode."""

    id: str
    times: EpisodeTimes
    content: bool
    model: str
    spans: list[_Json] = field(default_factory=list)

    @property
    def root(self) -> str:
        """The id of the root span."""
        return self.span_id("root")

    def span_id(self, key: str) -> str:
        """The id of a span, from its place in the episode."""
        return hashlib.sha256(f"{self.id} {key}".encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def nanoseconds(self, offset: float) -> str:
        """A time in nanoseconds since 1970, as OTLP/JSON writes it, from seconds after the start of the episode."""
        return str(round(self.times.start * 1e6) * 1000 + round(offset * _NANO))

    def add(
        self, key: str, parent: str, name: str, span: tuple[float, float], values: Mapping[str, Any], **more: Any
    ) -> str:
        """Add a span from its begin and end, in seconds after the start, and return its id."""
        number = self.span_id(key)
        ids = {"traceId": self.id, "spanId": number, **({"parentSpanId": parent} if parent else {})}
        begin, end = span
        interval = {"startTimeUnixNano": self.nanoseconds(begin), "endTimeUnixNano": self.nanoseconds(end)}
        self.spans.append(
            valid_json({**ids, "name": name, "kind": _INTERNAL, **interval, "attributes": _attributes(values), **more})
        )
        return number


def _clock(trajectory: Trajectory) -> EpisodeTimes:
    """The recorded times, or made-up ones that have only the right order."""
    if has_times(trajectory):
        assert trajectory.times is not None
        return trajectory.times
    return _order_only(len(trajectory.turns))


def has_times(trajectory: Trajectory) -> bool:
    """True if the record has the times of all its turns."""
    return trajectory.times is not None and len(trajectory.times.turns) == len(trajectory.turns)


def _order_only(turns: int) -> EpisodeTimes:
    begins = [_STEP_SECONDS * (1 + 2 * number) for number in range(turns)]
    return EpisodeTimes(0.0, _STEP_SECONDS, tuple(TurnTimes(begin, _STEP_SECONDS, _STEP_SECONDS) for begin in begins))


def _end(times: EpisodeTimes) -> float:
    """The end of the episode, in seconds after its start."""
    return sum(times.turns[-1]) if times.turns else times.reset


def _add_root(trace: _Trace, trajectory: Trajectory) -> None:
    failed = trajectory.stop_reason == StopReason.ENV_ERROR.value
    described = trajectory.meta.get("agent")
    agent = described.get("name") if isinstance(described, dict) else described
    values = {
        genai.OPERATION: "invoke_agent",
        genai.PROVIDER: "agentgym",
        genai.AGENT: str(agent or "agentgym"),
        genai.MODEL: trace.model,
        genai.CONVERSATION: trace.id,
        genai.ERROR: StopReason.ENV_ERROR.value if failed else None,
        genai.ENV_ID: trajectory.env_id,
        genai.TASK: trajectory.task.id,
        genai.GROUP: trajectory.task.group,
        genai.SPLIT: trajectory.task.split,
        genai.SEED: trajectory.seed,
        genai.STOP: trajectory.stop_reason,
        genai.TURNS: len(trajectory.turns),
        genai.STEP: trajectory.meta.get("step"),
        genai.TIMES: has_times(trajectory),
        genai.INSTRUCTIONS: _instructions(trajectory) if trace.content else None,
    }
    more: _Json = {"events": [_score_event(trace, trajectory)]}
    if failed:
        more["status"] = {"code": _FAILED, "message": trajectory.error or ""}
    name = f"invoke_agent {values[genai.AGENT]}"
    trace.add("root", "", name, (0.0, _end(trace.times)), values, **more)
    trace.add("reset", trace.root, "reset", (0.0, trace.times.reset), {genai.ENV_ID: trajectory.env_id})


def _score_event(trace: _Trace, trajectory: Trajectory) -> _Json:
    values = {
        genai.EVALUATION: "score",
        genai.EVALUATION_VALUE: float(trajectory.score),
        genai.EVALUATION_LABEL: "pass" if trajectory.success else "fail",
        genai.EVALUATION_WHY: trajectory.stop_reason,
    }
    when = trace.nanoseconds(_end(trace.times))
    return {"name": genai.EVALUATION_EVENT, "timeUnixNano": when, "attributes": _attributes(values)}


def _add_agent(trace: _Trace, agent: str, view: Trajectory) -> str:
    """Add the span of a team member, from its first answer to its last."""
    values = {
        genai.OPERATION: "invoke_agent",
        genai.AGENT: agent,
        genai.CONVERSATION: f"{trace.id}-{agent}",
        genai.TURNS: len(view.turns),
        genai.SCORE: float(view.score),
        genai.INSTRUCTIONS: _instructions(view) if trace.content else None,
    }
    return trace.add(f"agent {agent}", trace.root, f"invoke_agent {agent}", (0.0, _end(trace.times)), values)


def _add_answers(trace: _Trace, parent: str, view: Trajectory, tokens: Sequence[AnswerTokens] | None) -> None:
    """Add a span for each answer of an agent."""
    agent = str(view.meta.get("agent")) if parent != trace.root else ""
    times = _clock(view)
    for number, (turn, when) in enumerate(zip(view.turns, times.turns, strict=True)):
        finish = turn.info.get("finish")
        values: _Json = {
            genai.OPERATION: "chat",
            genai.PROVIDER: "agentgym",
            genai.AGENT: agent or None,
            genai.MODEL: trace.model,
            genai.CONVERSATION: f"{trace.id}-{agent}" if agent else trace.id,
            genai.FINISH_REASONS: [finish] if isinstance(finish, str) else None,
            genai.INPUT_TOKENS: len(tokens[number].prompt_ids) if tokens else None,
            genai.OUTPUT_TOKENS: len(tokens[number].ids) if tokens else _count(turn.info.get("tokens")),
            genai.TURN: number + 1,
        }
        if trace.content:
            values[genai.INPUT] = [_message("user", turn.observation)]
            values[genai.OUTPUT] = [_message("assistant", turn.action, finish)]
        interval = when.begin, when.begin + when.generation
        key = f"answer {agent} {number}"
        trace.add(key, parent, f"chat {trace.model}", interval, values, kind=_CLIENT)


def _add_steps(trace: _Trace, trajectory: Trajectory) -> None:
    """Add a span for each step of the environment."""
    for number, (turn, reply) in enumerate(zip(trajectory.turns, _replies(trajectory), strict=True)):
        when = trace.times.turns[number]
        begin = when.begin + when.generation
        values = {
            genai.OPERATION: "execute_tool",
            genai.TOOL: "act",
            genai.TOOL_TYPE: "function",
            genai.CALL: f"call_{number + 1}",
            genai.TURN: number + 1,
            genai.REWARD: float(turn.reward),
            genai.SCORE: turn.info.get("score"),
            genai.INVALID: turn.info.get("invalid_action"),
            genai.ARGUMENTS: {"action": turn.action} if trace.content else None,
            genai.RESULT: reply if trace.content else None,
        }
        if not trace.content and values[genai.INVALID] is not None:
            values[genai.INVALID] = True  # the message quotes the action
        trace.add(f"step {number}", trace.root, "execute_tool act", (begin, begin + when.environment), values)


def _replies(trajectory: Trajectory) -> Iterator[str]:
    """The observation after each turn."""
    seen = [*(turn.observation for turn in trajectory.turns), trajectory.final_observation]
    return (after for _, after in pairwise(seen))


def _message(role: str, text: str, finish: Any = None) -> _Json:
    message: _Json = {"role": role, "parts": [{"type": "text", "content": text}]}
    return message | ({"finish_reason": finish} if isinstance(finish, str) else {})


def _instructions(trajectory: Trajectory) -> list[_Json]:
    return [{"type": "text", "content": trajectory.instructions}]


def _count(value: Any) -> int | None:
    return value if type(value) is int else None


def _attributes(values: Mapping[str, Any]) -> list[_Json]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: Any) -> _Json:
    """A value in OTLP/JSON, where 64-bit integers are strings. Objects become JSON texts."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value if isinstance(value, str) else strict_json(value)}


def write_line(request: _Json) -> str:
    """A request as one line."""
    return json.dumps(request, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

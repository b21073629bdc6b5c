"""Trajectories out of ATIF documents: those that `atif` wrote, and those of other agents.

Our own are restored as they were. Of others, the environment, score and stop reason are unknown; a score is taken from
`final_metrics.extra` if there is one. A step of the agent is a turn; texts of the user and results of tools are what it
observes next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.export.atif import EXTRA
from agentgym_envs.export.tokens import AnswerTokens, make_record, to_segments
from agentgym_envs.rollout.token_file import TokenRecord
from agentgym_envs.task import Task
from agentgym_envs.trajectory import SCHEMA_VERSION, Trajectory, Turn

UNKNOWN_ENV, UNKNOWN_STOP = "ATIF", "unknown"
_SCHEMA = "ATIF-v"
_SCORES = ("score", "reward", "total_reward")
_Json = Mapping[str, Any]


def is_atif(document: object) -> bool:
    """True if a JSON value says that it is an ATIF document."""
    return isinstance(document, dict) and str(document.get("schema_version", "")).startswith(_SCHEMA)


def from_atif(document: object) -> Trajectory:
    """Convert a document without its sub-agents, which are documents of their own.

    Raises TrajectoryError if it is not an ATIF document, or if a part of it has the wrong form.
    """
    if not isinstance(document, dict) or not is_atif(document):
        raise TrajectoryError("not an ATIF document: it has no schema_version ATIF-v...")
    try:
        steps = [_Step.of(step) for step in document["steps"]]
        own = _own(document)
        return _foreign(document, steps) if own is None else _restored(own, steps)
    except TrajectoryError:
        raise
    except KeyError as error:
        raise TrajectoryError(f"not an ATIF document: it has no {error}") from None
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TrajectoryError(f"not an ATIF document: {type(error).__name__}: {error}") from None


def tokens_of_atif(document: _Json) -> list[TokenRecord]:
    """The token segments of a document; empty if it has no token ids. Raises TrajectoryError if they are malformed."""
    try:
        segments = (_own(document) or {}).get("segments")
        if segments is not None:
            return [_record(segment) for segment in segments]
        return to_segments(_answers(document["steps"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TrajectoryError(f"the tokens of this ATIF document cannot be read: {error}") from None


def texts_of_step(step: _Json) -> tuple[str, ...]:
    """The texts of a step, for a search; none if it is malformed."""
    try:
        read = _Step.of(step)
        return read.text, read.seen, _action(read)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


class _Step(NamedTuple):
    """A step: its text, what the agent observed after it, and our own data about it."""

    source: str
    text: str
    seen: str
    row: _Json

    @classmethod
    def of(cls, step: _Json) -> _Step:
        results = (step.get("observation") or {}).get("results") or []
        seen = "\n\n".join(filter(None, (_text(result.get("content")) for result in results)))
        return cls(step["source"], _text(step.get("message")), seen, step)

    @property
    def own(self) -> _Json:
        found: _Json = ((self.row.get("extra") or {}).get(EXTRA)) or {}
        return found


def _own(document: _Json) -> _Json | None:
    found = (document.get("extra") or {}).get(EXTRA)
    return found if isinstance(found, dict) and "env_id" in found else None


def _restored(own: _Json, steps: Sequence[_Step]) -> Trajectory:
    """The record that `atif` exported."""
    fields = {name: value for name, value in own.items() if name != "segments"}
    opening = {step.source: step.text for step in steps if step.source != "agent"}
    turns, seen = list[dict[str, Any]](), opening["user"]
    for step in steps:
        if step.source == "agent":
            row = {"observation": seen, "action": step.text, "reward": step.own["reward"], "info": step.own["info"]}
            turns.append(row)
            seen = step.seen
    texts = {"instructions": opening.get("system", ""), "final_observation": seen}
    return Trajectory.from_json(json.dumps({"schema": SCHEMA_VERSION, **fields, **texts, "turns": turns}))


def _foreign(document: _Json, steps: Sequence[_Step]) -> Trajectory:
    first = next((number for number, step in enumerate(steps) if step.source == "agent"), len(steps))
    instructions = "\n\n".join(step.text for step in steps[:first] if step.source == "system")
    turns, last = _turns(step for number, step in enumerate(steps) if number >= first or step.source != "system")
    agent = document.get("agent") or {}
    score = _score(document)
    name = str(agent.get("name") or "agent")
    read = Trajectory(
        env_id=UNKNOWN_ENV,
        task=Task(_id(document), "test", "ungrouped", _goal(steps)),
        seed=0,
        instructions=instructions,
        turns=turns,
        final_observation=last,
        score=score or 0.0,
        success=score is not None and score >= 1,
        stop_reason="success" if score is not None and score >= 1 else UNKNOWN_STOP,
        meta={"policy": agent.get("model_name"), "agent": {"name": name}, "atif": _about(document)},
    )
    return Trajectory.from_json(read.to_json())  # which checks the types of what the document holds


def _turns(steps: Iterator[_Step]) -> tuple[tuple[Turn, ...], str]:
    """The turns and the final observation. Texts between two answers are one observation."""
    turns, seen = list[Turn](), list[str]()
    for step in steps:
        if step.source == "agent":
            turns.append(Turn("\n\n".join(seen), _action(step), _reward(step), _info(step)))
            seen = []
        else:
            seen.append(step.text)
        seen += [step.seen] if step.seen else []
    return tuple(turns), "\n\n".join(seen)


def _action(step: _Step) -> str:
    """The answer as text: reasoning, message and tool calls."""
    reasoning = step.row.get("reasoning_content")
    calls = [
        json.dumps({"name": call["function_name"], "arguments": call["arguments"]}, ensure_ascii=False)
        for call in step.row.get("tool_calls") or []
    ]
    parts = [f"<think>\n{reasoning}\n</think>"] if reasoning else []
    parts += [step.text] if step.text else []
    return "\n\n".join([*parts, *(f"<tool_call>\n{call}\n</tool_call>" for call in calls)])


def _info(step: _Step) -> dict[str, Any]:
    """The other fields of the step, for the raw view."""
    left = ("timestamp", "model_name", "reasoning_effort", "llm_call_count", "is_copied_context", "extra")
    info = {name: step.row[name] for name in left if step.row.get(name) is not None}
    count = (step.row.get("metrics") or {}).get("completion_tokens")
    return {**info, **({"tokens": count} if type(count) is int else {})}


def _reward(step: _Step) -> float:
    reward = (step.row.get("extra") or {}).get("reward")
    return float(reward) if isinstance(reward, int | float) else 0.0


def _score(document: _Json) -> float | None:
    extra = (document.get("final_metrics") or {}).get("extra") or {}
    found = (extra.get(name) for name in _SCORES)
    return next((float(value) for value in found if isinstance(value, int | float)), None)


def _id(document: _Json) -> str:
    return str(document.get("trajectory_id") or document.get("session_id") or "unknown")


def _goal(steps: Sequence[_Step]) -> str:
    text = next((step.text for step in steps if step.source == "user"), "")
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _about(document: _Json) -> dict[str, Any]:
    """The remaining fields of the document."""
    known = ("steps", "subagent_trajectories", "extra", "agent")
    return {name: value for name, value in document.items() if name not in known and value is not None}


def _text(content: Any) -> str:
    """The text of a message or result. Images and audio are named, since their files are elsewhere."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(_part(part) for part in content)


def _part(part: _Json) -> str:
    if part.get("type") == "text":
        return str(part.get("text") or "")
    source = part.get("source") or {}
    return f"[{part.get('type', 'content')} {source.get('media_type', '')}: {source.get('path', 'unknown')}]"


def _answers(steps: Sequence[_Json]) -> Iterator[AnswerTokens]:
    for step in steps:
        metrics = step.get("metrics") or {}
        if (ids := metrics.get("completion_token_ids")) is not None:
            own = _Step.of(step).own
            prompt, logprobs = metrics.get("prompt_token_ids") or [], metrics.get("logprobs")
            if logprobs is not None and len(logprobs) != len(ids):
                raise ValueError("an answer has another number of logprobs than of tokens")
            yield AnswerTokens(_ids(prompt), _ids(ids), logprobs, own.get("reward", 0.0))


def _ids(value: Any) -> list[int]:
    if not isinstance(value, list) or any(type(number) is not int for number in value):
        raise ValueError(f"token ids must be a list of whole numbers, not {value!r:.80}")
    return value


def _record(segment: _Json) -> TokenRecord:
    spans = [(begin, end) for begin, end in segment["turn_spans"]]
    return make_record(segment["prompt_ids"], segment["ids"], spans, segment["logprobs"], segment["rewards"])

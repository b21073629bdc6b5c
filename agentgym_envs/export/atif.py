"""Trajectories in ATIF, Harbor's Agent Trajectory Interchange Format, versions 1.8 and 1.7.

A document holds one episode. What the format has no field for (rewards, infos, the task) is under `extra.agentgym`,
from which `atif_import` restores the episode. A team is the joint record, with its agents as sub-agents.

Source: ATIF, RFC 0001 of Harbor (https://github.com/laude-institute/harbor).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import agentgym_envs
from agentgym_envs.errors import UsageError
from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.export.formats import ATIF_VERSIONS
from agentgym_envs.export.text import timestamp, valid_json
from agentgym_envs.export.tokens import AnswerTokens, answers_of, segments_by_agent
from agentgym_envs.grammar import ActionGrammar, find_call
from agentgym_envs.multiagent.agent_trajectories import per_agent_trajectories
from agentgym_envs.multiagent.joint_format import is_team_record
from agentgym_envs.rollout.token_file import TokenRecord
from agentgym_envs.times import EpisodeTimes
from agentgym_envs.trajectory import Trajectory, Turn
from agentgym_envs.viewer.answers import grammar_of, read_answer

EXTRA = "agentgym"
"""The key of our own data in the `extra` objects of a document."""
_Json = dict[str, Any]


def to_atif(episode: ExportEpisode, *, version: str = ATIF_VERSIONS[0]) -> _Json:
    """Convert an episode to a document. Its `trajectory_id` follows from the record.

    Lone surrogates become U+FFFD, since validators accept only valid Unicode. Raises UsageError for another version.
    """
    if version not in ATIF_VERSIONS:
        raise UsageError(f"ATIF is written in version {' or '.join(ATIF_VERSIONS)}, not {version!r}")
    document = _document(episode, version)
    if is_team_record(episode.trajectory):
        _add_agents(document, episode, version)
    found: _Json = valid_json(document)
    return found


def _document(episode: ExportEpisode, version: str) -> _Json:
    trajectory = episode.trajectory
    answers = answers_of(trajectory, episode.tokens)
    steps = [*_opening(trajectory), *_agent_steps(trajectory, answers)]
    extra = _extra(trajectory)
    if answers is None and episode.tokens:
        extra["segments"] = [_segment(record) for record in episode.tokens]
    return {
        "schema_version": f"ATIF-v{version}",
        "session_id": episode.id[:32],
        "trajectory_id": episode.id[:32],
        "agent": _agent(trajectory),
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": _final_metrics(trajectory, len(steps)),
        "extra": {EXTRA: extra},
    }


def _add_agents(document: _Json, episode: ExportEpisode, version: str) -> None:
    """Embed the agents of a team, and refer to them from its last turn."""
    views = per_agent_trajectories(episode.trajectory)
    own = segments_by_agent(views, episode.tokens)
    document["subagent_trajectories"] = [
        {**_document(ExportEpisode(view, own[agent], agent, episode.id), version), **_names(document, agent)}
        for agent, view in views.items()
    ]
    if all(own.values()):  # else some belong to no agent, and stay with the team
        document["extra"][EXTRA].pop("segments", None)
    last = document["steps"][-1]
    if last["source"] == "agent":
        references = [{"trajectory_id": each["trajectory_id"]} for each in document["subagent_trajectories"]]
        last["observation"]["results"][0]["subagent_trajectory_ref"] = references


def _names(document: Mapping[str, Any], agent: str) -> _Json:
    """The id and the agent of a team member's document."""
    return {
        "trajectory_id": f"{document['trajectory_id']}-{agent}",
        "agent": {**document["agent"], "name": agent},
    }


def _agent(trajectory: Trajectory) -> _Json:
    described = trajectory.meta.get("agent")
    name = described.get("name") if isinstance(described, dict) else described
    agent: _Json = {"name": str(name or EXTRA), "version": agentgym_envs.__version__}
    if (model := trajectory.meta.get("policy")) is not None:
        agent["model_name"] = str(model)
    if isinstance(tools := trajectory.meta.get("tools"), list) and all(isinstance(tool, dict) for tool in tools):
        agent["tool_definitions"] = tools
    return agent


def _opening(trajectory: Trajectory) -> Iterator[_Json]:
    """The steps before the first answer. A document needs a step, so an episode without turns has them as well."""
    if trajectory.instructions:
        yield {"source": "system", "message": trajectory.instructions}
    first = trajectory.turns[0].observation if trajectory.turns else trajectory.final_observation
    times = trajectory.times
    when = {"timestamp": timestamp(times.start + times.reset)} if times else {}
    yield {"source": "user", **when, "message": first}


def _agent_steps(trajectory: Trajectory, answers: Sequence[AnswerTokens] | None) -> Iterator[_Json]:
    grammar = grammar_of(trajectory)
    seen = [*(turn.observation for turn in trajectory.turns), trajectory.final_observation]
    for number, (turn, (_, reply)) in enumerate(zip(trajectory.turns, pairwise(seen), strict=True)):
        step: _Json = {"source": "agent", "message": turn.action, **_when(trajectory.times, number)}
        result: _Json = {"content": reply, "extra": {"reward": turn.reward}}
        if call := _call(turn, grammar, trajectory, number):
            step |= call
            result["source_call_id"] = call["tool_calls"][0]["tool_call_id"]
        step["observation"] = {"results": [result]}
        if metrics := _metrics(turn, answers[number] if answers else None):
            step["metrics"] = metrics
        step["extra"] = {EXTRA: {"reward": turn.reward, "info": turn.info, **_seconds(trajectory.times, number)}}
        yield step


def _when(times: EpisodeTimes | None, number: int) -> _Json:
    """The time at which the policy answered."""
    if times is None or number >= len(times.turns):
        return {}
    turn = times.turns[number]
    return {"timestamp": timestamp(times.start + turn.begin + turn.generation)}


def _seconds(times: EpisodeTimes | None, number: int) -> _Json:
    if times is None or number >= len(times.turns):
        return {}
    turn = times.turns[number]
    return {"generation_seconds": turn.generation, "environment_seconds": turn.environment}


def _call(turn: Turn, grammar: ActionGrammar, trajectory: Trajectory, number: int) -> _Json:
    """The action as a tool call, with the thought before it; empty if the answer holds no action."""
    thought, command = read_answer(turn.action, grammar)
    if command is None:
        return {}
    name, arguments = "act", {"action": command}
    if trajectory.meta.get("tools") and (native := find_call(turn.action)):
        name, arguments = native.name, native.arguments
    call = {"tool_call_id": f"call_{number + 1}", "function_name": name, "arguments": arguments}
    return {"tool_calls": [call], **({"reasoning_content": thought} if thought else {})}


def _metrics(turn: Turn, answer: AnswerTokens | None) -> _Json:
    if answer is None:
        count = turn.info.get("tokens")
        return {"completion_tokens": count} if type(count) is int and count >= 0 else {}
    metrics: _Json = {
        "prompt_tokens": len(answer.prompt_ids),
        "completion_tokens": len(answer.ids),
        "prompt_token_ids": answer.prompt_ids,
        "completion_token_ids": answer.ids,
    }
    if answer.logprobs is not None and None not in answer.logprobs:  # the format has no value for an infinite one
        metrics["logprobs"] = answer.logprobs
    return metrics


def _final_metrics(trajectory: Trajectory, steps: int) -> _Json:
    counts = [turn.info.get("tokens") for turn in trajectory.turns]
    known = bool(counts) and all(type(count) is int and count >= 0 for count in counts)
    metrics: _Json = {"total_completion_tokens": sum(counts)} if known else {}
    return {**metrics, "total_steps": steps, "extra": {"score": trajectory.score, "success": trajectory.success}}


def _extra(trajectory: Trajectory) -> _Json:
    """The fields of the record that the format does not have."""
    task = trajectory.task
    return {
        "env_id": trajectory.env_id,
        "task": {"id": task.id, "split": task.split, "group": task.group, "goal": task.goal, "data": task.data},
        "seed": trajectory.seed,
        "score": trajectory.score,
        "success": trajectory.success,
        "stop_reason": trajectory.stop_reason,
        "error": trajectory.error,
        "env_kwargs": trajectory.env_kwargs,
        "meta": trajectory.meta,
        "times": trajectory.times and trajectory.times.to_json(),
    }


def _segment(record: TokenRecord) -> _Json:
    """Tokens of answers that are not one per turn, such as plans and summaries."""
    names = ("prompt_ids", "ids", "turn_spans", "logprobs", "rewards")
    return {name: getattr(record, name) for name in names}

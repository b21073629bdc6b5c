"""The rules of ATIF 1.7 and 1.8 in our own words: a JSON schema, and the rules that no schema can say."""

from typing import Any

import pytest

jsonschema: Any = pytest.importorskip("jsonschema")  # comes with packages of the tests, without types

_COUNT = {"type": "integer", "minimum": 0}
_OBJECT = {"type": "object"}
_TEXT = {"type": "string"}
_AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")


def _form(required: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": fields, "additionalProperties": False}


def _list(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


_SOURCE = _form(("media_type", "path"), media_type=_TEXT, path=_TEXT)
_PART = _form(("type",), type={"enum": ["text", "image", "audio"]}, text=_TEXT, source=_SOURCE)
_CONTENT = {"anyOf": [_TEXT, _list(_PART)]}
_REFERENCE = _form((), trajectory_id=_TEXT, trajectory_path=_TEXT, session_id=_TEXT, extra=_OBJECT)
_RESULT = _form((), source_call_id=_TEXT, content=_CONTENT, subagent_trajectory_ref=_list(_REFERENCE), extra=_OBJECT)
_CALL = _form(
    ("tool_call_id", "function_name", "arguments"),
    tool_call_id=_TEXT,
    function_name=_TEXT,
    arguments=_OBJECT,
    extra=_OBJECT,
)
_METRICS = _form(
    (),
    prompt_tokens=_COUNT,
    completion_tokens=_COUNT,
    cached_tokens=_COUNT,
    cost_usd={"type": "number"},
    prompt_token_ids=_list(_COUNT),
    completion_token_ids=_list(_COUNT),
    logprobs=_list({"type": "number"}),
    extra=_OBJECT,
)
_STEP = _form(
    ("step_id", "source", "message"),
    step_id=_COUNT,
    timestamp=_TEXT,
    source={"enum": ["system", "user", "agent"]},
    model_name=_TEXT,
    reasoning_effort={"type": ["string", "number"]},
    message=_CONTENT,
    reasoning_content=_TEXT,
    tool_calls=_list(_CALL),
    observation=_form(("results",), results=_list(_RESULT)),
    metrics=_METRICS,
    is_copied_context={"type": "boolean"},
    llm_call_count=_COUNT,
    extra=_OBJECT,
)
SCHEMA = {
    **_form(
        ("schema_version", "agent", "steps"),
        schema_version={"enum": ["ATIF-v1.7", "ATIF-v1.8"]},
        session_id=_TEXT,
        trajectory_id=_TEXT,
        agent=_form(
            ("name", "version"),
            name=_TEXT,
            version=_TEXT,
            model_name=_TEXT,
            tool_definitions=_list(_OBJECT),
            extra=_OBJECT,
        ),
        steps=_list(_STEP, least=1),
        notes=_TEXT,
        final_metrics=_form(
            (),
            total_prompt_tokens=_COUNT,
            total_completion_tokens=_COUNT,
            total_cached_tokens=_COUNT,
            total_cost_usd={"type": "number"},
            total_steps=_COUNT,
            extra=_OBJECT,
        ),
        continued_trajectory_ref=_TEXT,
        extra=_OBJECT,
        subagent_trajectories=_list({"$ref": "#"}),
    ),
}
_VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def faults(document: dict[str, Any]) -> list[str]:
    """The faults of a document; empty if it is valid."""
    found = [f"{error.json_path}: {error.message[:200]}" for error in _VALIDATOR.iter_errors(document)]
    return found or [*_faults_of_steps(document), *_faults_of_agents(document)]


def _faults_of_steps(document: dict[str, Any]) -> list[str]:
    found = []
    for number, step in enumerate(document["steps"], 1):
        if step["step_id"] != number:
            found.append(f"step {number} has the id {step['step_id']}")
        if step["source"] != "agent" and (wrong := [name for name in _AGENT_ONLY if name in step]):
            found.append(f"step {number} of {step['source']} has {wrong}")
        known = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        results = step.get("observation", {}).get("results", ())
        if unknown := {result["source_call_id"] for result in results if "source_call_id" in result} - known:
            found.append(f"step {number} answers unknown calls {unknown}")
    if document.get("final_metrics", {}).get("total_steps", len(document["steps"])) != len(document["steps"]):
        found.append("total_steps is wrong")
    return found


def _faults_of_agents(document: dict[str, Any]) -> list[str]:
    agents = document.get("subagent_trajectories", [])
    names = [agent.get("trajectory_id") for agent in agents]
    found = [] if None not in names and len(set(names)) == len(names) else ["sub-agents need distinct trajectory_ids"]
    references = [
        reference["trajectory_id"]
        for step in document["steps"]
        for result in step.get("observation", {}).get("results", ())
        for reference in result.get("subagent_trajectory_ref", ())
    ]
    if missing := set(references) - set(names):
        found.append(f"there are no sub-agents {missing}")
    return [*found, *(fault for agent in agents for fault in faults(agent))]

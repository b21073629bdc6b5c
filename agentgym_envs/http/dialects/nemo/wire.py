"""The forms of NeMo-Gym's Gymnasium protocol: rows of a data set, and responses of a model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from agentgym_envs.errors import UsageError
from agentgym_envs.export.nemo import KEY
from agentgym_envs.grammar import ToolCall
from agentgym_envs.http.protocol import Malformed, check_depth

REQUEST_ID = "_ng_step_request_id"
_NOT_CARRIED_OUT = "Only the last call of an answer is carried out."


class RowFields(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a row under `agentgym`: environment, arguments of its constructor, and what `reset` takes."""

    env: str | None = None
    options: dict[str, Any] = {}
    task: str | None = None
    split: str | None = None
    group: str | None = None
    seed: int | None = None

    @property
    def reset_arguments(self) -> dict[str, Any]:
        """The arguments of `reset`."""
        chosen = {"task": self.task, "split": self.split, "group": self.group}
        options = {name: value for name, value in chosen.items() if value is not None}
        return {"seed": self.seed, "options": options or None}


class ModelAnswer(NamedTuple):
    """An answer as text, and the ids of its tool calls. The last call is the action."""

    text: str
    call_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class StepMemory:
    """The last numbered step of a session, so that a repeated request gets the same reply."""

    request_id: Any = None
    outcome: Any = None

    def remembers(self, request_id: Any) -> bool:
        """True if this request was the last one."""
        return request_id is not None and request_id == self.request_id


def read_row(row: Any) -> RowFields:
    """The row's fields for us. Other keys belong to NeMo-Gym. Raises Malformed."""
    if not isinstance(row, dict):
        raise Malformed(f"the body must be a row, a JSON object, not {type(row).__name__}")
    given = row.get(KEY)
    if given is None:
        return RowFields()
    check_depth(given)
    try:
        fields: RowFields = msgspec.convert(given, RowFields)
    except (msgspec.ValidationError, UnicodeError) as error:  # the latter for a lone surrogate in a name
        names = ", ".join(RowFields.__struct_fields__)
        raise Malformed(f"{KEY!r} of a row holds {names}; {error}") from None
    return fields


def read_answer(row: Any) -> ModelAnswer:
    """The answer in the `response` of a step, an object of OpenAI's Responses API. Raises Malformed."""
    response = row.get("response") if isinstance(row, dict) else None
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(output, list):
        raise Malformed("a step needs 'response', an object of the Responses API with a list 'output'")
    items = [item for item in output if isinstance(item, dict)]
    text = "".join(part for item in items if item.get("type") == "message" for part in _texts(item.get("content")))
    calls = [item for item in items if item.get("type") == "function_call"]
    if not calls:
        return ModelAnswer(text)
    return ModelAnswer(_called(text, calls[-1]), tuple(str(call.get("call_id")) for call in calls))


def tool_outputs(call_ids: tuple[str, ...], observation: str) -> list[dict[str, str]]:
    """The outputs of an answer's calls: the observation for the last one."""
    texts = [_NOT_CARRIED_OUT] * (len(call_ids) - 1) + [observation]
    return [{"call_id": name, "output": text} for name, text in zip(call_ids, texts, strict=True)]


def mean_rewards(body: Any) -> dict[str, Any]:
    """The reply to `/aggregate_metrics`: the mean reward, and the share of solved tasks, of the finished rollouts."""
    rows = body.get("verify_responses") if isinstance(body, dict) else None
    if not isinstance(rows, list):
        raise UsageError("the body needs 'verify_responses', a list of finished rollouts")
    rewards = [row["reward"] for row in rows if isinstance(row, dict) and isinstance(row.get("reward"), int | float)]
    means = _means("reward", rewards) | _means("success", [_solved(row) for row in rows if isinstance(row, dict)])
    return {"group_level_metrics": [], "agent_metrics": means, "key_metrics": means}


def _means(name: str, values: list[Any]) -> dict[str, float]:
    return {f"mean/{name}": sum(values) / len(values)} if values else {}


def _solved(row: Mapping[str, Any]) -> bool:
    info = row.get("info")
    return isinstance(info, dict) and info.get("success") is True


def _texts(content: Any) -> Iterable[str]:
    """The texts of a message's content."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [str(part.get("text", "")) for part in parts if isinstance(part, dict) and part.get("type") == "output_text"]


def _called(text: str, call: Mapping[str, Any]) -> str:
    """The answer in the format of Hermes and Qwen, which every environment with native tools reads."""
    try:
        arguments = json.loads(call.get("arguments") or "{}")
    except (TypeError, ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return f"{text}\n<tool_call>\n{call.get('arguments')}\n</tool_call>".lstrip(
            "\n"
        )  # the reply says what is wrong
    return str(ToolCall(text, str(call.get("name")), arguments))

"""OpenEnv's messages: strict parsing of the clients' messages, and the replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from agentgym_envs.core import MAX_ACTION_CHARS, StopReason
from agentgym_envs.errors import AgentGymError, EnvError, EpisodeOver, MissingExtra, ServerFull, TooLarge, UsageError
from agentgym_envs.http.protocol import BadRequest, load

ACTION_FIELDS = ("message", "action", "text")
"""The accepted keys of an action's text; `/schema` has the first."""
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class UnknownMessage(UsageError):
    """A message of a type that does not exist in OpenEnv."""


_CODES: dict[type[AgentGymError], str] = {
    BadRequest: "INVALID_JSON",
    UnknownMessage: "UNKNOWN_TYPE",
    UsageError: "VALIDATION_ERROR",
    EpisodeOver: "EXECUTION_ERROR",
    ServerFull: "CAPACITY_REACHED",
    MissingExtra: "FACTORY_ERROR",
    EnvError: "FACTORY_ERROR",  # of opening a session; during an episode it ends the episode instead
}


class ResetFields(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a reset besides the constructor arguments of the environment."""

    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    episode_id: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    task: _Name | None = None
    split: _Name | None = None
    group: _Name | None = None
    index: Annotated[int, msgspec.Meta(ge=0)] | None = None


class ResetRequest(NamedTuple):
    """A reset: its own fields, and the constructor arguments of the environment."""

    fields: ResetFields
    env_options: dict[str, Any]


def read_message(message: Mapping[str, Any], max_chars: int) -> tuple[str, dict[str, Any]]:
    """Parse the type and data of a WebSocket message. Raises BadRequest, TooLarge or UsageError."""
    text = message.get("text")
    if text is None:
        raise BadRequest("a binary message is not read; send JSON as text")
    if len(text) > max_chars:
        raise TooLarge(f"a message may have {max_chars} characters; this one has more")
    loaded = load(text)
    if not isinstance(loaded, dict) or not isinstance(loaded.get("type"), str):
        raise UsageError('a message is an object with a "type": reset, step, state or close')
    return loaded["type"], read_object(loaded.get("data", {}), "data")


def read_object(value: Any, name: str) -> dict[str, Any]:
    """A JSON object. Raises UsageError."""
    if not isinstance(value, dict):
        raise UsageError(f"{name} must be an object, not {type(value).__name__}")
    return value


def read_reset(data: Mapping[str, Any], allowed: frozenset[str]) -> ResetRequest:
    """The fields of a reset; those in `allowed` are for the constructor. Raises UsageError."""
    own = {name: value for name, value in data.items() if name in ResetFields.__struct_fields__}
    options = {name: value for name, value in data.items() if name not in own and value is not None}
    if unknown := sorted(set(options) - allowed):
        known = sorted({*ResetFields.__struct_fields__, *allowed})
        raise UsageError(f"reset knows {', '.join(known)}, not {', '.join(unknown)}")
    fields = read_form(own, ResetFields)
    if fields.index is not None and (fields.task is not None or fields.group is not None):
        raise UsageError("an index is a position among all tasks of a split: give neither task nor group with it")
    return ResetRequest(fields, options)


def read_form(data: Mapping[str, Any], form: type[msgspec.Struct]) -> Any:
    """Convert an object to a form. Raises UsageError."""
    try:
        return msgspec.convert(data, form)
    except (msgspec.ValidationError, UnicodeError) as error:  # the latter for a lone surrogate in a name
        raise UsageError(f"these are not {form.__name__}: {error}") from None


def read_action(data: Mapping[str, Any]) -> str:
    """Read the text of an action; the `metadata` of OpenEnv's typed actions is ignored. Raises UsageError."""
    given = {name: value for name, value in data.items() if name != "metadata"}
    [(name, text)] = given.items() if len(given) == 1 else [("", None)]
    if name in ACTION_FIELDS and isinstance(text, str):
        return text
    shown = ", ".join(f"{name!r:.40}: {type(value).__name__}" for name, value in list(given.items())[:4]) or "nothing"
    raise UsageError(f'an action is {{"message": text}}, got an object with {shown}')


def result_message(
    observation: str, reward: float | None, terminated: bool, truncated: bool, info: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """The reply to a reset or step. OpenEnv has no `truncated`, so it is in the metadata.

    `reward` is null at a reset, as in OpenEnv, and after an infrastructure error, which must not be trained on as a 0.
    Some clients show a model the whole observation, and the metadata contains hints. So the observation contains the
    metadata only at the end of the episode, for clients that read it there.
    """
    metadata = {**info, "terminated": terminated, "truncated": truncated}
    failed = info.get("stop_reason") == StopReason.ENV_ERROR
    done = terminated or truncated
    return {
        "observation": {"text": observation, **more, **({"metadata": metadata} if done else {})},
        "reward": None if failed else reward,
        "done": done,
        "metadata": metadata,
    }


def error_message(error: AgentGymError, **more: Any) -> dict[str, Any]:
    """An error as a WebSocket message; `type` is the name of its class."""
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), "EXECUTION_ERROR")
    return {"type": "error", "data": {"message": str(error), "code": code, "type": type(error).__name__, **more}}


def schemas() -> dict[str, Any]:
    """JSON schemas of actions, observations and state.

    Actions have one field, so that a client whose model writes them can use a plain text reply as that field.
    """
    text = {"type": "string", "description": "The text of the environment"}
    prompt = {"type": "string", "description": "The rules, and the form of an action"}
    name = {"type": ["string", "null"]}
    return {
        "action": {
            "title": "TextAction",
            "type": "object",
            "properties": {"message": {"type": "string", "description": "The action", "maxLength": MAX_ACTION_CHARS}},
            "required": ["message"],
        },
        "observation": _object("TextObservation", {"text": text, "metadata": {"type": "object"}}),
        "reset_observation": _object("FirstTextObservation", {"text": text, "system_prompt": prompt}),
        "state": _object(
            "TextState",
            {"episode_id": name, "step_count": {"type": "integer", "minimum": 0}, "stop_reason": name},
        ),
    }


def _object(title: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "type": "object", "properties": properties}

"""The native protocol, version 1: bodies, limits, and what each error is over HTTP.

| request | body | reply |
|---|---|---|
| `POST /v1/sessions` | `CreateSession` | 201 `{"session", "description", "load"}` |
| `POST /v1/sessions/{session}/{method}` | `Call` | the method's reply |
| `POST /v1/sessions/{session}/fork` | | 201, as for a new session, in the same state |
| `GET /v1/sessions/{session}` | | how the episode stands |
| `DELETE /v1/sessions/{session}` | | 204, also if it is gone already |
| `POST /v1/batch` | `Batch` | a result or error for each call, in order; or a line each, as they come |
| `GET /envs`, `/health`, `/metrics`, `/openapi.json`, `/docs` | | |

A call that changes an episode may carry a sequence number, one more than that of the call before. The server
remembers the last reply, so a call that is sent again is answered and not carried out twice; any other number is
refused. An error is `{"error": {"type", "message"}}` with the status of its class.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from agentgym_envs.errors import (
    AgentGymError,
    EngineError,
    EnvError,
    EpisodeOver,
    MissingExtra,
    NoOracle,
    OutOfOrder,
    ServerFull,
    SessionLost,
    TooLarge,
    Unauthorized,
    UnknownTask,
    UsageError,
)
from agentgym_envs.http.wire import MAX_BATCH, dump

_Body = TypeVar("_Body", bound=msgspec.Struct)
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
_Seq = Annotated[int, msgspec.Meta(ge=1)]
_Seed = Annotated[int, msgspec.Meta(ge=0)]
MAX_TAKEN = 10_000
"""How many tasks can be asked for at once: some sets have millions."""
_MAX_DEPTH = 16


class CreateSession(msgspec.Struct, forbid_unknown_fields=True):
    """`env` is an id that the server serves; `options` are arguments of its constructor."""

    env: _Name
    options: dict[str, Any] = {}


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of a method. Each method uses its own: reset `seed` and `options`, step `action`, and so on."""

    seq: _Seq | None = None
    seed: _Seed | None = None
    options: dict[str, Any] | None = None
    action: str | None = None
    task_id: _Name | None = None
    actions: list[str] | None = None
    rng: list[Any] | None = None
    id: str | None = None
    key: Annotated[int, msgspec.Meta(ge=0)] | None = None
    count: Annotated[int, msgspec.Meta(ge=0, le=MAX_TAKEN)] | None = None
    split: str | None = None
    groups: list[str] | None = None


class BatchCall(Call, forbid_unknown_fields=True, kw_only=True):
    """A reset or step of one session."""

    session: _Name
    method: Literal["reset", "step"]


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    """Calls of different sessions. With `stream`, slow results come as lines of JSON, each with its `index`."""

    calls: Annotated[list[BatchCall], msgspec.Meta(max_length=MAX_BATCH)]
    stream: bool = False


ARGUMENTS: dict[str, tuple[str, ...]] = {
    "reset": ("seed", "options"),
    "step": ("action",),
    "status": (),
    "snapshot": (),
    "restore": ("task_id", "seed", "actions"),
    "oracle": (),
    "random_command": ("rng",),
    "render": (),
    "task": ("id",),
    "draw": ("key", "split", "groups"),
    "sample": ("count", "split", "groups", "seed"),
}
"""What each method takes."""
REQUIRED: dict[str, tuple[str, ...]] = {
    "step": ("action",),
    "restore": ("task_id", "seed", "actions"),
    "random_command": ("rng",),
    "task": ("id",),
    "draw": ("key",),
}
"""What a method cannot do without."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a stranger may ask for. Sizes in bytes, times in seconds."""

    body_bytes: int = 4 * 2**20
    body_seconds: float = 30.0
    header_bytes: int = 2**16
    header_seconds: float = 15.0
    option_bytes: int = 16_384
    restore_actions: int = 10_000
    episode_bytes: int = 8 * 2**20


class BadRequest(UsageError):
    """A body that cannot be read."""


class Malformed(UsageError):
    """A body that is JSON, but not what its path asks for. Unlike other usage errors, no environment has seen it."""


_STATUS: dict[type[AgentGymError], int] = {
    BadRequest: 400,
    Malformed: 422,
    Unauthorized: 401,
    UnknownTask: 404,
    SessionLost: 404,
    EpisodeOver: 409,
    NoOracle: 409,
    OutOfOrder: 409,
    TooLarge: 413,
    UsageError: 422,
    ServerFull: 429,
    EnvError: 500,
    EngineError: 500,
    MissingExtra: 501,
}


def status_of(error: BaseException) -> int:
    """The HTTP status of an error."""
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)


def encode(value: Any) -> bytes:
    """JSON. Raises EnvError if the value is none: an environment made it."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):  # such as a lone surrogate, which `dump` can tell
        pass
    try:
        return dump(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise EnvError(f"the environment's reply is not JSON: {error}") from error


def load(data: bytes) -> Any:
    """JSON from bytes. Raises BadRequest."""
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def read(data: bytes, form: type[_Body]) -> _Body:
    """A body of a form; no body is an empty one. Raises BadRequest, or Malformed if the form is not met."""
    try:
        body: _Body = _decoder(form).decode(data or b"{}")
        return body
    except (ValueError, RecursionError):  # also for lone surrogates, which are let in: the environment answers them
        pass
    try:
        return msgspec.convert(load(data or b"{}"), form)
    except msgspec.ValidationError as error:
        raise Malformed(f"the body is not a {form.__name__}: {error}") from None


def arguments_of(call: Call, method: str) -> dict[str, Any]:
    """The arguments of a method that were given. Raises Malformed if it needs one more."""
    given = {name: value for name in ARGUMENTS[method] if (value := getattr(call, name)) is not None}
    for name in REQUIRED.get(method, ()):
        if name not in given:
            raise Malformed(f"{method!r} needs {name!r}")
    if call.options is not None:
        check_depth(call.options)
    if call.rng is not None:
        check_depth(call.rng)
    return given


def check_depth(value: Any) -> None:
    """Refuse what is nested so deeply that working with it could fail. Raises Malformed."""
    branches = [value]
    for _ in range(_MAX_DEPTH):
        branches = [leaf for branch in branches for leaf in _branches(branch)]
        if not branches:
            return
    raise Malformed(f"values may be nested {_MAX_DEPTH} deep; these are deeper")


def _branches(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [leaf for leaf in inner if isinstance(leaf, dict | list)]


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


@cache
def _decoder(form: type[_Body]) -> msgspec.json.Decoder[_Body]:
    return msgspec.json.Decoder(form)


_encoder = msgspec.json.Encoder()

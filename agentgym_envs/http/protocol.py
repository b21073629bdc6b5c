"""The native protocol, version 2: request bodies, limits, and the HTTP status of each error.

| request | body | reply |
|---|---|---|
| `POST /v2/sessions` | `CreateSession` | 201 `{"session", "description", "load"}` |
| `POST /v2/sessions/{session}/{method}` | `CallBody` | the method's reply |
| `POST /v2/sessions/{session}/fork` | | 201, as for a new session, in the same state |
| `GET /v2/sessions/{session}` | | the state of session and episode |
| `DELETE /v2/sessions/{session}` | | 204, also for a session that is gone |
| `POST /v2/batch` | `BatchBody` | a result or an error for each call, in order, or streamed as JSON lines |
| `GET /envs`, `/health`, `/metrics`, `/openapi.json`, `/docs` | | |

The methods and their arguments are the rows of `hosting.methods.METHODS`.

A call that changes an episode may carry a sequence number, one more than that of the call before. The server
remembers the last reply, so it answers a repeated call without carrying it out again. It refuses any other number. An
error is `{"error": {"type", "message"}}` with the status of its class.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

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
from agentgym_envs.hosting.methods import METHODS, Parameter
from agentgym_envs.http.wire import MAX_BATCH, dump

_Body = TypeVar("_Body", bound=msgspec.Struct)
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
_Seq = Annotated[int, msgspec.Meta(ge=1)]
_MAX_DEPTH = 16


class CreateSession(msgspec.Struct, forbid_unknown_fields=True):
    """`env` is an id that the server serves; `options` are arguments of its constructor."""

    env: _Name
    options: dict[str, Any] = {}


class CallBase(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a call without the arguments of its method."""

    seq: _Seq | None = None


class BatchCallBase(CallBase, forbid_unknown_fields=True, kw_only=True):
    """A call of one session in a batch, without the arguments of its method."""

    session: _Name
    method: str


def _argument_fields() -> list[tuple[str, Any, None]]:
    """A field for each parameter of a method; methods share those of the same name."""
    parameters: dict[str, Parameter] = {}
    for method, row in METHODS.items():
        for parameter in row.parameters:
            known = parameters.setdefault(parameter.name, parameter)
            if (known.type, known.argument) != (parameter.type, parameter.argument):
                raise TypeError(f"the argument {parameter.name!r} of {method!r} has another meaning in another method")
    return [(name, Annotated[each.type, _bounds(each)] | None, None) for name, each in parameters.items()]


def _bounds(parameter: Parameter) -> msgspec.Meta:
    _, minimum, maximum = parameter.argument
    if parameter.type is int:
        return msgspec.Meta(ge=minimum, le=maximum)
    return msgspec.Meta(min_length=minimum, max_length=maximum)


if TYPE_CHECKING:
    CallBody = CallBase
    BatchCall = BatchCallBase
else:
    CallBody = msgspec.defstruct(
        "CallBody",
        _argument_fields(),
        bases=(CallBase,),
        module=__name__,
        namespace={"__doc__": "The arguments of a method. Each method uses its own: step `action`, and so on."},
        forbid_unknown_fields=True,
        kw_only=True,
    )
    BatchCall = msgspec.defstruct(
        "BatchCall",
        [
            ("method", Literal[tuple(name for name, row in METHODS.items() if row.batched)]),
            *_argument_fields(),
        ],
        bases=(BatchCallBase,),
        module=__name__,
        namespace={"__doc__": "A call of one session in a batch."},
        forbid_unknown_fields=True,
        kw_only=True,
    )


class BatchBody(msgspec.Struct, forbid_unknown_fields=True):
    """Calls of different sessions. With `stream`, slow results come as JSON lines, each with its `index`."""

    calls: Annotated[list[BatchCall], msgspec.Meta(max_length=MAX_BATCH)]
    stream: bool = False


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The bounds of requests from untrusted clients. Sizes are in bytes, times in seconds."""

    body_bytes: int = 4 * 2**20
    body_seconds: float = 30.0
    header_bytes: int = 2**16
    header_seconds: float = 15.0
    option_bytes: int = 16_384
    restore_actions: int = 10_000
    episode_bytes: int = 8 * 2**20


class BadRequest(UsageError):
    """A body that is incomplete, late or not JSON."""


class Malformed(UsageError):
    """A body that is JSON of the wrong form. Unlike other usage errors, it did not reach an environment."""


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
    """A value as JSON. Raises EnvError if it has no JSON form, since it came from an environment."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):  # such as a lone surrogate, which `dump` can encode
        pass
    try:
        return dump(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise EnvError(f"the environment's reply is not JSON: {error}") from error


def load(data: bytes) -> Any:
    """Parse JSON. Raises BadRequest."""
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def read(data: bytes, form: type[_Body]) -> _Body:
    """Parse a body of the given form; no bytes are an empty object. Raises BadRequest or Malformed."""
    try:
        body: _Body = _decoder(form).decode(data or b"{}")
        return body
    except (ValueError, RecursionError):  # also for lone surrogates, which are accepted: the environment answers them
        pass
    try:
        return msgspec.convert(load(data or b"{}"), form)
    except (msgspec.ValidationError, UnicodeError) as error:  # the latter for a lone surrogate in a name
        raise Malformed(f"the body is not a {form.__name__}: {error}") from None


def arguments_of(call: CallBase, method: str) -> dict[str, Any]:
    """The arguments of a method that a body holds. Raises Malformed if a required one is missing."""
    given: dict[str, Any] = {}
    for name, nests, required in _argument_names(method):
        value = getattr(call, name)
        if value is not None:
            given[name] = value
            if nests:
                check_depth(value)
        elif required:
            raise Malformed(f"{method!r} needs {name!r}")
    return given


@cache
def _argument_names(method: str) -> tuple[tuple[str, bool, bool], ...]:
    """For each argument of a method: its name, whether it can hold nested values, and whether it is required."""
    parameters = METHODS[method].parameters
    return tuple((each.name, get_args(each.type)[-1:] == (Any,), each.required) for each in parameters)


def check_depth(value: Any) -> None:
    """Refuse a value nested so deeply that working with it could fail. Raises Malformed."""
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
    raise ValueError(f"{name} is not a JSON number")


@cache
def _decoder(form: type[_Body]) -> msgspec.json.Decoder[_Body]:
    return msgspec.json.Decoder(form)


_encoder = msgspec.json.Encoder()

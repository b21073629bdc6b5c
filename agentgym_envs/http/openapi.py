"""The native protocol as an OpenAPI 3.1 document, derived from the types and tables that the server itself uses.

The examples are not written by hand: TextCraft plays them when the document is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, TypedDict

import msgspec

from agentgym_envs import errors
from agentgym_envs.errors import AgentGymError
from agentgym_envs.hosting.json_forms import EnvDescription, ImageReply, StatusReply, error_to_json
from agentgym_envs.hosting.methods import METHODS
from agentgym_envs.hosting.session_host import SessionHost
from agentgym_envs.http import protocol
from agentgym_envs.http.protocol import BadRequest, BatchBody, BatchCall, CallBody, CreateSession
from agentgym_envs.http.wire import NDJSON, PREFIX
from agentgym_envs.registration import env_class

ENV = "AgentGym/TextCraft-v0"
OPTIONS = {"max_distractors": 0}
SESSION = "Jx0hQmZ7vUeYk2rWc8sLbD1fGpAtN6q3"


class ServerLoad(TypedDict):
    """The number of open sessions, and its maximum."""

    sessions: int
    max_sessions: int


class ServerHealth(ServerLoad):
    """The state of the server, and its load."""

    status: str


class ServedEnv(EnvDescription):
    """A served environment. It is `hosted` in the "server" or a "worker" process and takes the `options`."""

    id: str
    hosted: str
    options: list[str]


class ServedEnvs(TypedDict):
    """The served environments."""

    version: str
    envs: list[ServedEnv]


class CreatedSession(TypedDict):
    """A new session. Whoever has its token can use it, so the token is a secret."""

    session: str
    description: EnvDescription
    load: ServerLoad


class SessionStatus(StatusReply):
    """The state of session and episode; `seq` is the number of the last numbered call."""

    env: str
    options: dict[str, Any]
    seq: int


class ErrorDetail(TypedDict):
    """The class of an error, and one line that explains it."""

    type: str
    message: str


class ErrorReply(TypedDict):
    """An error."""

    error: ErrorDetail


class BatchReply(TypedDict):
    """For each call, in order: a `ResetReply`, a `StepReply` or an `ErrorReply`."""

    results: list[dict[str, Any]]


class Endpoint(NamedTuple):
    """One request. `errors` are those besides what every request may raise; a reply that is a string is not JSON."""

    method: str
    path: str
    tag: str
    summary: str
    body: type[msgspec.Struct] | None = None
    reply: Any = None
    status: int = 200
    errors: tuple[type[AgentGymError], ...] = ()


FIELDS = {
    "env": "The id of a served environment.",
    "session": "The session's token.",
    "method": "The method to call.",
    "calls": "Calls of different sessions.",
    "stream": "Stream slow results as JSON lines, each with `index` and `result`, in the order of completion.",
    "seq": "The number of the last numbered call plus one, starting at 1. A repeated call is not carried out again.",
    **{each.name: each.argument.meaning for method in METHODS.values() for each in method.parameters},
}
"""The meaning of the fields of request bodies."""
_SCHEMA_DETAILS = {
    ImageReply.__name__: {"shape": {"minItems": 3, "maxItems": 3}, "zlib": {"contentEncoding": "base64"}}
}
"""Details of reply fields that a Python type does not express."""
_ALWAYS: tuple[type[AgentGymError], ...] = (errors.Unauthorized,)
_BODY = (BadRequest, errors.TooLarge, protocol.Malformed)
_ONE = f"{PREFIX}/sessions/{{session}}"
ENDPOINTS = (
    Endpoint(
        "post",
        f"{PREFIX}/sessions",
        "Sessions",
        "Make an environment",
        CreateSession,
        CreatedSession,
        201,
        (errors.UsageError, errors.ServerFull, errors.MissingExtra, errors.EnvError),
    ),
    *(
        Endpoint(
            "post",
            f"{_ONE}/{name}",
            "Sessions",
            method.summary,
            CallBody,
            method.reply,
            200,
            (errors.SessionLost, *method.all_errors),
        )
        for name, method in METHODS.items()
    ),
    Endpoint(
        "post",
        f"{_ONE}/fork",
        "Sessions",
        "A new session in the same state",
        None,
        CreatedSession,
        201,
        (errors.SessionLost, errors.EpisodeOver, errors.ServerFull, errors.EnvError),
    ),
    Endpoint(
        "get", _ONE, "Sessions", "The state of session and episode", None, SessionStatus, 200, (errors.SessionLost,)
    ),
    Endpoint("delete", _ONE, "Sessions", "Close the session, if it is still open", None, None, 204),
    Endpoint(
        "post", f"{PREFIX}/batch", "Batches", "Reset and step many sessions in one request", BatchBody, BatchReply
    ),
    Endpoint("get", "/envs", "The server", "The served environments", None, ServedEnvs),
    Endpoint("get", "/health", "The server", "Health and load; needs no token", None, ServerHealth),
    Endpoint("get", "/metrics", "The server", "Counters and timings for Prometheus", None, "text/plain"),
    Endpoint("get", "/openapi.json", "The server", "This description", None, dict[str, Any]),
    Endpoint("get", "/docs", "The server", "This description as a web page", None, "text/html"),
)
"""Every request of the protocol."""


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI document."""
    paths: dict[str, Any] = {}
    examples = make_examples()
    schemas, components = _schemas()
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method] = _operation(endpoint, schemas, components, examples)
    del components[CallBody.__name__]  # each method shows its own part of it
    return {
        "openapi": "3.1.0",
        "info": {"title": "AgentGym Envs", "version": PREFIX.strip("/v"), "description": _INTRODUCTION},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "The server's token."}},
        },
        "security": [{}, {"token": []}],
    }


_INTRODUCTION = """\
Make a session, reset it, step it, close it. Bodies and replies are JSON.

A call that changes an episode may carry a sequence number, `seq`: the first is 1, the next is one more. The server \
remembers its last reply. If a reply is lost, send the same call again: the server answers it without carrying it out \
a second time.

An episode ends with `terminated` or `truncated`; `info["stop_reason"]` names the reason, and `env_error` means that \
the environment failed, not the policy. A mistake of the policy is answered in the observation. A mistake of the \
client is an error, `{"error": {"type", "message"}}`, with the status of its type.

A session that is not used for some time is closed, and a session whose process died is lost. Both are 404 from then \
on."""


class Example(NamedTuple):
    """A body and the server's reply to it, or None for either."""

    body: Any
    reply: Any


@cache
def make_examples() -> dict[tuple[str, str], Example]:
    """An example by HTTP method and path, played by TextCraft as a client of the server would see it."""
    host = SessionHost()
    description = host.open(SESSION, ENV, OPTIONS)
    created = {"session": SESSION, "description": description, "load": {"sessions": 1, "max_sessions": 1024}}
    served = {"id": ENV, "hosted": "server", "options": sorted(env_class(ENV).remote_options), **description}
    found = {("post", f"{PREFIX}/sessions"): Example({"env": ENV, "options": OPTIONS}, created)}
    seq = 0
    for name, method in METHODS.items():
        if method.example is not None:
            seq += method.numbered
            body = {**({"seq": seq} if method.numbered else {}), **method.example}
            found["post", f"{_ONE}/{name}"] = Example(body, host.call(SESSION, name, method.example))
    status = host.call(SESSION, "status", {})
    step = {"session": SESSION, "method": "step", "seq": seq + 1, "action": "inventory"}
    stepped = host.call(SESSION, "step", {"action": "inventory"})
    host.close(SESSION)
    return found | {
        ("post", f"{_ONE}/fork"): Example(None, {**created, "session": SESSION[::-1]}),
        ("get", _ONE): Example(None, {"env": ENV, "options": OPTIONS, "seq": seq, **status}),
        ("post", f"{PREFIX}/batch"): Example({"calls": [step]}, {"results": [stepped]}),
        ("get", "/envs"): Example(None, {"version": PREFIX, "envs": [served]}),
        ("get", "/health"): Example(None, {"status": "ok", "sessions": 1, "max_sessions": 1024}),
    }


def _schemas() -> tuple[dict[Any, Any], dict[str, Any]]:
    """The schema of each body and reply, and the components that they refer to, with the meaning of each field."""
    forms = [form for endpoint in ENDPOINTS for form in (endpoint.body, endpoint.reply) if _is_json(form)]
    types = list(dict.fromkeys([*forms, ErrorReply]))
    found, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for body in (CreateSession, CallBody, BatchCall, BatchBody):
        for name, schema in components[body.__name__]["properties"].items():
            schema["description"] = FIELDS[name]
    components[CreateSession.__name__]["properties"]["options"]["description"] = "Arguments of the environment."
    for form, details in _SCHEMA_DETAILS.items():
        for name, detail in details.items():
            components[form]["properties"][name] |= detail
    return dict(zip(map(repr, types), found, strict=True)), components


def _is_json(form: Any) -> bool:
    return form is not None and not isinstance(form, str)


def _operation(
    endpoint: Endpoint, schemas: Mapping[str, Any], components: Mapping[str, Any], examples: Any
) -> dict[str, Any]:
    example = examples.get((endpoint.method, endpoint.path))
    operation: dict[str, Any] = {"summary": endpoint.summary, "tags": [endpoint.tag], "operationId": _name_of(endpoint)}
    if "{session}" in endpoint.path:
        parameter = {"name": "session", "in": "path", "required": True, "description": FIELDS["session"]}
        operation["parameters"] = [{**parameter, "schema": {"type": "string"}}]
    if endpoint.body is not None:
        schema = _method_schema(endpoint, components) if endpoint.body is CallBody else schemas[repr(endpoint.body)]
        operation["requestBody"] = {
            "required": "required" in schema or endpoint.body is not CallBody,
            "content": _json(schema),
        }
        if example:
            operation["requestBody"]["content"]["application/json"]["example"] = example.body
    operation["responses"] = {str(endpoint.status): _reply(endpoint, schemas, example), **_errors(endpoint)}
    if endpoint.path == "/health":
        operation["security"] = []
    return operation


def _name_of(endpoint: Endpoint) -> str:
    words = [word for word in endpoint.path.removeprefix(PREFIX).replace(".json", "").split("/") if word.isidentifier()]
    return "_".join([endpoint.method, *words, *(["one"] if endpoint.path == _ONE else [])])


def _method_schema(endpoint: Endpoint, components: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `CallBody` that a method uses."""
    method = METHODS[endpoint.path.rpartition("/")[2]]
    names = (*(("seq",) if method.numbered else ()), *(each.name for each in method.parameters))
    known = components[CallBody.__name__]["properties"]
    fields = {name: {**known[name]["anyOf"][0], "description": FIELDS[name]} for name in names}
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    return schema | ({"required": list(method.required)} if method.required else {})


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _reply(endpoint: Endpoint, schemas: Mapping[str, Any], example: Example | None) -> dict[str, Any]:
    if endpoint.reply is None:
        return {"description": "Done; the reply has no body."}
    if isinstance(endpoint.reply, str):
        return {"description": endpoint.summary, "content": {endpoint.reply: {"schema": {"type": "string"}}}}
    content = _json(schemas[repr(endpoint.reply)])
    if example:
        content["application/json"]["example"] = example.reply
    if endpoint.body is BatchBody:
        content[NDJSON] = {"schema": {"type": "string", "description": FIELDS["stream"]}}
    return {"description": endpoint.summary, "content": content}


def _errors(endpoint: Endpoint) -> dict[str, Any]:
    """The responses of a failed request, by status."""
    kinds = (*(() if endpoint.path == "/health" else _ALWAYS), *(_BODY if endpoint.body else ()), *endpoint.errors)
    by_status: dict[int, list[type[AgentGymError]]] = {}
    for kind in kinds:
        by_status.setdefault(protocol.status_of(kind("")), []).append(kind)
    return {str(status): _failure(by_status[status]) for status in sorted(by_status)}


def _failure(kinds: list[type[AgentGymError]]) -> dict[str, Any]:
    texts = {kind.__name__: " ".join((kind.__doc__ or "").split()) for kind in kinds}
    examples = {kind.__name__: {"value": {"error": error_to_json(kind(texts[kind.__name__]))}} for kind in kinds}
    content = {"schema": {"$ref": "#/components/schemas/ErrorReply"}, "examples": examples}
    description = " ".join(f"{name}: {text}" for name, text in texts.items())
    response: dict[str, Any] = {"description": description, "content": {"application/json": content}}
    if errors.ServerFull in kinds:
        response["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return response

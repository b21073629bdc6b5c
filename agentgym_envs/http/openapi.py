"""The native protocol as an OpenAPI 3.1 document, made from the forms that the server reads by.

Examples are not written down: they are what TextCraft replies when the document is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple

import msgspec

from agentgym_envs import errors
from agentgym_envs.errors import AgentGymError
from agentgym_envs.hosting.session_host import METHODS, SessionHost, error_to_json
from agentgym_envs.http import protocol
from agentgym_envs.http.protocol import REQUIRED, BadRequest, Batch, BatchCall, Call, CreateSession
from agentgym_envs.http.wire import NDJSON, PREFIX
from agentgym_envs.registration import env_class

ENV = "AgentGym/TextCraft-v0"
OPTIONS = {"max_distractors": 0}
SESSION = "Jx0hQmZ7vUeYk2rWc8sLbD1fGpAtN6q3"
_TASK, _ACTION = "textcraft/42", "get 3 brick"


class Load(msgspec.Struct):
    """How full the server is."""

    sessions: int
    max_sessions: int


class Health(Load):
    """That the server is well, and how full it is."""

    status: str


class TaskSet(msgspec.Struct):
    """The tasks of an environment; `digest` is the SHA-256 over everything that decides what they are.

    `counts` is how many each group has in each split, null if there is no end of them.
    """

    name: str
    version: int
    digest: str
    groups: list[str]
    counts: dict[str, dict[str, int]] | None


class Description(msgspec.Struct):
    """What there is to know before the first episode. `instructions` are what a system prompt must tell a model."""

    rules: str
    instructions: str
    split: str | None
    groups: list[str] | None
    render_modes: list[str]
    tasks: TaskSet


class Served(Description):
    """An environment that is served: `hosted` in the "server" or a "worker" process, with the `options` it takes."""

    id: str
    hosted: str
    options: list[str]


class Envs(msgspec.Struct):
    """What is served."""

    version: str
    envs: list[Served]


class Created(msgspec.Struct):
    """A new session. Its token is all that is needed to use it, so it is a secret."""

    session: str
    description: Description
    load: Load


class Task(msgspec.Struct):
    """What to solve."""

    id: str
    split: str
    group: str
    goal: str
    data: dict[str, Any]


class Started(msgspec.Struct):
    """The first observation of an episode."""

    observation: str
    info: dict[str, Any]
    task: Task


class Stepped(msgspec.Struct):
    """What Gymnasium's `step` returns, with names."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Status(msgspec.Struct):
    """How the episode stands; `stop_reason` is null while it runs, and "closed" before the first."""

    task_id: str | None
    seed: int
    turn: int
    score: float
    success: bool
    stop_reason: str | None


class SessionStatus(Status):
    """How session and episode stand; `seq` is the number of the last numbered call."""

    env: str
    options: dict[str, Any]
    seq: int


class Restored(Status):
    """The last observation, and how the episode stands."""

    observation: str


class Snapshot(msgspec.Struct):
    """An episode as what it follows from; the body of `restore`."""

    task_id: str
    seed: int
    actions: list[str]


class Command(msgspec.Struct):
    """A random command, and the state of the generator after it."""

    command: str
    rng: list[Any]


class Picture(msgspec.Struct):
    """Pixels of red, green and blue, row by row: `shape` is height, width, 3, and `zlib` the bytes, zlib in base64."""

    shape: Annotated[list[int], msgspec.Meta(min_length=3, max_length=3)]
    zlib: Annotated[str, msgspec.Meta(extra_json_schema={"contentEncoding": "base64"})]


class Problem(msgspec.Struct):
    """The class of an error, and one line that says what is wrong."""

    type: str
    message: str


class Error(msgspec.Struct):
    """What went wrong."""

    error: Problem


class Results(msgspec.Struct):
    """For each call, in order: a `Started`, a `Stepped` or an `Error`."""

    results: list[dict[str, Any]]


class Row(NamedTuple):
    """One request. `errors` are those beside what every request may end in; a reply that is a string is no JSON."""

    method: str
    path: str
    tag: str
    summary: str
    body: type[msgspec.Struct] | None = None
    reply: Any = None
    status: int = 200
    errors: tuple[type[AgentGymError], ...] = ()


FIELDS = {
    "env": "An id that the server serves.",
    "options": "Which task: `task`, or `split` and `group`, from which the seed draws one.",
    "session": "The session's token.",
    "method": "What to do there.",
    "calls": "Calls of different sessions.",
    "stream": "Reply with a line of JSON for each call, `index` and `result`, as they come, if some take time.",
    "seq": "One more than that of the last numbered call; the first is 1. A call that is sent again is not done again.",
    "seed": "Decides every random choice; also which task is drawn.",
    "action": "What the policy wrote.",
    "task_id": "The task of the snapshot.",
    "actions": "What was done in the episode, in order.",
    "rng": "The state of Python's random.Random: [version, numbers, gauss].",
    "id": "A task's id.",
    "key": "A number that stands for a task.",
    "count": "How many tasks; null is all.",
    "split": "train, validation or test; null is all.",
    "groups": "Names of groups of tasks; null is all.",
}
"""What the fields of bodies mean."""
_CHANGES = ("reset", "step", "restore")
_ALWAYS: tuple[type[AgentGymError], ...] = (errors.Unauthorized,)
_BODY = (BadRequest, errors.TooLarge, protocol.Malformed)
_ONE = f"{PREFIX}/sessions/{{session}}"
_VERB_ROWS: dict[str, tuple[str, Any, tuple[type[AgentGymError], ...]]] = {
    "reset": ("Begin an episode", Started, (errors.UsageError, errors.UnknownTask, errors.OutOfOrder, errors.EnvError)),
    "step": ("Take an action", Stepped, (errors.EpisodeOver, errors.OutOfOrder, errors.EnvError)),
    "status": ("How the episode stands", Status, ()),
    "snapshot": ("The episode so far, to go back to it", Snapshot, (errors.EpisodeOver,)),
    "restore": ("Go to a snapshot", Restored, (errors.UnknownTask, errors.OutOfOrder, errors.EnvError)),
    "oracle": ("The commands that solve the current state", list[str], (errors.NoOracle,)),
    "random_command": ("A command at random", Command, (errors.UsageError,)),
    "render": ("The state in the session's render mode, which may be a picture", str | Picture | None, ()),
    "task": ("A task by its id", Task, (errors.UnknownTask,)),
    "draw": ("The task that a number stands for", Task, (errors.UsageError, errors.UnknownTask)),
    "sample": ("Several different tasks, chosen by a seed", list[Task], (errors.UsageError, errors.UnknownTask)),
}
ROWS = (
    Row(
        "post",
        f"{PREFIX}/sessions",
        "Sessions",
        "Make an environment",
        CreateSession,
        Created,
        201,
        (errors.UsageError, errors.ServerFull, errors.MissingExtra, errors.EnvError),
    ),
    *(
        Row("post", f"{_ONE}/{method}", "Sessions", summary, Call, reply, 200, (errors.SessionLost, *kinds))
        for method, (summary, reply, kinds) in _VERB_ROWS.items()
    ),
    Row(
        "post",
        f"{_ONE}/fork",
        "Sessions",
        "A new session in the same state",
        None,
        Created,
        201,
        (errors.SessionLost, errors.EpisodeOver, errors.ServerFull, errors.EnvError),
    ),
    Row("get", _ONE, "Sessions", "How session and episode stand", None, SessionStatus, 200, (errors.SessionLost,)),
    Row("delete", _ONE, "Sessions", "Close the session; one that is gone is fine", None, None, 204),
    Row("post", f"{PREFIX}/batch", "Many at once", "Reset and step many sessions in one request", Batch, Results),
    Row("get", "/envs", "The server", "What is served", None, Envs),
    Row("get", "/health", "The server", "Whether it is well, and how full; needs no token", None, Health),
    Row("get", "/metrics", "The server", "Counts and times, for Prometheus", None, "text/plain"),
    Row("get", "/openapi.json", "The server", "This description", None, dict[str, Any]),
    Row("get", "/docs", "The server", "This description, for people", None, "text/html"),
)
"""Every request of the protocol."""


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI document."""
    paths: dict[str, Any] = {}
    examples = make_examples()
    schemas, components = _schemas()
    for row in ROWS:
        paths.setdefault(row.path, {})[row.method] = _operation(row, schemas, components, examples)
    del components[Call.__name__]  # each method shows its own part of it
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

A call that changes an episode may carry a sequence number, `seq`: the first is 1, the next one more. The server \
remembers its last reply, so a call whose reply was lost is sent again as it was, and is never done twice.

An episode ends with `terminated` or `truncated`; `info["stop_reason"]` says why, and `env_error` is a failure of the \
machine, not of the policy. What a policy gets wrong is answered in the observation. What a client gets wrong is an \
error, `{"error": {"type", "message"}}`, with the status of its type.

A session that nobody uses for some time is closed, and one whose process died is lost; both are 404 from then on."""


class Example(NamedTuple):
    """A body, and what the server replies; None where there is none."""

    body: Any
    reply: Any


@cache
def make_examples() -> dict[tuple[str, str], Example]:
    """An example by method and path, played by TextCraft as a client of the server would see it."""
    host = SessionHost()
    description = host.open(SESSION, ENV, OPTIONS)
    created = {"session": SESSION, "description": description, "load": {"sessions": 1, "max_sessions": 1024}}
    served = {"id": ENV, "hosted": "server", "options": sorted(env_class(ENV).remote_options), **description}
    found = {("post", f"{PREFIX}/sessions"): Example({"env": ENV, "options": OPTIONS}, created)}
    for method in METHODS:
        if method != "random_command":  # the state of a generator is 625 numbers
            found["post", f"{_ONE}/{method}"] = _play(host, method)
    status = host.call(SESSION, "status", {})
    step = {"session": SESSION, "method": "step", "seq": 4, "action": "inventory"}
    stepped = host.call(SESSION, "step", {"action": "inventory"})
    host.close(SESSION)
    return found | {
        ("post", f"{_ONE}/fork"): Example(None, {**created, "session": SESSION[::-1]}),
        ("get", _ONE): Example(None, {"env": ENV, "options": OPTIONS, "seq": 3, **status}),
        ("post", f"{PREFIX}/batch"): Example({"calls": [step]}, {"results": [stepped]}),
        ("get", "/envs"): Example(None, {"version": PREFIX, "envs": [served]}),
        ("get", "/health"): Example(None, {"status": "ok", "sessions": 1, "max_sessions": 1024}),
    }


_BODIES: dict[str, dict[str, Any]] = {
    "reset": {"seq": 1, "seed": 0, "options": {"task": _TASK}},
    "step": {"seq": 2, "action": _ACTION},
    "restore": {"seq": 3, "task_id": _TASK, "seed": 0, "actions": [_ACTION]},
    "task": {"id": _TASK},
    "draw": {"key": 7, "split": "train"},
    "sample": {"count": 1, "split": "test", "seed": 0},
}


def _play(host: SessionHost, method: str) -> Example:
    body = _BODIES.get(method, {})
    return Example(body, host.call(SESSION, method, {name: value for name, value in body.items() if name != "seq"}))


def _schemas() -> tuple[dict[Any, Any], dict[str, Any]]:
    """The schema of each body and reply, and what they refer to, with the meaning of each field."""
    types = list(dict.fromkeys([*(form for row in ROWS for form in (row.body, row.reply) if _is_form(form)), Error]))
    found, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for form in (CreateSession, Call, BatchCall, Batch):
        for name, field in components[form.__name__]["properties"].items():
            field["description"] = FIELDS[name]
    components[CreateSession.__name__]["properties"]["options"]["description"] = "Arguments of the environment."
    return dict(zip(map(repr, types), found, strict=True)), components


def _is_form(form: Any) -> bool:
    return form is not None and form not in ("text/plain", "text/html")


def _operation(row: Row, schemas: Mapping[str, Any], components: Mapping[str, Any], examples: Any) -> dict[str, Any]:
    example = examples.get((row.method, row.path))
    operation: dict[str, Any] = {"summary": row.summary, "tags": [row.tag], "operationId": _name_of(row)}
    if "{session}" in row.path:
        place = {"name": "session", "in": "path", "required": True, "description": FIELDS["session"]}
        operation["parameters"] = [{**place, "schema": {"type": "string"}}]
    if row.body is not None:
        schema = _of_verb(row, components) if row.body is Call else schemas[repr(row.body)]
        operation["requestBody"] = {"required": "required" in schema or row.body is not Call, "content": _json(schema)}
        if example:
            operation["requestBody"]["content"]["application/json"]["example"] = example.body
    operation["responses"] = {str(row.status): _reply(row, schemas, example), **_errors(row)}
    if row.path == "/health":
        operation["security"] = []
    return operation


def _name_of(row: Row) -> str:
    words = [word for word in row.path.removeprefix(PREFIX).replace(".json", "").split("/") if word.isidentifier()]
    return "_".join([row.method, *words, *(["one"] if row.path == _ONE else [])])


def _of_verb(row: Row, components: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `Call` that a method uses."""
    method = row.path.rpartition("/")[2]
    names = (*(("seq",) if method in _CHANGES else ()), *protocol.ARGUMENTS[method])
    known = components[Call.__name__]["properties"]
    fields = {name: {**known[name]["anyOf"][0], "description": FIELDS[name]} for name in names}
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    return schema | ({"required": list(REQUIRED[method])} if method in REQUIRED else {})


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _reply(row: Row, schemas: Mapping[str, Any], example: Example | None) -> dict[str, Any]:
    if row.reply is None:
        return {"description": "Done; there is no body."}
    if isinstance(row.reply, str):
        return {"description": row.summary, "content": {row.reply: {"schema": {"type": "string"}}}}
    content = _json(schemas[repr(row.reply)])
    if example:
        content["application/json"]["example"] = example.reply
    if row.body is Batch:
        content[NDJSON] = {"schema": {"type": "string", "description": FIELDS["stream"]}}
    return {"description": row.summary, "content": content}


def _errors(row: Row) -> dict[str, Any]:
    """The responses of a request that failed, by status."""
    kinds = (*(() if row.path == "/health" else _ALWAYS), *(_BODY if row.body else ()), *row.errors)
    by_status: dict[int, list[type[AgentGymError]]] = {}
    for kind in kinds:
        by_status.setdefault(protocol.status_of(kind("")), []).append(kind)
    return {str(status): _failure(by_status[status]) for status in sorted(by_status)}


def _failure(kinds: list[type[AgentGymError]]) -> dict[str, Any]:
    told = {kind.__name__: " ".join((kind.__doc__ or "").split()) for kind in kinds}
    examples = {kind.__name__: {"value": {"error": error_to_json(kind(told[kind.__name__]))}} for kind in kinds}
    content = {"schema": {"$ref": "#/components/schemas/Error"}, "examples": examples}
    description = " ".join(f"{name}: {text}" for name, text in told.items())
    response: dict[str, Any] = {"description": description, "content": {"application/json": content}}
    if errors.ServerFull in kinds:
        response["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return response

"""The remote methods: what can be called on an environment in another process or on another machine.

A method is one function and its row in `METHODS`. Everything else is derived from the two: `SessionHost` calls the
function, the server reads its parameters from a request, the client numbers the calls that change an episode, and the
OpenAPI document describes all of it. Arguments and replies are JSON, so one table serves a pipe as well as HTTP.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from inspect import Parameter as FunctionParameter
from inspect import signature
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args, get_type_hints

import gymnasium as gym

from agentgym_envs.core import Snapshot, text_env
from agentgym_envs.errors import AgentGymError, EnvError, EpisodeOver, NoOracle, OutOfOrder, UnknownTask, UsageError
from agentgym_envs.hosting.images import image_to_json
from agentgym_envs.hosting.json_forms import (
    CommandReply,
    DifficultyReply,
    ImageReply,
    ResetReply,
    RestoreReply,
    SnapshotReply,
    StatusReply,
    StepReply,
    TaskReply,
    info_to_json,
    rng_to_json,
    set_rng,
    step_to_json,
    task_to_json,
)
from agentgym_envs.image_observations import text_of

Env = gym.Env[str, str]
Effect = Literal["none", "starts", "steps"]
"""The effect of a method on the episode: none, it starts one, or it takes a step in it."""
MAX_SAMPLE = 10_000
"""The most tasks of one `sample`: some sets have millions."""


class Argument(NamedTuple):
    """The meaning and bounds of an argument: `minimum` and `maximum` of a number, or of the length of a text."""

    meaning: str
    minimum: int | None = None
    maximum: int | None = None


class Parameter(NamedTuple):
    """A parameter of a method. `type` is the JSON type, without None."""

    name: str
    type: Any
    argument: Argument
    required: bool


@dataclass(frozen=True)
class Method:
    """One remote method.

    Attributes:
        run: the function; its first parameter is the environment. The others are `Annotated` with an `Argument`, and
            those without a default are required. Its return type is the form of the reply.
        summary: one line for the API description.
        errors: what the call may raise, besides what every call may raise.
        effect: the effect on the episode. A call with an effect carries a sequence number.
        batched: callers may send calls of many sessions in one request.
        threaded: a call may take minutes and touches no episode, so a server runs it outside its event loop.
        example: arguments for the API description, which shows TextCraft's reply to them; None shows no example.
    """

    run: Callable[..., Any]
    summary: str
    errors: tuple[type[AgentGymError], ...] = ()
    effect: Effect = "none"
    batched: bool = False
    threaded: bool = False
    example: Mapping[str, Any] | None = field(default_factory=dict)

    @property
    def numbered(self) -> bool:
        """True if a call carries a sequence number, so that a repeated call is not carried out twice."""
        return self.effect != "none"

    @property
    def all_errors(self) -> tuple[type[AgentGymError], ...]:
        """The errors of the method itself and of its sequence number."""
        return (*self.errors, OutOfOrder) if self.numbered else self.errors

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters after the environment. Raises TypeError for one without an `Argument`."""
        hints = get_type_hints(self.run, include_extras=True)
        _, *others = signature(self.run).parameters.values()
        return tuple(_parameter(each, hints[each.name]) for each in others)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The names of the parameters that have no default."""
        return tuple(each.name for each in self.parameters if each.required)

    @cached_property
    def reply(self) -> Any:
        """The type of the reply."""
        return get_type_hints(self.run)["return"]


def _parameter(parameter: FunctionParameter, hint: Any) -> Parameter:
    kinds = [hint, *(kind for kind in get_args(hint) if kind is not NoneType)]
    for kind in kinds:
        for note in getattr(kind, "__metadata__", ()):
            if isinstance(note, Argument):
                return Parameter(parameter.name, get_args(kind)[0], note, parameter.default is parameter.empty)
    raise TypeError(f"the parameter {parameter.name!r} of a remote method needs Annotated[..., Argument(...)]")


Seed = Annotated[int, Argument("The seed of every random choice; it also determines which task is drawn.", minimum=0)]
ResetOptions = Annotated[
    dict[str, Any], Argument("The task: `task`, or `split` and `group`, from which the seed draws one.")
]
Action = Annotated[str, Argument("The text that the policy wrote.")]
SnapshotTask = Annotated[str, Argument("The task of the snapshot.", minimum=1, maximum=256)]
Actions = Annotated[list[str], Argument("The actions of the episode, in order.")]
RngState = Annotated[list[Any], Argument("The state of Python's random.Random: [version, numbers, gauss].")]
TaskId = Annotated[str, Argument("The id of a task.")]
Key = Annotated[int, Argument("A number; equal numbers draw equal tasks.", minimum=0)]
Count = Annotated[int, Argument("The number of tasks; null means all.", minimum=0, maximum=MAX_SAMPLE)]
SplitName = Annotated[str, Argument("train, validation or test; null means all.")]
GroupNames = Annotated[list[str], Argument("Names of task groups; null means all.")]


def _reset(env: Env, seed: Seed | None = None, options: ResetOptions | None = None) -> ResetReply:
    observation, info = env.reset(seed=seed, options=options)
    task = text_env(env).task
    assert task is not None
    return {"observation": text_of(observation), "info": info_to_json(info), "task": task_to_json(task)}


def _step(env: Env, action: Action) -> StepReply:
    return step_to_json(env.step(action))


def _status(env: Env) -> StatusReply:
    return cast(StatusReply, text_env(env).status())


def _snapshot(env: Env) -> SnapshotReply:
    snapshot = text_env(env).snapshot()
    return {"task_id": snapshot.task_id, "seed": snapshot.seed, "actions": list(snapshot.actions)}


def _restore(env: Env, task_id: SnapshotTask, seed: Seed, actions: Actions) -> RestoreReply:
    observation = text_env(env).restore(Snapshot(task_id, seed, tuple(actions)))
    return {"observation": observation, **_status(env)}


def _oracle(env: Env) -> list[str]:
    return list(text_env(env).oracle())


def _random_command(env: Env, rng: RngState) -> CommandReply:
    generator = random.Random()
    set_rng(generator, rng)
    return {"command": text_env(env).random_command(generator), "rng": rng_to_json(generator)}


def _render(env: Env) -> str | ImageReply | None:
    image: str | ImageReply | None = image_to_json(env.render())
    return image


def _task(env: Env, id: TaskId) -> TaskReply:
    return task_to_json(text_env(env).tasks.get(id))


def _difficulty(env: Env, id: TaskId) -> DifficultyReply | None:
    tasks = text_env(env).tasks
    found = tasks.difficulty(tasks.get(id))
    return None if found is None else cast(DifficultyReply, asdict(found))


def _draw(env: Env, key: Key, split: SplitName | None = None, groups: GroupNames | None = None) -> TaskReply:
    return task_to_json(text_env(env).tasks.draw(key, split=split, groups=groups))


def _sample(
    env: Env,
    count: Count | None = None,
    split: SplitName | None = None,
    groups: GroupNames | None = None,
    seed: Seed = 0,
) -> list[TaskReply]:
    tasks = text_env(env).tasks.sample(count, split=split, groups=groups, seed=seed)
    return [task_to_json(task) for task in tasks]


_TASK, _ACTION = "textcraft/42", "get 3 brick"
METHODS: dict[str, Method] = {
    "reset": Method(
        _reset,
        "Start an episode",
        (UsageError, UnknownTask, EnvError),
        effect="starts",
        batched=True,
        example={"seed": 0, "options": {"task": _TASK}},
    ),
    "step": Method(
        _step, "Take an action", (EpisodeOver, EnvError), effect="steps", batched=True, example={"action": _ACTION}
    ),
    "status": Method(_status, "The state of the episode"),
    "snapshot": Method(_snapshot, "The episode so far, for `restore`", (EpisodeOver,)),
    "restore": Method(
        _restore,
        "Return to a snapshot",
        (UnknownTask, EnvError),
        effect="starts",
        example={"task_id": _TASK, "seed": 0, "actions": [_ACTION]},
    ),
    "oracle": Method(_oracle, "The commands that solve the current state", (NoOracle,)),
    "random_command": Method(_random_command, "A random command", (UsageError,), example=None),  # 625 numbers
    "render": Method(_render, "The state in the session's render mode, as text or an image"),
    "task": Method(_task, "A task by its id", (UnknownTask,), example={"id": _TASK}),
    "difficulty": Method(_difficulty, "The difficulty of a task, if known", (UnknownTask,), example={"id": _TASK}),
    "draw": Method(
        _draw, "The task that a number draws", (UsageError, UnknownTask), example={"key": 7, "split": "train"}
    ),
    "sample": Method(
        _sample,
        "Distinct tasks, chosen by a seed",
        (UsageError, UnknownTask),
        threaded=True,
        example={"count": 1, "split": "test", "seed": 0},
    ),
}
"""The methods by name."""

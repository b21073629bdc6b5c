"""The far end of a twin: environments by session, and the methods that can be carried out on them.

Arguments and replies are JSON, so that the same methods go through a pipe or over HTTP.
"""

from __future__ import annotations

import logging
import random
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym

from agentgym_envs import errors
from agentgym_envs.core import Snapshot, StopReason, TextEnv, describe, text_env
from agentgym_envs.errors import AgentGymError, EnvError, SessionLost, UsageError
from agentgym_envs.hosting.pictures import picture_to_json
from agentgym_envs.task import Task, TaskSet

_log = logging.getLogger(__name__)
FAILURES = (Exception, SystemExit, CancelledError)
"""What an environment may raise: also what would end a thread or an event loop without anyone hearing of it."""
Env = gym.Env[str, str]


class SessionHost:
    """Environments of this process, by session. Not thread-safe for one session; for different ones it is."""

    def __init__(self) -> None:
        self._envs: dict[str, Env] = {}
        self._recipes: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._spoiled: set[str] = set()

    def open(self, session: str, env_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Make an environment; returns `describe_env` of it. Raises UsageError, MissingExtra or EnvError."""
        env = make_env(env_id, options)
        try:
            text_env(env).prepare()
            description = describe_env(text_env(env))
        except Exception as error:
            close_quietly(env)
            raise error if isinstance(error, AgentGymError) else EnvError(describe(error)) from error
        self._envs[session], self._recipes[session] = env, (env_id, options)
        return description

    def call(self, session: str, method: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a method.

        Raises:
            AgentGymError: what the environment raised; SessionLost if there is no such session; EnvError for any
                other exception. After a failure of the machine the environment is made anew at the next reset.
        """
        if method in _STARTS and session in self._spoiled:
            self._renew(session)
        try:
            env = self._envs[session]
        except KeyError:
            raise SessionLost("this session does not exist (any more)") from None
        try:
            reply = METHODS[method](env, arguments)
        except AgentGymError:
            raise
        except FAILURES as error:
            _log.exception("an environment failed in %r", method)
            self._spoiled.add(session)
            raise EnvError(describe(error)) from error
        if text_env(env).status()["stop_reason"] == StopReason.ENV_ERROR:
            self._spoiled.add(session)
        return reply

    def blocks(self, session: str) -> bool:
        """Whether calls of this session wait for something outside the process."""
        env = self._envs.get(session)
        return env is not None and text_env(env).blocking

    def close(self, session: str) -> None:
        """Close an environment; closing twice is fine, and a failure is logged."""
        env = self._envs.pop(session, None)
        self._recipes.pop(session, None)
        self._spoiled.discard(session)
        if env is not None:
            close_quietly(env)

    def close_all(self) -> None:
        """Close every environment."""
        for session in list(self._envs):
            self.close(session)

    def __len__(self) -> int:
        return len(self._envs)

    def _renew(self, session: str) -> None:
        close_quietly(self._envs[session])
        self._envs[session] = make_env(*self._recipes[session])
        self._spoiled.discard(session)


def make_env(env_id: str, options: Mapping[str, Any]) -> Env:
    """`gym.make` whose failures are the caller's or the machine's. Raises UsageError, MissingExtra or EnvError."""
    try:
        env: Env = gym.make(env_id, **options)
        text_env(env)
    except AgentGymError:
        raise
    except (gym.error.Error, TypeError, ModuleNotFoundError) as error:  # an unknown id or argument
        raise UsageError(f"cannot make {env_id!r}: {describe(error)}") from error
    except Exception as error:
        raise EnvError(describe(error)) from error
    return env


def close_quietly(env: Env) -> None:
    """Close an environment; what fails is logged, for nobody can mend it any more."""
    try:
        env.close()
    except Exception:
        _log.warning("closing an environment failed", exc_info=True)


def describe_env(env: TextEnv) -> dict[str, Any]:
    """What a twin must know of an environment before its first episode (JSON)."""
    return {
        "rules": env.rules,
        "instructions": env.instructions,
        "split": env.split,
        "groups": None if env.groups is None else list(env.groups),
        "render_modes": list(env.metadata["render_modes"]),
        "tasks": _describe_tasks(env.tasks),
    }


def _describe_tasks(tasks: TaskSet) -> dict[str, Any]:
    counts = tasks.counts()
    return {
        "name": tasks.name,
        "version": tasks.version,
        "digest": tasks.digest,
        "groups": list(tasks.groups),
        "counts": None if counts is None else {group: dict(splits) for group, splits in counts.items()},
    }


def task_to_json(task: Task) -> dict[str, Any]:
    """A task as JSON; `Task(**data)` is the way back."""
    return {"id": task.id, "split": task.split, "group": task.group, "goal": task.goal, "data": dict(task.data)}


def step_to_json(result: tuple[str, Any, bool, bool, dict[str, Any]]) -> dict[str, Any]:
    """What `step` returns, with names."""
    observation, reward, terminated, truncated, info = result
    return {
        "observation": observation,
        "reward": float(reward),
        "terminated": bool(terminated),
        "truncated": bool(truncated),
        "info": info,
    }


def error_to_json(error: BaseException) -> dict[str, str]:
    """An error by class name and message; what is not ours becomes an EnvError."""
    if isinstance(error, AgentGymError):
        return {"type": type(error).__name__, "message": str(error)}
    return {"type": "EnvError", "message": describe(error)}


def error_from_json(data: Mapping[str, Any]) -> AgentGymError:
    """The way back; an unknown class becomes an EnvError."""
    kind = getattr(errors, str(data.get("type")), None)
    message = str(data.get("message"))
    if isinstance(kind, type) and issubclass(kind, AgentGymError):
        return kind(message)
    return EnvError(f"{data.get('type')}: {message}")


def rng_to_json(rng: random.Random) -> list[Any]:
    """The state of a generator."""
    version, numbers, gauss = rng.getstate()
    return [version, list(numbers), gauss]


def set_rng(rng: random.Random, state: list[Any]) -> None:
    """Bring a generator to a state. Raises UsageError if it is none."""
    try:
        version, numbers, gauss = state
        rng.setstate((version, tuple(numbers), gauss))
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"this is not the state of a random.Random: {error}") from None


def _reset(env: Env, arguments: Mapping[str, Any]) -> Any:
    observation, info = env.reset(seed=arguments.get("seed"), options=arguments.get("options"))
    task = text_env(env).task
    assert task is not None
    return {"observation": observation, "info": info, "task": task_to_json(task)}


def _step(env: Env, arguments: Mapping[str, Any]) -> Any:
    return step_to_json(env.step(arguments["action"]))


def _snapshot(env: Env, arguments: Mapping[str, Any]) -> Any:
    snapshot = text_env(env).snapshot()
    return {"task_id": snapshot.task_id, "seed": snapshot.seed, "actions": list(snapshot.actions)}


def _restore(env: Env, arguments: Mapping[str, Any]) -> Any:
    base = text_env(env)
    actions = tuple(arguments["actions"])
    observation = base.restore(Snapshot(arguments["task_id"], arguments["seed"], actions))
    return {"observation": observation, **_status(env, {})}


def _status(env: Env, arguments: Mapping[str, Any]) -> Any:
    return text_env(env).status()


def _oracle(env: Env, arguments: Mapping[str, Any]) -> Any:
    return list(text_env(env).oracle())


def _random_command(env: Env, arguments: Mapping[str, Any]) -> Any:
    rng = random.Random()
    set_rng(rng, arguments["rng"])
    return {"command": text_env(env).random_command(rng), "rng": rng_to_json(rng)}


def _render(env: Env, arguments: Mapping[str, Any]) -> Any:
    return picture_to_json(env.render())


def _task(env: Env, arguments: Mapping[str, Any]) -> Any:
    return task_to_json(text_env(env).tasks.get(arguments["id"]))


def _draw(env: Env, arguments: Mapping[str, Any]) -> Any:
    task = text_env(env).tasks.draw(arguments["key"], split=arguments.get("split"), groups=arguments.get("groups"))
    return task_to_json(task)


def _sample(env: Env, arguments: Mapping[str, Any]) -> Any:
    chosen = {name: arguments[name] for name in ("split", "groups", "seed") if name in arguments}
    return [task_to_json(task) for task in text_env(env).tasks.sample(arguments.get("count"), **chosen)]


METHODS: dict[str, Callable[[Env, Mapping[str, Any]], Any]] = {
    "reset": _reset,
    "step": _step,
    "status": _status,
    "snapshot": _snapshot,
    "restore": _restore,
    "oracle": _oracle,
    "random_command": _random_command,
    "render": _render,
    "task": _task,
    "draw": _draw,
    "sample": _sample,
}
"""What can be asked of an environment: the method's name, and a function of the environment and the arguments."""
_STARTS = frozenset({"reset", "restore"})

"""`SessionHost`: the environments of a process by session, on which remote methods are called."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from agentgym_envs.core import StopReason, TextEnv, describe, text_env
from agentgym_envs.errors import AgentGymError, EnvError, SessionLost, UsageError
from agentgym_envs.hosting.json_forms import EnvDescription, TaskSetDescription
from agentgym_envs.hosting.methods import METHODS, Env
from agentgym_envs.task import TaskSet

_log = logging.getLogger(__name__)
FAILURES = (Exception, SystemExit, CancelledError)
"""The exceptions that count as failures of an environment, including two that would silently end a thread or a loop."""


class SessionHost:
    """The environments of this process by session. Calls of different sessions may run in different threads."""

    def __init__(self) -> None:
        self._envs: dict[str, Env] = {}
        self._arguments: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._broken: set[str] = set()

    def open(self, session: str, env_id: str, options: Mapping[str, Any]) -> EnvDescription:
        """Make an environment and return its description. Raises UsageError, MissingExtra or EnvError."""
        env = make_env(env_id, options)
        try:
            text_env(env).prepare()
            description = describe_env(text_env(env))
        except Exception as error:
            close_quietly(env)
            raise error if isinstance(error, AgentGymError) else EnvError(describe(error)) from error
        self._envs[session], self._arguments[session] = env, (env_id, options)
        return description

    def call(self, session: str, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a remote method.

        After an environment failure the next reset makes a new environment.

        Raises:
            AgentGymError: raised by the environment; SessionLost for an unknown session; EnvError in place of any
                other exception.
        """
        chosen = METHODS.get(method)
        if chosen is None:
            raise UsageError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
        if chosen.effect == "starts" and session in self._broken:
            self._replace(session)
        try:
            env = self._envs[session]
        except KeyError:
            raise SessionLost("this session does not exist (any more)") from None
        try:
            reply = chosen.run(env, **arguments)
        except AgentGymError:
            raise
        except FAILURES as error:
            _log.exception("an environment failed in %r", method)
            self._broken.add(session)
            raise EnvError(describe(error)) from error
        if text_env(env).status()["stop_reason"] == StopReason.ENV_ERROR:
            self._broken.add(session)
        return reply

    def blocks(self, session: str) -> bool:
        """True if calls of this session wait for something outside this process."""
        env = self._envs.get(session)
        return env is not None and text_env(env).blocking

    def close(self, session: str) -> None:
        """Close an environment. Closing twice is fine; a failure is logged."""
        env = self._envs.pop(session, None)
        self._arguments.pop(session, None)
        self._broken.discard(session)
        if env is not None:
            close_quietly(env)

    def close_all(self) -> None:
        """Close every environment."""
        for session in list(self._envs):
            self.close(session)

    def __len__(self) -> int:
        return len(self._envs)

    def _replace(self, session: str) -> None:
        close_quietly(self._envs[session])
        self._envs[session] = make_env(*self._arguments[session])
        self._broken.discard(session)


def make_env(env_id: str, options: Mapping[str, Any]) -> Env:
    """Make an environment with `gym.make`. Raises UsageError, MissingExtra or EnvError in place of other errors."""
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
    """Close an environment; a failure is only logged, since no caller could act on it."""
    try:
        env.close()
    except Exception:
        _log.warning("closing an environment failed", exc_info=True)


def describe_env(env: TextEnv) -> EnvDescription:
    """The properties of an environment that a `RemoteEnv` needs before its first episode (JSON)."""
    return {
        "rules": env.rules,
        "instructions": env.instructions,
        "split": env.split,
        "groups": None if env.groups is None else list(env.groups),
        "render_modes": list(env.metadata["render_modes"]),
        "tasks": _describe_tasks(env.tasks),
    }


def _describe_tasks(tasks: TaskSet) -> TaskSetDescription:
    counts = tasks.counts()
    return {
        "name": tasks.name,
        "version": tasks.version,
        "digest": tasks.digest,
        "groups": list(tasks.groups),
        "counts": None if counts is None else {group: dict(splits.items()) for group, splits in counts.items()},
    }

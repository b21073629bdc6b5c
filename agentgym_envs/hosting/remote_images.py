"""`make_remote_env`: the remote form of any id, with images if its observations have some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.hosting.connection import EnvProvider
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.image_observations import ImageObservations
from agentgym_envs.registration import env_class


class RemoteImageEnv(ImageObservations, RemoteEnv):
    """A remote environment whose observations have an image. The server sends it encoded, in the info."""

    def _reset_result(self, arguments: Mapping[str, Any], reply: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        text, info = super()._reset_result(arguments, reply)
        return self._with_image(text, info), info

    def _step_result(self, reply: Mapping[str, Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        text, *rest, info = super()._step_result(reply)
        return (self._with_image(text, info), *rest, info)  # type: ignore[return-value]

    def _failed_remote_reset(self, arguments: Mapping[str, Any], error: EnvError) -> tuple[Any, dict[str, Any]]:
        text, info = super()._failed_remote_reset(arguments, error)
        return self._with_image(text, info), info

    def _failed_step(self, error: EnvError) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        text, *rest, info = super()._failed_step(error)
        return (self._with_image(text, info), *rest, info)  # type: ignore[return-value]


def make_remote_env(env_id: str, provider: EnvProvider, options: Mapping[str, Any]) -> RemoteEnv:
    """Make a remote environment; see `RemoteEnv`. An id that only the server knows is one with text observations."""
    kind = _class_of(env_id)
    if kind is None or not issubclass(kind, ImageObservations):
        return RemoteEnv(env_id, provider, options)
    return RemoteImageEnv(env_id, provider, options, image_size=kind.image_size)


def _class_of(env_id: str) -> type[TextEnv] | None:
    try:
        return env_class(env_id)
    except (gym.error.Error, ImportError, UsageError):
        return None

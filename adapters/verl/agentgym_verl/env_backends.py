"""Where the environments of an agent-loop worker run: in it, in processes beside it, on Ray, or on servers.

| backend | environments run |
|---|---|
| auto | in the agent-loop worker; in worker processes if the environment's class is `heavy` |
| local | in the agent-loop worker, in threads if they wait |
| process | in worker processes of the agent-loop worker |
| ray | in worker processes of Ray actors, on any node of the cluster |

An environment whose arguments have a `base_url` runs on that server, whatever the backend.

None of the suite's own is heavy: a step takes microseconds, or other processes do the work. All episodes of an
agent-loop worker share its Java machines (SciWorld; their number is the argument `jvms`, by default one for each core)
and its Chromium, which does seven times the work that a step of a web page costs here, so that the cores are busy
before this process is. Worker processes would have machines and browsers of their own each.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.hosting.connection import EnvProvider
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.hosting.worker import WorkerPool
from agentgym_envs.registration import env_class
from agentgym_envs.vector.runner import MakeEnv

if TYPE_CHECKING:
    from agentgym_verl.settings import EpisodeSettings

BACKENDS = ("auto", "local", "process", "ray")


class EnvBackends:
    """Makes environments by kind, and keeps what hosts them."""

    def __init__(self, settings: EpisodeSettings) -> None:
        """Nothing is started before the first environment is made."""
        self._settings = settings
        self._opener: WorkerPool | Any = None
        self._opening = threading.Lock()  # environments are made in threads
        self.makers: dict[str, MakeEnv] = {}
        """How to make each kind that was asked for, for a `EnvPool`."""

    def add(self, kind: str, env_id: str, kwargs: Mapping[str, Any]) -> None:
        """Have `makers` know a kind of environment."""
        if kind not in self.makers:
            self.makers[kind] = self._maker(env_id, dict(kwargs))

    def close(self) -> None:
        """End the processes or actors."""
        if self._opener is not None:
            self._opener.close()

    def _maker(self, env_id: str, kwargs: dict[str, Any]) -> MakeEnv:
        backend = self._backend(env_id, kwargs)
        if backend == "local":
            return lambda: gym.make(env_id, **kwargs)
        return lambda: RemoteEnv(env_id, self._place(backend), kwargs)

    def _backend(self, env_id: str, kwargs: Mapping[str, Any]) -> str:
        if "base_url" in kwargs:
            return "local"
        if self._settings.backend != "auto":
            return self._settings.backend
        return "process" if env_class(env_id).heavy else "local"

    def _place(self, backend: str) -> EnvProvider:
        with self._opening:
            if self._opener is None:
                self._opener = self._open(backend)
            return self._opener

    def _open(self, backend: str) -> EnvProvider:
        if backend == "process":
            return WorkerPool(self._settings.workers)
        from agentgym_verl.ray_hosts import RayPool

        settings = self._settings
        return RayPool(settings.hosts, settings.workers, settings.placement, cpus=settings.host_cpus)

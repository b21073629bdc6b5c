"""Backends that run the environments of an agent-loop worker: in-process, worker processes, Ray actors, or servers.

| backend | environments run |
|---|---|
| auto | in the agent-loop worker; in worker processes if the environment's class is `heavy` |
| local | in the agent-loop worker, in threads if they block |
| process | in worker processes of the agent-loop worker |
| ray | in worker processes of Ray actors, on any node of the cluster |

An environment with a `base_url` argument runs on that server, with any backend.

None of the suite's own environments is heavy: a step takes microseconds, or other processes do the work. All episodes
of an agent-loop worker share its Java processes (SciWorld; by default one per core, more if each has 24 environments)
and its Chromium. A turn on an embedded site costs Chromium three times the CPU that it costs this process, so the cores
are busy first. Worker processes would each start their own Java processes and browsers.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.hosting.connection import EnvProvider
from agentgym_envs.hosting.remote_images import make_remote_env
from agentgym_envs.hosting.worker import WorkerPool
from agentgym_envs.registration import env_class
from agentgym_envs.vector.runner import MakeEnv
from agentgym_verl.settings import EpisodeSettings


class EnvBackends:
    """Makes environments by kind, and owns the pool that hosts them."""

    def __init__(self, settings: EpisodeSettings) -> None:
        """Start nothing; the first environment starts the pool."""
        self._settings = settings
        self._pool: WorkerPool | Any = None
        self._lock = threading.Lock()  # environments are made in threads
        self.makers: dict[str, MakeEnv] = {}
        """A function that makes each added kind, for a `RunnerPool`."""

    def add(self, kind: str, env_id: str, kwargs: Mapping[str, Any]) -> None:
        """Add a kind of environment to `makers`."""
        if kind not in self.makers:
            self.makers[kind] = self._maker(env_id, dict(kwargs))

    def close(self) -> None:
        """End the processes or actors."""
        if self._pool is not None:
            self._pool.close()

    def _maker(self, env_id: str, kwargs: dict[str, Any]) -> MakeEnv:
        backend = self._backend(env_id, kwargs)
        if backend == "local":
            return lambda: gym.make(env_id, **kwargs)
        return lambda: make_remote_env(env_id, self._provider(backend), kwargs)

    def _backend(self, env_id: str, kwargs: Mapping[str, Any]) -> str:
        if "base_url" in kwargs:
            return "local"
        if self._settings.backend != "auto":
            return self._settings.backend
        return "process" if env_class(env_id).heavy else "local"

    def _provider(self, backend: str) -> EnvProvider:
        with self._lock:
            if self._pool is None:
                self._pool = self._make_pool(backend)
            return self._pool

    def _make_pool(self, backend: str) -> EnvProvider:
        if backend == "process":
            return WorkerPool(self._settings.workers)
        from agentgym_verl.ray_hosts import RayPool

        settings = self._settings
        return RayPool(settings.hosts, settings.workers, settings.placement, cpus=settings.host_cpus)

"""Environments that live elsewhere: in a worker process or behind a server, and the twin that stands for them here."""

from agentgym_envs.hosting.connection import Connection, EnvProvider, PendingCall, RemoteSession
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.hosting.worker import WorkerPool, WorkerProcess

__all__ = ["Connection", "EnvProvider", "PendingCall", "RemoteEnv", "RemoteSession", "WorkerPool", "WorkerProcess"]

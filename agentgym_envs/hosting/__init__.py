"""Remote environments: sessions in worker processes or on servers, and `RemoteEnv`, their local interface."""

from agentgym_envs.hosting.connection import Connection, EnvProvider, PendingCall, RemoteSession, Request
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.hosting.worker import WorkerPool, WorkerProcess

__all__ = [
    "Connection",
    "EnvProvider",
    "PendingCall",
    "RemoteEnv",
    "RemoteSession",
    "Request",
    "WorkerPool",
    "WorkerProcess",
]

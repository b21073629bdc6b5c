"""Environments that live elsewhere: in a worker process or behind a server, and the twin that stands for them here."""

from agentgym_envs.hosting.connection import Connection, Opened, Opener, Posted
from agentgym_envs.hosting.twin import TwinEnv
from agentgym_envs.hosting.worker import WorkerPool, WorkerProcess

__all__ = ["Connection", "Opened", "Opener", "Posted", "TwinEnv", "WorkerPool", "WorkerProcess"]

"""Environments over HTTP: one server for every scenario, and the client whose environments are the same.

The server needs the extra `serve`; the client needs nothing more than the core.
"""

from agentgym_envs.http.client import remote_env
from agentgym_envs.http.server_connection import ServerConnection
from agentgym_envs.http.server_pool import ServerPool

__all__ = ["ServerConnection", "ServerPool", "remote_env"]

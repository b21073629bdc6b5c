"""Environments over HTTP: one server for every scenario, and a client whose environments equal local ones.

The server needs the extra `serve`; the client needs only the core.
"""

from agentgym_envs.http.client import remote_env
from agentgym_envs.http.server_connection import ServerConnection
from agentgym_envs.http.server_pool import ServerPool

__all__ = ["ServerConnection", "ServerPool", "remote_env"]

"""`remote_env`: the environment behind `gym.make(env_id, base_url=...)`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from agentgym_envs.core import TextEnv
from agentgym_envs.errors import UsageError
from agentgym_envs.hosting.connection import check_seconds
from agentgym_envs.hosting.remote_images import make_remote_env
from agentgym_envs.http.address import parse_address
from agentgym_envs.http.dialects.agentgym.client import agentgym_env
from agentgym_envs.http.server_pool import server_pool
from agentgym_envs.http.wire import is_token


def remote_env(
    env_id: str,
    *,
    base_url: str | Sequence[str],
    token: str | None = None,
    dialect: str | None = None,
    timeout: float = 120.0,
    connect_timeout: float = 10.0,
    **options: Any,
) -> TextEnv:
    """Make an environment on a server; `gym.make(env_id, base_url=...)` calls this function.

    Args:
        env_id: an id that the server serves.
        base_url: the address of a server (http://, https:// or unix:/path), or several, among which sessions are
            spread.
        token: the server's token; by default the environment variable AGENTGYM_TOKEN.
        dialect: "agentgym" for a server of AgentGym itself; None for the native protocol.
        timeout: seconds that a server may be silent before the request is sent again.
        connect_timeout: seconds to look for a server with room.
        **options: arguments of the environment.

    Raises:
        UsageError: invalid arguments, or arguments that the environment refuses.
        EnvError: no server can be reached or has room.
    """
    urls = [base_url] if isinstance(base_url, str) else base_url
    if not isinstance(urls, Sequence) or not urls or None in map(parse_address, urls):
        raise UsageError(
            f"base_url must be an address like http://127.0.0.1:8000 or unix:/path, or a list of them, got {base_url!r}"
        )
    token = token or os.environ.get("AGENTGYM_TOKEN")
    if token is not None and not is_token(token):
        raise UsageError("the token (token=... or AGENTGYM_TOKEN) must be one word of ASCII letters, digits and signs")
    check_seconds("timeout", timeout)
    check_seconds("connect_timeout", connect_timeout, or_zero=True)
    if dialect == "agentgym":
        return agentgym_env(env_id, urls, token=token, timeout=timeout, connect_timeout=connect_timeout, **options)
    if dialect is not None:
        raise UsageError(f"dialect must be 'agentgym' or None, got {dialect!r}")
    try:
        json.dumps(options)
    except (TypeError, ValueError):
        raise UsageError(f"a remote environment takes options that are JSON, got {options!r:.200}") from None
    pool = server_pool(urls, token, timeout, connect_timeout)
    return make_remote_env(env_id, pool, options)

"""Episodes as tools of the Model Context Protocol (MCP), over stdio or streamable HTTP."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from typing import TYPE_CHECKING

from agentgym_envs.errors import MissingExtra, missing_extra

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from agentgym_envs.http.app import EnvServer


def mcp_routes(server: EnvServer, *, show_reward: bool = False) -> list[BaseRoute]:
    """The routes `/mcp/<id>`, and `/mcp` if only one environment is served, for `create_app(..., mounts=[mcp_routes])`.

    Image environments are left out. `show_reward` shows agents their reward and score, for training. Raises
    MissingExtra.
    """
    check_packages()
    from agentgym_envs.mcp.http import environment_routes

    return environment_routes(server, show_reward)


def check_packages() -> None:
    """Raise MissingExtra unless version 2 of MCP's package is installed."""
    if importlib.util.find_spec("mcp_types") is not None:
        return
    if importlib.util.find_spec("mcp") is None:
        raise missing_extra("MCP", "mcp", "mcp")
    raise MissingExtra(
        f"MCP needs the package 'mcp' 2, and {metadata.version('mcp')} is installed, for another package such as "
        "openenv 0.10. Make a virtual environment without that package, and run there: pip install 'agentgym-envs[mcp]'"
    )

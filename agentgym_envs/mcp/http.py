"""MCP over streamable HTTP: the route `/mcp` of a server, alone or beside the native protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route

from agentgym_envs.http.app import EnvServer
from agentgym_envs.http.run import is_loopback
from agentgym_envs.http.sessions import Sessions
from agentgym_envs.mcp.episodes import EpisodeTable, shows_images
from agentgym_envs.mcp.server import make_mcp_server

PATH = "/mcp"


def environment_routes(server: EnvServer, show_reward: bool) -> list[BaseRoute]:
    """The routes of `agentgym_envs.mcp.mcp_routes`."""
    served = [env_id for env_id, kind in server.sessions.classes.items() if not shows_images(kind)]
    endpoints = {env_id: McpEndpoint(EpisodeTable(server.sessions, env_id), show_reward) for env_id in served}
    server.lifespans += [endpoint.lifespan for endpoint in endpoints.values()]
    routes: list[BaseRoute] = [Route(f"{PATH}/{env_id}", endpoint) for env_id, endpoint in endpoints.items()]
    return routes + [Route(PATH, endpoint) for endpoint in endpoints.values() if len(endpoints) == 1]


def only_mcp(server: EnvServer, episodes: EpisodeTable, *, show_reward: bool) -> list[BaseRoute]:
    """The route `/mcp` for episodes with sessions of their own, which no other route of `server` can reach."""
    endpoint = McpEndpoint(episodes, show_reward)
    server.lifespans += [lambda: keep(episodes.sessions), endpoint.lifespan]
    return [Route(PATH, endpoint)]


class McpEndpoint:
    """The ASGI application of one environment. Without a session of the protocol: handles name the episodes."""

    def __init__(self, episodes: EpisodeTable, show_reward: bool) -> None:
        """Serve `episodes` once `lifespan` is entered."""
        self._episodes, self._show_reward = episodes, show_reward
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; one that a page of another site sent is refused (DNS rebinding)."""
        origin = dict(scope["headers"]).get(b"origin", b"").decode("latin-1")
        if origin and not is_loopback(urlsplit(origin).hostname or ""):
            return await PlainTextResponse(f"requests from {origin:.80} are refused", 403)(scope, receive, send)
        await self._app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve until the end of the context, then close the episodes."""
        description = await self._episodes.sessions.describe(self._episodes.env_id)
        server = make_mcp_server(self._episodes, description["rules"], show_reward=self._show_reward)
        app = server.streamable_http_app(stateless_http=True, json_response=True, host="")
        self._app = _endpoint_of(app.routes)
        async with server.session_manager.run():
            try:
                yield
            finally:
                self._episodes.close()


@contextlib.asynccontextmanager
async def keep(sessions: Sessions) -> AsyncIterator[None]:
    """Close idle sessions meanwhile, and all of them at the end."""
    reaper = asyncio.create_task(sessions.reap_forever())
    try:
        yield
    finally:
        reaper.cancel()
        await sessions.shut_down()


def _endpoint_of(routes: Sequence[Any]) -> Any:
    """The ASGI application behind the one route of MCP's own app."""
    (route,) = routes
    return route.app

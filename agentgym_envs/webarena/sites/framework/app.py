"""The ASGI application that serves all sites: it finds the episode of a request and calls the handler."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_envs.webarena.browser.sites import App
from agentgym_envs.webarena.sites.episodes import HEADER, Episode, episodes
from agentgym_envs.webarena.sites.framework import login
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.rendering import render
from agentgym_envs.webarena.sites.framework.responses import (
    Forbidden,
    LoginRequired,
    NotFound,
    RawResponse,
    Redirect,
    Response,
    TemplateResponse,
)
from agentgym_envs.webarena.sites.framework.site import ORIGINS, Handler, Site, load_site

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response as HttpResponse

MAX_BODY_BYTES = 100_000
"""Larger request bodies are refused with status 413."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; frame-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors {}"
)
_NO_EPISODE = RawResponse("There is no such page.", status=404)
_CROSS_ORIGIN = RawResponse("A page of another site may not do that.", status=403)
_HUGE_NUMBER = re.compile(r"\d{1000}")
_log = logging.getLogger(__name__)

EpisodeFinder = Callable[["Request"], Episode | None]
"""Returns the episode that a request belongs to, or None."""


def by_header(request: Request) -> Episode | None:
    """Find the episode by the token in the request header."""
    return episodes().find(request.headers.get(HEADER, ""))


def make_app(
    find_episode: EpisodeFinder = by_header, origins: Mapping[str, str] = ORIGINS, framed_by: str = "'none'"
) -> App:
    """Create the Starlette application that serves each site under the host of its origin.

    Args:
        find_episode: Returns the episode of a request.
        origins: The sites to serve, by name, with their origins.
        framed_by: The origin that may show the sites in frames.
    """
    from starlette.applications import Starlette
    from starlette.routing import Host, Mount, Route, Router
    from starlette.staticfiles import StaticFiles

    policy = _POLICY.format(framed_by)
    hosts = []
    for name, origin in origins.items():
        site = load_site(name)
        endpoint = partial(_Endpoint, site=site, find_episode=find_episode, origins=dict(origins), policy=policy)
        routes: list[Any] = [
            Mount("/static", StaticFiles(directory=site.folder / "static")),
            Mount("/framework", StaticFiles(directory=Path(__file__).parent / "static")),
        ]
        routes += [Route(r.path, endpoint(r.handler), methods=[r.method]) for r in (*site.routes, *login.ROUTES)]
        routes.append(Route("/{path:path}", endpoint(_not_found), methods=["GET", "POST"]))
        host = origin.partition("://")[2].partition(":")[0]
        hosts.append(Host(host, Router(routes, redirect_slashes=False)))
    return _refuse_huge_numbers(Starlette(routes=hosts))


def _refuse_huge_numbers(app: App) -> App:
    """Answer 404 to a path with a number so long that Python's int() raises, before a route converts it."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        refused = _HUGE_NUMBER.search(scope["path"])
        await (_plain(_NO_EPISODE) if refused else app)(scope, receive, send)

    return serve


class _Endpoint:
    """An ASGI application around a handler."""

    def __init__(
        self, handler: Handler, *, site: Site, find_episode: EpisodeFinder, origins: Mapping[str, str], policy: str
    ) -> None:
        self.handler, self.site, self.find_episode = handler, site, find_episode
        self.origins, self.policy = origins, policy

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request

        request = Request(scope, receive)
        body = await _read_body(request)
        episode = self.find_episode(request)
        if body is None:
            response = _plain(RawResponse("That is too much for one form.", status=413))
        elif episode is None:
            response = _plain(_NO_EPISODE)
        elif request.headers.get("origin", self.origins[self.site.name]) not in self.origins.values():
            response = _plain(_CROSS_ORIGIN)
        else:
            response = self._respond(request, body, episode)
        response.headers["content-security-policy"] = self.policy
        response.headers["cache-control"] = "no-store"
        response.headers["x-content-type-options"] = "nosniff"
        response.headers["referrer-policy"] = "same-origin"
        await response(scope, receive, send)

    def _respond(self, request: Request, body: bytes, episode: Episode) -> HttpResponse:
        """Run the handler and render its response while holding the lock of the episode's database."""
        with episode.lock:
            if episode.closed:
                return _plain(_NO_EPISODE)
            context = self._context(request, body, episode)
            try:
                return self._to_http(context, self._handle(context, request.path_params))
            except Exception as error:
                _log.exception("%s %s failed", context.method, context.path)
                episode.failures.append(f"{context.method} {context.path[:200]}: {type(error).__name__}: {error}")
                return _plain(RawResponse("Something went wrong on our side.", status=500))

    def _context(self, request: Request, body: bytes, episode: Episode) -> RequestContext:
        cookie = login.cookie_name(episode)
        account = login.logged_in_account(self.site, episode.database, request.cookies.get(cookie))
        return RequestContext(
            self.site.name,
            "POST" if request.method == "POST" else "GET",
            request.url.path,
            Fields.parse(request.scope["query_string"]),
            Fields.parse(body),
            episode.database,
            account,
            self.origins,
            request.headers.get("referer", ""),
            cookie,
            episode.world,
        )

    def _handle(self, context: RequestContext, path: Mapping[str, Any]) -> Response:
        """Call the handler in a transaction, and turn its exceptions into responses."""
        try:
            return _in_transaction(context, partial(self.handler, context, **path))
        except (NotFound, OverflowError) as error:  # OverflowError: SQLite cannot hold the number, so no row has it
            reason = "" if isinstance(error, OverflowError) else str(error)
            return TemplateResponse("error.html", {"heading": "Page not found", "reason": reason}, 404)
        except Forbidden as error:
            return TemplateResponse("error.html", {"heading": "Not allowed", "reason": str(error)}, 403)
        except LoginRequired:
            after = context.path_and_query if context.method == "GET" else "/"
            return Redirect("/sign-in" + Fields().changed(after=after))

    def _to_http(self, context: RequestContext, response: Response) -> HttpResponse:
        from starlette.responses import HTMLResponse, RedirectResponse

        http_response: HttpResponse
        match response:
            case TemplateResponse():
                http_response = HTMLResponse(render(self.site, context, response), response.status)
            case Redirect():
                http_response = RedirectResponse(response.to, 303)
            case RawResponse():
                http_response = _plain(response)
        for name, value in context.cookies.items():
            http_response.set_cookie(name, value, httponly=True, samesite="lax")
        return http_response


def _in_transaction(context: RequestContext, call: Callable[[], Response]) -> Response:
    """Commit what a POST handler writes, or roll all of it back if the handler raises."""
    if context.method == "GET":
        return call()
    context.database.execute("BEGIN")
    try:
        response = call()
    except BaseException:
        context.database.execute("ROLLBACK")
        raise
    context.database.execute("COMMIT")
    return response


async def _read_body(request: Request) -> bytes | None:
    """Read the request body; None if it is too large."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)


def _plain(response: RawResponse) -> HttpResponse:
    from starlette.responses import Response as HttpResponse

    return HttpResponse(response.body, response.status, media_type=response.media_type)


def _not_found(context: RequestContext, path: str) -> Response:
    raise NotFound

"""The one application behind all five sites: finds the episode, reads the request, answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_envs.webarena.browser.sites import App
from agentgym_envs.webarena.sites.episodes import HEADER, Episode, episodes
from agentgym_envs.webarena.sites.framework import signing_in
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.fields import Fields
from agentgym_envs.webarena.sites.framework.rendering import render
from agentgym_envs.webarena.sites.framework.responses import (
    Data,
    Forbidden,
    Missing,
    Page,
    Redirect,
    Response,
    SignInFirst,
)
from agentgym_envs.webarena.sites.framework.site import ORIGINS, Handler, Site, site

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response as HttpResponse

MOST_BODY = 100_000
"""Characters of a form; more is refused."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; frame-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors {}"
)
_NO_EPISODE = Data("There is no such page.", status=404)
_FOREIGN = Data("A page of another site may not do that.", status=403)
_ABSURD = re.compile(r"\d{1000}")
_log = logging.getLogger(__name__)

Find = Callable[["Request"], Episode | None]
"""Finds the episode that a request is of."""


def by_header(request: Request) -> Episode | None:
    """The episode that the request's header names."""
    return episodes().find(request.headers.get(HEADER, ""))


def make_app(find: Find = by_header, origins: Mapping[str, str] = ORIGINS, framed_by: str = "'none'") -> App:
    """The Starlette application of the sites, each under its origin's host.

    `origins` are the addresses of those to serve; `find` tells whose request one is; `framed_by` is the origin that may
    show the sites in frames.
    """
    from starlette.applications import Starlette
    from starlette.routing import Host, Mount, Route, Router
    from starlette.staticfiles import StaticFiles

    policy = _POLICY.format(framed_by)
    hosts = []
    for name, origin in origins.items():
        made = site(name)
        answer = partial(_Endpoint, site=made, find=find, origins=dict(origins), policy=policy)
        routes: list[Any] = [
            Mount("/static", StaticFiles(directory=made.folder / "static")),
            Mount("/kit", StaticFiles(directory=Path(__file__).parent / "static")),
        ]
        routes += [Route(r.path, answer(r.handler), methods=[r.method]) for r in (*made.routes, *signing_in.ROUTES)]
        routes.append(Route("/{path:path}", answer(_nowhere), methods=["GET", "POST"]))
        host = origin.partition("://")[2].partition(":")[0]
        hosts.append(Host(host, Router(routes, redirect_slashes=False)))
    return _without_absurd_numbers(Starlette(routes=hosts))


def _without_absurd_numbers(app: App) -> App:
    """Numbers that Python refuses to read, which routes would: no page has such a path."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        absurd = _ABSURD.search(scope["path"])
        await (_plain(_NO_EPISODE) if absurd else app)(scope, receive, send)

    return serve


class _Endpoint:
    """An ASGI application around a handler."""

    def __init__(self, handler: Handler, *, site: Site, find: Find, origins: Mapping[str, str], policy: str) -> None:
        self.handler, self.site, self.find, self.origins, self.policy = handler, site, find, origins, policy

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request

        request = Request(scope, receive)
        body = await _body(request)
        episode = self.find(request)
        if episode is None or body is None:
            response = self._unknown(body)
        elif request.headers.get("origin", self.origins[self.site.name]) not in self.origins.values():
            response = _plain(_FOREIGN)
        else:
            response = self._answer(request, body, episode)
        response.headers["content-security-policy"] = self.policy
        response.headers["cache-control"] = "no-store"
        response.headers["x-content-type-options"] = "nosniff"
        response.headers["referrer-policy"] = "same-origin"
        await response(scope, receive, send)

    def _unknown(self, body: bytes | None) -> HttpResponse:
        return _plain(Data("That is too much for one form.", status=413) if body is None else _NO_EPISODE)

    def _answer(self, request: Request, body: bytes, episode: Episode) -> HttpResponse:
        """While it is made, nobody else uses the episode's database."""
        with episode.lock:
            if episode.closed:
                return _plain(_NO_EPISODE)
            visit = self._visit(request, body, episode)
            try:
                return self._respond(visit, self._handle(visit, request.path_params))
            except Exception as error:
                _log.exception("%s %s failed", visit.method, visit.path)
                episode.failures.append(f"{visit.method} {visit.path[:200]}: {type(error).__name__}: {error}")
                return _plain(Data("Something went wrong on our side.", status=500))

    def _visit(self, request: Request, body: bytes, episode: Episode) -> RequestContext:
        cookie = signing_in.cookie_of(episode)
        account = signing_in.account_of(self.site, episode.database, request.cookies.get(cookie))
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
            episode.world.seed,
        )

    def _handle(self, visit: RequestContext, path: Mapping[str, Any]) -> Response:
        """A handler's answer. What it writes is kept whole or not at all."""
        try:
            return _in_transaction(visit, partial(self.handler, visit, **path))
        except (Missing, OverflowError) as error:  # a number that SQLite cannot hold is no row's
            reason = "" if isinstance(error, OverflowError) else str(error)
            return Page("error.html", {"heading": "Page not found", "reason": reason}, 404)
        except Forbidden as error:
            return Page("error.html", {"heading": "Not allowed", "reason": str(error)}, 403)
        except SignInFirst:
            after = visit.here if visit.method == "GET" else "/"
            return Redirect("/sign-in" + Fields().changed(after=after))

    def _respond(self, visit: RequestContext, answer: Response) -> HttpResponse:
        from starlette.responses import HTMLResponse, RedirectResponse

        response: HttpResponse
        match answer:
            case Page():
                response = HTMLResponse(render(self.site, visit, answer), answer.status)
            case Redirect():
                response = RedirectResponse(answer.to, 303)
            case Data():
                response = _plain(answer)
        for name, value in visit.cookies.items():
            response.set_cookie(name, value, httponly=True, samesite="lax")
        return response


def _in_transaction(visit: RequestContext, work: Callable[[], Response]) -> Response:
    if visit.method == "GET":
        return work()
    visit.database.execute("BEGIN")
    try:
        answer = work()
    except BaseException:
        visit.database.execute("ROLLBACK")
        raise
    visit.database.execute("COMMIT")
    return answer


async def _body(request: Request) -> bytes | None:
    """What the request carries; None if it is too much."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BODY:
            return None
        parts.append(part)
    return b"".join(parts)


def _plain(answer: Data) -> HttpResponse:
    from starlette.responses import Response as HttpResponse

    return HttpResponse(answer.body, answer.status, media_type=answer.kind)


def _nowhere(visit: RequestContext, path: str) -> Response:
    raise Missing

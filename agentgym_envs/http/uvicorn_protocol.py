"""The protocol classes that uvicorn uses for our servers: limits of request heads, and a fast path for steps."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from functools import cache, lru_cache
from http import HTTPStatus
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from agentgym_envs.http.app import EnvServer, JsonReply, TokenMiddleware, bug_response
from agentgym_envs.http.protocol import ServerLimits
from agentgym_envs.http.step_request import START, StepRequest, read_step

HAS_HTTPTOOLS = importlib.util.find_spec("httptools") is not None
"""The fast path follows httptools' parser; without it, all requests take the general path."""
_JSON_LINE = b"content-type: application/json\r\n"


def http_protocol(app: Any, fast_steps: bool) -> type[asyncio.Protocol]:
    """The protocol class of a server of `create_app`'s application."""
    server: EnvServer = app.state.server
    limited = _limited_protocol(server.sessions.limits)
    if not fast_steps or not HAS_HTTPTOOLS:
        return limited

    def adds_no_middleware() -> bool:
        return all(each.cls is TokenMiddleware for each in app.user_middleware)

    return _fast_protocol(limited, server.step_now, adds_no_middleware)


def _limited_protocol(limits: ServerLimits) -> type[Any]:
    """A protocol class that closes connections whose request header is late or too long; uvicorn's waits for ever."""

    class LimitedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _timer: asyncio.TimerHandle | None = None
        _head_bytes = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch(0)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch(len(data))

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._watch(0)

        def _watch(self, size: int) -> None:
            """Run a timer while a request header is expected; WebSockets are not in `connections`."""
            if self in self.connections and (self.cycle is None or self.cycle.response_complete):
                self._head_bytes += size
                if self._head_bytes > limits.header_bytes:
                    self.transport.close()
                if self._timer is None:
                    self._timer = self.loop.call_later(limits.header_seconds, self.transport.close)
            else:
                self._stop_watching()

        def _stop_watching(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer, self._head_bytes = None, 0

    return LimitedProtocol


def _lasting_timer_protocol(limited: type[Any]) -> type[Any]:
    """A protocol class whose keep-alive timer outlasts fast replies: starting another for each takes longer."""

    class LastingTimerProtocol(limited):  # type: ignore[misc]
        _answered = 0.0

        def _fast_reply_complete(self) -> None:
            """Do as `on_response_complete`, but note the time for the running timer."""
            self.server_state.total_requests += 1
            self._answered = self.loop.time()
            if self.timeout_keep_alive_task is None:
                self._limit_idle_time(self.timeout_keep_alive)

        def _limit_idle_time(self, seconds: float) -> None:
            self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

        def timeout_keep_alive_handler(self) -> None:
            rest = self._answered + self.timeout_keep_alive - self.loop.time()
            if rest > 0 and not self.transport.is_closing():
                self._limit_idle_time(rest)
            else:
                super().timeout_keep_alive_handler()

    return LastingTimerProtocol


def _fast_protocol(
    limited: type[Any],
    step_now: Callable[[StepRequest], Response | JsonReply | None],
    adds_no_middleware: Callable[[], bool],
) -> type[asyncio.Protocol]:
    """A protocol class that answers whole step requests at once: without a task, ASGI messages and routing.

    All other requests take the general path, and so does a step unless the connection is between two requests: its
    parser has read everything, no reply is outstanding, and the client reads the replies.
    """

    class FastProtocol(_lasting_timer_protocol(limited)):  # type: ignore[misc]
        _between_requests = True

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            plain = not self.root_path and not self.access_log and self.limit_concurrency is None
            self._enabled = plain and adds_no_middleware()

        def data_received(self, data: bytes) -> None:
            if not (self._enabled and data.startswith(START) and self._is_free() and self._take_step(data)):
                super().data_received(data)

        def on_message_begin(self) -> None:
            self._between_requests = False
            super().on_message_begin()

        def on_message_complete(self) -> None:
            self._between_requests = not self.parser.should_upgrade()
            super().on_message_complete()

        def _is_free(self) -> bool:
            answered = self.cycle is None or self.cycle.response_complete
            return self._between_requests and answered and not self.pipeline and not self.flow.write_paused

        def _take_step(self, data: bytes) -> bool:
            """Answer a step request. False, without effect, if it must take the general path."""
            request = read_step(data)
            if request is None:
                return False
            failed = False
            try:
                response = step_now(request)
            except Exception as error:
                self.logger.error("Exception in ASGI application\n", exc_info=error)
                response, failed = bug_response(), True
            if response is None:
                return False
            self._stop_watching()
            self.transport.write(_reply(response, tuple(self.server_state.default_headers)))
            if failed or (isinstance(response, Response) and response.headers.get("connection") == "close"):
                self.transport.close()
            self._fast_reply_complete()
            return True

    return FastProtocol


def _reply(response: Response | JsonReply, common: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """The bytes of a reply with the header fields that all replies have."""
    if isinstance(response, JsonReply):
        fields = b"content-length: %d\r\n%b" % (len(response.body), _JSON_LINE)
    else:
        fields = _lines(tuple(response.raw_headers))
    return b"%b%b%b\r\n%b" % (_status_line(response.status_code), _lines(common), fields, bytes(response.body))


@lru_cache(64)
def _lines(fields: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Header fields as lines. Those of all replies change once a second."""
    return b"".join([b"%b: %b\r\n" % field for field in fields])


@cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode("ascii")

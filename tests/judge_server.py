"""A chat completions server for tests of judges."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.waiting import until

Reply = Callable[[dict[str, Any]], tuple[int, Any] | tuple[int, Any, dict[str, str]]]
"""Computes the status, the text and perhaps the headers of a response."""


class JudgeServer:
    """A chat completions server; each of `replies` computes one response."""

    def __init__(self, url: str) -> None:
        self.url, self.requests, self.replies = url, list[dict[str, Any]](), list[Reply]()


@contextmanager
def judge_server() -> Iterator[JudgeServer]:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def complete(request: Request) -> Response:
        body = await request.json()
        state.requests.append({**body, "authorization": request.headers.get("authorization")})
        status, text, *rest = state.replies.pop(0)(body)
        content = {"choices": [{"message": {"content": text}}]} if isinstance(text, str | None) else text
        return JSONResponse(content, status, headers=rest[0] if rest else None)

    app = Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])
    runner = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=runner.run)
    thread.start()
    until(lambda: runner.started)
    state = JudgeServer(f"http://127.0.0.1:{runner.servers[0].sockets[0].getsockname()[1]}")
    try:
        yield state
    finally:
        runner.should_exit = True
        thread.join()


def saying(verdict: str, before: str = "") -> Reply:
    def reply(body: dict[str, Any]) -> tuple[int, str]:
        return 200, before + json.dumps({"code": code_of(body), "verdict": verdict})

    return reply


def code_of(body: dict[str, Any]) -> str:
    question: str = body["messages"][1]["content"]
    return question.partition("The code is ")[2][:8]


def plainly(status: int, text: Any) -> Reply:
    return lambda body: (status, text)

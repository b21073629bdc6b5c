"""A server with OpenAI's chat protocol: keys, errors in its form, rate limits, and counts of tokens."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.quiet_http import QuietHTTPServer

KEY = "sk-secret"


class ChatServer(QuietHTTPServer):
    """Answers with a random action, so that no two runs are alike. `failures` are sent first: status, headers, code."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.requests: list[dict[str, Any]] = []
        self.failures: list[tuple[int, dict[str, str], str]] = []
        self.counts_tokens = True

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        text = random.SystemRandom().choice(["inventory", *(f"get {n} stick" for n in range(1, 30))])
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        found = {"id": "chatcmpl-1", "object": "chat.completion", "model": body["model"], "choices": [choice]}
        if self.counts_tokens:
            read = sum(len(message["content"]) for message in body["messages"])
            found["usage"] = {"prompt_tokens": read, "completion_tokens": len(text), "total_tokens": read + len(text)}
        return found


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self._send(404, {"error": {"message": f"Invalid URL (POST {self.path})"}})
        elif self.headers.get("Authorization") != f"Bearer {KEY}":
            self._send(401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}})
        elif self.server.failures:
            status, headers, code = self.server.failures.pop(0)
            self._send(status, {"error": {"message": "Rate limit reached", "code": code}}, headers)
        else:
            self.server.requests.append(body)
            self._send(200, self.server.reply(body))

    def _send(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    with ChatServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()

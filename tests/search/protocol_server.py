"""A server of ours that speaks the protocols of other services, for tests."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.quiet_http import QuietHTTPServer


class Received(NamedTuple):
    method: str
    path: str
    parameters: dict[str, str]
    headers: Mapping[str, str]
    body: Any


class Reply(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str] = {}


Answer = Callable[[Received], Reply]


class ProtocolServer:
    """Answers with `script` first, and then with `answer`."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.script = answer, list[Answer]()
        self.received: list[Received] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                parts = urlsplit(self.path)
                body = json.loads(self.rfile.read(length)) if length else None
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Received(self.command, parts.path, dict(parse_qsl(parts.query)), headers, body)
                outer.received.append(request)
                reply = (outer.script.pop(0) if outer.script else outer.answer)(request)
                content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in {"content-length": str(len(content)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST

            def log_message(self, *args: object) -> None:
                pass

        self.http = QuietHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@contextmanager
def serving(answer: Answer) -> Iterator[ProtocolServer]:
    server = ProtocolServer(answer)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()

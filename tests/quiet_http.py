"""An HTTP server for tests."""

import sys
from http.server import ThreadingHTTPServer
from typing import Any


class QuietHTTPServer(ThreadingHTTPServer):
    """Prints nothing when a client closes its connection, since its threads outlive the test that reads stderr."""

    request_queue_size = 128  # of socketserver's 5 connections at once, a sixth waits for a second

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

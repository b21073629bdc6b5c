"""What client and server of the native protocol must agree on. `protocol.py` describes the whole."""

from __future__ import annotations

import json
from typing import Any

PREFIX = "/v2"
MAX_BATCH = 1024
NDJSON = "application/x-ndjson"
NOT_CARRIED_OUT = frozenset({"BadRequest", "Malformed", "Unauthorized", "OutOfOrder", "TooLarge", "NotFound"})
"""Types of errors after which the next call keeps the sequence number of this one."""


def is_token(text: object) -> bool:
    """Whether this can be a server's token, which travels in the head of a request."""
    return isinstance(text, str) and bool(text) and all("!" <= letter <= "~" for letter in text)


def dump(value: Any) -> bytes:
    """JSON in ASCII, so that lone surrogates (which are no Unicode text) can be told to the other side."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")

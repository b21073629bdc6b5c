"""The constants that client and server of the native protocol share; see `protocol.py`."""

from __future__ import annotations

import json
from typing import Any

PREFIX = "/v2"
MAX_BATCH = 1024
NDJSON = "application/x-ndjson"
CLIENT_HEADER = "AgentGym-Client"
"""A random name of the client process, by which a proxy can send all its requests to the same server."""
NOT_CARRIED_OUT = frozenset({"BadRequest", "Malformed", "Unauthorized", "OutOfOrder", "TooLarge", "NotFound"})
"""Errors of calls that were not carried out, so that the next call uses the same sequence number."""


def is_token(text: object) -> bool:
    """True if the text can be a server's token, which is sent in a request header."""
    return isinstance(text, str) and bool(text) and all("!" <= letter <= "~" for letter in text)


def dump(value: Any) -> bytes:
    """Encode as JSON in ASCII, which can represent lone surrogates (invalid in UTF-8)."""
    return _encode(value).encode("ascii")


_encode = json.JSONEncoder(separators=(",", ":")).encode  # made once: `json.dumps` makes one for every call

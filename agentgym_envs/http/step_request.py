"""The one form of request that the fast path of the server takes: a whole step request in one segment.

The reader is stricter than HTTP. It accepts few header fields, each at most once and of plain characters, and returns
None for anything else. The general path then reads the same bytes, so that there is one behaviour for all other
requests, the malicious ones included.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from agentgym_envs.http.wire import CLIENT_HEADER, PREFIX

START = b"POST %b/sessions/" % PREFIX.encode()
_HEAD_BYTES = 4096
_REQUEST_LINE = re.compile(rb"POST %b/sessions/([A-Za-z0-9_-]{1,64})/step HTTP/1\.1" % re.escape(PREFIX.encode()))
_VALUE = re.compile(rb"[\t -~]*")
_LENGTH = re.compile(rb"\d{1,9}")
_HARMLESS = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"accept-language",
        b"content-type",
        b"user-agent",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-real-ip",
        CLIENT_HEADER.lower().encode(),
    }
)
"""Fields that do not change how a step is carried out."""
_FIELDS = _HARMLESS | {b"authorization", b"connection", b"content-length", b"host"}


class StepRequest(NamedTuple):
    """A step request: the token of its session, the Authorization header, and the body."""

    session: str
    authorization: bytes
    body: bytes


class StepFields(NamedTuple):
    """The header fields that matter: the Authorization, and the length of the body."""

    authorization: bytes
    length: int


def read_step(data: bytes) -> StepRequest | None:
    """Read a segment that is one whole step request, and nothing more; None for anything else."""
    end = data.find(b"\r\n\r\n", len(START), _HEAD_BYTES)
    if end < 0:
        return None
    line_end = data.find(b"\r\n", len(START))
    line = _REQUEST_LINE.fullmatch(data, 0, line_end)
    fields = None if line is None else _read_fields(data[line_end + 2 : end])
    if line is None or fields is None or len(data) - end - 4 != fields.length:
        return None
    return StepRequest(line[1].decode("ascii"), fields.authorization, data[end + 4 :])


@lru_cache(1024)  # all requests of a client have the same fields but for the length of the body
def _read_fields(head: bytes) -> StepFields | None:
    """Read the lines after the first one. None if a field is unknown, malformed or repeated, or asks for more."""
    fields: dict[bytes, bytes] = {}
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or name not in _FIELDS or name in fields or _VALUE.fullmatch(value) is None:
            return None
        fields[name] = value.strip(b"\t ")
    if b"host" not in fields or _LENGTH.fullmatch(fields.get(b"content-length", b"")) is None:
        return None
    if fields.get(b"connection", b"keep-alive").lower() != b"keep-alive":
        return None
    return StepFields(fields.get(b"authorization", b""), int(fields[b"content-length"]))

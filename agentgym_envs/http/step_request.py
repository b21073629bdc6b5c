"""The one form of request that the fast path of the server takes: a whole step request in one segment.

The reader is stricter than HTTP. It accepts few header fields, each at most once and of plain characters, and returns
None for anything else. The general path then reads the same bytes, so that there is one behaviour for all other
requests, the malicious ones included.
"""

from __future__ import annotations

import re
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


def read_step(data: bytes) -> StepRequest | None:
    """Read a segment that is one whole step request, and nothing more; None for anything else."""
    end = data.find(b"\r\n\r\n", len(START), _HEAD_BYTES)
    if end < 0:
        return None
    line, *lines = data[:end].split(b"\r\n")
    request = _REQUEST_LINE.fullmatch(line)
    fields = None if request is None else _read_fields(lines)
    if request is None or fields is None or len(data) - end - 4 != int(fields[b"content-length"]):
        return None
    return StepRequest(request[1].decode("ascii"), fields.get(b"authorization", b""), data[end + 4 :])


def _read_fields(lines: list[bytes]) -> dict[bytes, bytes] | None:
    """The header fields; None if one is unknown, malformed or repeated, or if one that matters has another value."""
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or name not in _FIELDS or name in fields or _VALUE.fullmatch(value) is None:
            return None
        fields[name] = value.strip(b"\t ")
    if b"host" not in fields or _LENGTH.fullmatch(fields.get(b"content-length", b"")) is None:
        return None
    return fields if fields.get(b"connection", b"keep-alive").lower() == b"keep-alive" else None

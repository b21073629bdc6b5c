"""The frames in the pipes between a process and its workers: four bytes of length, then a pickle."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping
from typing import IO, Any

NumberedCall = tuple[int, str, str, Mapping[str, Any]]
"""Call number, session, method, arguments."""
NumberedReply = tuple[int, Any, dict[str, str] | None]
"""Call number, value, error."""
GRACE_SECONDS = 5.0
"""The time that a worker has to end by itself."""
_LENGTH = struct.Struct("<I")


def send(pipe: IO[bytes], value: Any) -> None:
    """Write a value and flush the pipe."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Read the next value; None if the other side is gone."""
    try:
        head = pipe.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        size = _LENGTH.unpack(head)[0]
        data = pipe.read(size)
    except (OSError, ValueError):
        return None
    return pickle.loads(data) if len(data) == size else None

"""Frames in the pipes between a process and its workers: four bytes of length, then a pickle."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping
from typing import IO, Any

Call = tuple[int, str, str, Mapping[str, Any]]
"""Number, session, method, arguments."""
Reply = tuple[int, Any, dict[str, str] | None]
"""Number, value, error."""
GRACE_SECONDS = 5.0
"""How long a worker may take to end by itself."""
_LENGTH = struct.Struct("<I")


def send(pipe: IO[bytes], value: Any) -> None:
    """Write a value and flush."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """The next value, or None if the other side is gone."""
    try:
        head = pipe.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        size = _LENGTH.unpack(head)[0]
        data = pipe.read(size)
    except (OSError, ValueError):
        return None
    return pickle.loads(data) if len(data) == size else None

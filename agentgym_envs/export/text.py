"""Texts and times as the formats of other tools need them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def valid_unicode(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which neither pydantic nor protobuf accepts."""
    return _SURROGATE.sub("\ufffd", text)


def valid_json(value: Any) -> Any:
    """A JSON value whose texts, and names of fields, are valid Unicode."""
    if isinstance(value, str):
        return valid_unicode(value)
    if isinstance(value, Mapping):
        return {valid_unicode(str(name)): valid_json(item) for name, item in value.items()}
    return [valid_json(item) for item in value] if isinstance(value, list | tuple) else value


def timestamp(seconds: float) -> str:
    """A time in seconds since 1970 as ISO 8601 in UTC, with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

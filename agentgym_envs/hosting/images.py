"""Rendered images as JSON and as PNG files."""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from typing import Any, TypeGuard

import numpy as np

from agentgym_envs.errors import EnvError

MAX_BYTES = 2**26
"""The most bytes of an image; one of 4096 by 4096 pixels has fewer."""
_LEVEL = 1  # the images have large areas of one color, so a higher level is slow and saves little


def image_to_json(image: Any) -> Any:
    """Convert an array (height, width, 3) of bytes to `{"shape", "zlib"}`; other values, such as texts, are unchanged.

    Raises EnvError for an array of another form or of more than `MAX_BYTES`.
    """
    if not isinstance(image, np.ndarray):
        return image
    if image.dtype != np.uint8 or not _is_shape(list(image.shape)):
        raise EnvError(f"render gave an array {image.shape} of {image.dtype}; only {_FORM} can be sent")
    data = zlib.compress(image.tobytes(), _LEVEL)
    return {"shape": list(image.shape), "zlib": base64.b64encode(data).decode()}


def image_from_json(data: Any) -> Any:
    """Convert the result of `image_to_json` back. Raises EnvError for an object that is not an image."""
    if not isinstance(data, dict):
        return data
    shape, packed = data.get("shape"), data.get("zlib")
    if not _is_shape(shape) or not isinstance(packed, str):
        raise EnvError(f"this is not an image, which is {_FORM}: {data!r:.200}")
    pixels = _unpack(packed, math.prod(shape))
    return np.frombuffer(pixels, np.uint8).reshape(shape)


_FORM = f"(height, width, 3) of uint8 with at most {MAX_BYTES} bytes"


def _is_shape(shape: Any) -> TypeGuard[list[int]]:
    if not isinstance(shape, list) or len(shape) != 3 or not all(type(length) is int for length in shape):
        return False
    return shape[2] == 3 and min(shape) > 0 and math.prod(shape) <= MAX_BYTES


def _unpack(packed: str, size: int) -> bytearray:
    """Unpack exactly `size` bytes into a writable buffer; never more, whatever the data claims."""
    unpacker = zlib.decompressobj()
    try:
        pixels = bytearray(unpacker.decompress(base64.b64decode(packed, validate=True), size + 1))
    except (zlib.error, binascii.Error, ValueError) as error:
        raise EnvError(f"this is not an image: {error}") from None
    if len(pixels) != size or not unpacker.eof:
        raise EnvError(f"this is not an image: it should hold {size} bytes")
    return pixels


def to_png(image: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Encode an array (height, width, 3) of bytes as PNG. Source: the PNG specification, third edition, W3C 2025."""
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, width * 3)], axis=1)  # no filter
    chunks = (
        (b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), _LEVEL)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

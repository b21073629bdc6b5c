"""Images of an episode: in memory as bytes, in records as files, and in JSON messages as `data:` URLs.

A record names an image by its contents, `images/<hash>.png` next to the record. So equal images are stored once, a
line is the same whoever writes it, and a file that exists is complete.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from pathlib import Path

from agentgym_envs.whole_files import write_whole

FOLDER = "images"
"""The folder of the images, in the folder of the records that refer to them."""
MAX_IMAGE_BYTES = 8 * 2**20
"""The most bytes of an image that is read or sent; a screenshot of a page of 1280 by 720 pixels has 50 to 500 kB."""
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg"}
_NAME = re.compile(rf"{FOLDER}/[0-9a-f]{{32}}\.(?:png|jpg)")
_DATA_URL = re.compile(r"data:(?:image/png|image/jpeg);base64,")


def media_type(image: bytes) -> str:
    """The media type of an image. Raises TypeError if it is neither PNG nor JPEG."""
    if image.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if image.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    raise TypeError(f"only PNG and JPEG images can be recorded, got bytes that begin with {image[:8]!r}")


def image_name(image: bytes) -> str:
    """The name of an image's file, relative to the folder of the record. Raises TypeError as `media_type` does."""
    digest = hashlib.blake2b(image, digest_size=16).hexdigest()
    return f"{FOLDER}/{digest}.{_ENDINGS[media_type(image)]}"


def is_image_name(name: object) -> bool:
    """True for a text of the form that `image_name` returns. It never leads out of the folder of the record."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def write_image(folder: Path, name: str, image: bytes) -> None:
    """Write an image below `folder`, completely or not at all. An image that is there already is kept."""
    path = folder / name
    if not path.exists():
        write_whole(path, image)


def read_image(folder: Path, name: object) -> bytes | None:
    """The image with a recorded name; None if it is no such name, or the file is missing, too large or no image."""
    if not isinstance(name, str) or not is_image_name(name):
        return None
    try:
        with open(folder / name, "rb") as file:
            image = file.read(MAX_IMAGE_BYTES + 1)
        media_type(image)
    except (OSError, TypeError):
        return None
    return image if len(image) <= MAX_IMAGE_BYTES else None


def remove_images(folder: Path) -> None:
    """Remove the images below `folder`; other files in their folder are kept."""
    for path in (folder / FOLDER).glob("*"):
        if is_image_name(f"{FOLDER}/{path.name}"):
            path.unlink(missing_ok=True)


def to_data_url(image: bytes) -> str:
    """An image as a `data:` URL. Raises TypeError as `media_type` does, ValueError if it is too large."""
    if len(image) > MAX_IMAGE_BYTES:
        raise ValueError(f"an image may have {MAX_IMAGE_BYTES} bytes; this one has {len(image)}")
    return f"data:{media_type(image)};base64,{base64.b64encode(image).decode()}"


def from_data_url(url: object) -> bytes:
    """The image of a `data:` URL. Raises ValueError for anything else, and for an image that is too large."""
    found = _DATA_URL.match(url) if isinstance(url, str) and len(url) <= 2 * MAX_IMAGE_BYTES else None
    if found is None:
        raise ValueError(f"this is not an image as a data: URL of at most {MAX_IMAGE_BYTES} bytes: {url!r:.80}")
    try:
        image = base64.b64decode(url[found.end() :], validate=True)  # type: ignore[index]
        media_type(image)
    except (binascii.Error, TypeError) as error:
        raise ValueError(f"this is not an image: {error}") from None
    if len(image) > MAX_IMAGE_BYTES:
        raise ValueError(f"an image may have {MAX_IMAGE_BYTES} bytes; this one has {len(image)}")
    return image

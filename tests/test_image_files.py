"""Images of records: their names, their files, and their form in JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentgym_envs.hosting.images import to_png
from agentgym_envs.image_files import (
    MAX_IMAGE_BYTES,
    from_data_url,
    image_name,
    is_image_name,
    media_type,
    read_image,
    remove_images,
    to_data_url,
    write_image,
)

PNG = to_png(np.zeros((2, 3, 3), np.uint8))
JPEG = b"\xff\xd8\xff\xe0 and so on"


@pytest.mark.parametrize(("image", "kind", "ending"), [(PNG, "image/png", ".png"), (JPEG, "image/jpeg", ".jpg")])
def test_images_are_named_by_their_contents(image: bytes, kind: str, ending: str) -> None:
    name = image_name(image)
    assert (media_type(image), name.startswith("images/"), name.endswith(ending)) == (kind, True, True)
    assert name == image_name(bytes(image)) != image_name(image + b"x")
    assert from_data_url(to_data_url(image)) == image


@pytest.mark.parametrize("name", ["images/../x.png", "/etc/passwd", "images/ab.png", "x/" + image_name(PNG), None, 3])
def test_other_names_are_not_read(tmp_path: Path, name: Any) -> None:
    assert not is_image_name(name)
    assert read_image(tmp_path, name) is None


def test_files_without_an_image_are_not_read(tmp_path: Path) -> None:
    name = image_name(PNG)
    assert read_image(tmp_path, name) is None
    (tmp_path / "images").mkdir()
    (tmp_path / name).write_text("root:x:0:0")
    assert read_image(tmp_path, name) is None
    (tmp_path / name).write_bytes(PNG + bytes(MAX_IMAGE_BYTES))
    assert read_image(tmp_path, name) is None


def test_interrupted_writing_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    name = image_name(PNG)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", interrupted)
        write_image(tmp_path, name, PNG)
    assert list((tmp_path / "images").iterdir()) == []
    write_image(tmp_path, name, PNG)
    before = (tmp_path / name).stat().st_mtime_ns
    write_image(tmp_path, name, PNG)
    assert read_image(tmp_path, name) == PNG and (tmp_path / name).stat().st_mtime_ns == before


def test_only_images_are_removed(tmp_path: Path) -> None:
    remove_images(tmp_path)
    write_image(tmp_path, image_name(PNG), PNG)
    (tmp_path / "images" / "mine.png").write_bytes(PNG)
    remove_images(tmp_path)
    assert [path.name for path in (tmp_path / "images").iterdir()] == ["mine.png"]


@pytest.mark.parametrize(
    "url", ["https://x.test/a.png", "data:image/svg+xml;base64,AAAA", "data:image/png;base64,AAAA", 7]
)
def test_other_urls_are_refused(url: Any) -> None:
    with pytest.raises(ValueError, match="image"):
        from_data_url(url)


def test_large_and_unknown_images_are_refused() -> None:
    with pytest.raises(ValueError, match="bytes"):
        to_data_url(PNG + bytes(MAX_IMAGE_BYTES))
    with pytest.raises(TypeError, match="PNG and JPEG"):
        image_name(b"GIF89a")

"""The pictures of the first page are those of the episodes, played again."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

import pytest

from tests.docs.snippets import ROOT

NAMES = ["textcraft", *(pytest.param(name, marks=pytest.mark.slow) for name in ("babyai", "search", "team"))]
MAX_BYTES = 150_000
_IMAGE = re.compile(r'(?<=href=")data:image/webp;base64,[^"]+')


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("make_gallery")


def stored(name: str) -> str:
    return (ROOT / f"docs/gallery/{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_shows_the_episode(name: str, script: ModuleType) -> None:
    assert script.picture_of(script.EPISODES[name]) == stored(name), f"run: python scripts/make_gallery.py {name}"


@pytest.mark.slow
@pytest.mark.rotating
@pytest.mark.parametrize("name", ["sciworld", "webarena"])
def test_a_picture_of_a_simulator_shows_the_episode(name: str, script: ModuleType) -> None:
    """The pixels of a browser differ between its versions; their places and all text do not."""
    drawn = script.picture_of(script.EPISODES[name])
    assert _IMAGE.sub("", drawn) == _IMAGE.sub("", stored(name)), f"run: python scripts/make_gallery.py {name}"


def test_every_picture_is_small_solved_and_on_the_first_page(script: ModuleType) -> None:
    page = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert {path.stem for path in (ROOT / "docs/gallery").glob("*")} == script.EPISODES.keys()
    for name in script.EPISODES:
        assert f"(gallery/{name}.svg)" in page
        assert len(stored(name)) < MAX_BYTES and "solved, score" in stored(name)

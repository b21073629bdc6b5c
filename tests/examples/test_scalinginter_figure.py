"""The figure of the tutorial."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")


@pytest.mark.slow
def test_the_script_draws_a_figure(tmp_path: Path) -> None:
    importlib.import_module("examples.scalinginter_figure").draw(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")

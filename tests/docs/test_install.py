"""The page Install names extras that exist, and every extra of the package."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.docs.snippets import PAGES, ROOT, blocks, commands

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
OWN = re.compile(r"(?:\.|agentgym-envs)(?:\[(.+)\])?(?: @ .*)?")
INSTALLED = [
    pytest.param(word, id=f"{page}:{block.line} {word}")
    for page in PAGES
    for block in blocks(page, "bash", "sh")
    for words in commands(block)
    if words[:2] == ["pip", "install"]
    for word in words[2:]
    if OWN.fullmatch(word)
]


@pytest.mark.parametrize("requirement", INSTALLED)
def test_installed_extras_exist(requirement: str) -> None:
    found = OWN.fullmatch(requirement)
    assert found is not None
    assert set((found[1] or "textcraft").split(",")) <= EXTRAS.keys()


def test_every_extra_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "site"))
    from extras import GOALS, extras_table  # type: ignore[import-not-found]

    assert GOALS.keys() == EXTRAS.keys()
    assert all(f"| `{name}` |" in extras_table() for name in EXTRAS)


def test_every_goal_installs_something() -> None:
    text = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    sections = text.split("\n## ")[1:6]
    assert [section.splitlines()[0] for section in sections] == ["Play", "Evaluate", "Train", "Serve", "Develop"]
    assert all("pip install " in section for section in sections)

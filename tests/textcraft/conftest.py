"""Fixtures of the tests of TextCraft."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.textcraft.recipes import BUILT_IN, RecipeBook, load_recipe_book


@pytest.fixture(scope="session")
def recipe_book() -> RecipeBook:
    return load_recipe_book()


@pytest.fixture
def table() -> dict[str, Any]:
    """A small custom recipe table; change it and write it with `written`."""
    return {
        "version": 1,
        "recipes": [
            ["board", "board", 4, [["tree", 1]], None],
            ["plank", "plank", 2, [["bush", 1]], None],
            ["cup", "cup", 1, [["#wood", 2]], None],
            ["tray", "tray", 1, [["#wood", 3], ["board", 1], ["cup", 2]], "ware"],
            ["tray_from_clay", "tray", 2, [["clay", 9]], "ware"],
        ],
        "tags": {"wood": ["board", "plank"]},
        "base_items": ["bush", "clay", "tree"],
        "goals": {"1": ["board", "plank", "tray"], "2": ["cup"]},
    }


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Return a function that writes a table and returns its path."""

    def write(table: Any) -> str:
        path = tmp_path / "table.json"
        path.write_text(table if isinstance(table, str) else json.dumps(table))
        return str(path)

    return write


@pytest.fixture
def env() -> TextCraftEnv:
    """An environment in an episode with the goal `stick` (4 from 2 planks of any kind)."""
    env = TextCraftEnv(goal="stick")
    env.reset(seed=0)
    return env


@pytest.fixture(scope="session")
def raw() -> Any:
    return json.loads(BUILT_IN.read_bytes())

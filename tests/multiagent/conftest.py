"""Fixtures of the tests of teams."""

from __future__ import annotations

import pytest

from agentgym_envs.textcraft.recipes import RecipeBook, load_recipe_book


@pytest.fixture(scope="session")
def book() -> RecipeBook:
    return load_recipe_book()

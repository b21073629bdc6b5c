"""Shortest plans with a proof: they agree with a brute-force search of the environment's states."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.core import TextEnv, text_env
from agentgym_envs.textcraft.oracle import make_plan
from agentgym_envs.textcraft.recipes import load_recipe_book
from agentgym_envs.textcraft.shortest import shortest_plan
from tests.brute_force import brute_force_turns

PLENTY = 40
"""More than any of the small tables needs of a base item, so one command can get it."""


def random_table(seed: int) -> dict[str, Any]:
    """A table of three base items and four crafted ones, with a tag and several recipes for an item."""
    rng = random.Random(seed)
    parts_of: dict[str, list[list[list[Any]]]] = {}
    known = ["log", "ore", "reed"]
    for item in ("beam", "cord"):  # the members of the tag
        parts_of[item] = [[[name, rng.randint(1, 2)] for name in rng.sample(known, rng.randint(1, 2))]]
    known += ["beam", "cord", "#kind"]
    for item in ("frame", "goal"):
        choices = [rng.sample(known, rng.randint(1, 3)) for _ in range(rng.randint(1, 2))]
        parts_of[item] = [[[name, rng.randint(1, 5)] for name in names] for names in choices]
        known.append(item)
    depth: dict[str, int] = dict.fromkeys(["log", "ore", "reed"], 0)
    for item, recipes in parts_of.items():
        depth[item] = 1 + min(max(depth[name] for name, _ in parts) for parts in recipes)
        if item == "cord":
            depth["#kind"] = min(depth["beam"], depth["cord"])
    makes = {item: rng.randint(1, 3) for item in parts_of}
    rows: list[list[Any]] = [
        [f"{item}_{n}", item, makes[item], parts, None]
        for item, recipes in parts_of.items()
        for n, parts in enumerate(recipes)
    ]
    bases = ["log", "ore", "reed"]
    return {
        "version": 1,
        "recipes": rows,
        "tags": {"kind": ["beam", "cord"]},
        "base_items": bases,
        "goals": {str(depth["goal"]): ["goal"]},
    }


def mixes(amount: int, members: list[str]) -> Iterator[dict[str, int]]:
    for first in range(amount + 1):
        yield {name: n for name, n in zip(members, (first, amount - first), strict=True) if n}


def all_commands(table: dict[str, Any]) -> list[str]:
    """Every command that may change the state: plenty of each base item, and every mix of members in each recipe."""
    found = [f"get {PLENTY} {name}" for name in table["base_items"]]
    for _, item, _, parts, _ in table["recipes"]:
        tagged = next((amount for name, amount in parts if name == "#kind"), 0)
        for mix in mixes(tagged, ["beam", "cord"]):
            using = [f"{n} {name}" for name, n in parts if name != "#kind"] + [f"{n} {name}" for name, n in mix.items()]
            found.append(f"craft {item} using {', '.join(using)}")
    return list(dict.fromkeys(found))


def make(table: dict[str, Any], path: Path) -> TextEnv:
    path.write_text(json.dumps(table))
    return text_env(gym.make("AgentGym/TextCraft-v0", recipe_table=str(path), split=None, max_distractors=0))


def play(env: TextEnv, commands: tuple[str, ...]) -> bool:
    done = False
    for command in commands:
        assert not done
        _, _, done, _, info = env.step(command)
        assert info["invalid_action"] is None
    return done


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("seed", range(12))
def test_plans_are_as_short_as_brute_force_finds(seed: int, tmp_path: Path) -> None:
    table = random_table(seed)
    env, rng = make(table, tmp_path / "table.json"), random.Random(seed)
    for start in range(3):
        env.reset(seed=start)
        for _ in range(2 * start):  # a state off the oracle's way
            if env.step(env.random_command(rng))[2]:
                env.reset(seed=start)
        solution = env.solution()
        assert solution.exact and solution.commands is not None
        assert len(solution.commands) == brute_force_turns(env, all_commands(table), 12)
        assert play(env, solution.commands)


def test_a_solution_ends_with_the_episode() -> None:
    env = text_env(gym.make("AgentGym/TextCraft-v0"))
    env.reset(seed=3)
    commands = env.solution().commands
    assert commands is not None and play(env, commands)
    assert env.solution() == ((), True)


def test_a_split_between_members_of_a_tag_can_be_shortest() -> None:
    book = load_recipe_book()
    refs = {name: ref for ref, name in enumerate(book.items)}
    held = {refs["oak_logs"]: 1, refs["birch_logs"]: 1}  # four planks each, and a chest needs eight
    assert len(make_plan(book, refs["chest"], held)) == 4
    found = shortest_plan(book, refs["chest"], held)
    assert found.proven and len(found.plan) == 3


def test_a_search_over_its_budget_has_no_proof() -> None:
    book = load_recipe_book()
    goal = max(book.goals, key=lambda ref: book.depth[ref])
    found = shortest_plan(book, goal, {}, max_branches=1)
    assert not found.proven and len(found.plan) == len(make_plan(book, goal, {}))


def test_recipes_that_the_same_ingredients_fit_prevent_a_proof(tmp_path: Path) -> None:
    table = random_table(0)
    table["recipes"] += [["goal_7", "goal", 7, [["beam", 2]], None], ["goal_8", "goal", 8, [["#kind", 2]], None]]
    env = make(table, tmp_path / "table.json")
    env.reset(seed=0)
    assert not env.solution().exact

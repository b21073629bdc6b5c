import json
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import TaskTableError, UnknownTask, UsageError
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.textcraft.recipes import load_recipe_book

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("textcraft*.jsonl"))
COMMANDS = st.one_of(
    st.builds(
        "get {} {}".format, st.integers(-1, 20), st.sampled_from(["oak logs", "bamboo", "coal", "stick", "planks"])
    ),
    st.builds("craft {} oak planks using {} oak logs".format, st.integers(0, 5), st.integers(0, 2)),
    st.builds(
        "craft stick using {} {}, {} {}".format, *([st.integers(0, 2), st.sampled_from(["bamboo", "oak planks"])] * 2)
    ),
    st.just("craft torch using 1 stick, 1 coal"),
    st.just("inventory"),
)


def replies(env: TextCraftEnv, *commands: str) -> list[str]:
    return [env.step(command)[0] for command in commands]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_play_reproduces_the_golden_transcripts(path: Path) -> None:
    assert GOLDEN
    for line in path.read_text(encoding="utf-8").splitlines():
        episode = json.loads(line)
        env = TextCraftEnv(**episode["options"])
        observation, _ = env.reset(seed=episode["seed"], options={"task": episode["task"]})
        assert observation == episode["observation"]
        for action, expected, reward, terminated in episode["turns"]:
            assert env.step(action)[:3] == (expected, reward, terminated), action


def test_golden_transcripts_exist() -> None:
    assert {path.stem for path in GOLDEN} == {"textcraft", "textcraft_worlds"}


def test_commands_get_the_expected_replies(env: TextCraftEnv) -> None:
    assert replies(
        env,
        "inventory",
        "get 3 oak_logs",
        "get 2 minecraft:oak_log.",
        "craft 4 oak planks using 1 oak logs",
        "craft 4 oak planks using 1 oak log",
        "inventory",
    ) == [
        "Inventory: You are not carrying anything.",
        "Got 3 oak logs",
        "Got 2 oak log",
        "Crafted 4 oak planks",
        "Could not find a valid recipe for oak planks",
        "Inventory: [oak logs] (2) [oak log] (2) [oak planks] (4)",
    ]


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("get 1 stick", "Could not find stick"),
        ("get 1 planks", "Could not find planks"),
        ("get 1 Unobtainium", "Could not find unobtainium"),
        ("get 1 oak logs please", "Could not find oak logs please"),
        ("craft 4 stick using 2 oak planks", "Could not find enough items to craft stick"),
        ("craft 4 stick using 2 planks", "Could not find enough items to craft stick"),
        ("craft 4 stick using 2 {x}", "Could not find enough items to craft stick"),
        ("craft 1 unobtainium using 1 coal", "Could not find a valid recipe for unobtainium"),
        ("craft 1 coal using 1 coal", "Could not find a valid recipe for coal"),
        ("craft 4 torch using 2 coal", "Could not find a valid recipe for torch"),
    ],
)
def test_a_failed_command_is_not_invalid(env: TextCraftEnv, command: str, reply: str) -> None:
    env.step("get 2 coal")
    observation, reward, terminated, truncated, info = env.step(command)
    assert (observation, reward, terminated, truncated) == (reply, 0.0, False, False)
    assert info["invalid_action"] is None
    assert info["inventory"] == {"coal": 2}


@pytest.mark.parametrize("action", ["", "look", "get 0 coal", "get coal", "craft stick", "craft stick using coal"])
def test_an_unknown_command_is_invalid_and_changes_nothing(env: TextCraftEnv, action: str) -> None:
    _, *_, before = env.step("get 2 coal")
    observation, reward, terminated, truncated, info = env.step(action)
    assert info["invalid_action"] == observation
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["inventory"] == {"coal": 2}
    assert info["state_key"] == before["state_key"]


def test_ingredients_may_be_split_and_mixed(env: TextCraftEnv) -> None:
    env.reset(seed=0, options={"task": "textcraft/0"})
    env.step("get 1 oak logs")
    env.step("get 1 birch logs")
    env.step("craft oak planks using 1 oak logs")
    env.step("craft birch planks using 1 birch logs")
    assert replies(
        env,
        "craft stick using 1 oak planks, 1 oak plank",
        "craft 4 stick using 1 birch_planks, 1 Oak Planks",
        "craft stick using 3 birch planks, 1 oak planks",
        "inventory",
    ) == [
        "Crafted 4 stick",
        "Crafted 4 stick",
        "Could not find a valid recipe for stick",
        "Inventory: [oak planks] (1) [birch planks] (3) [stick] (8)",
    ]


def test_the_amount_after_craft_has_no_effect(env: TextCraftEnv) -> None:
    env.step("get 4 oak logs")
    assert replies(env, "craft 99 oak planks using 1 oak logs", "craft oak planks using 1 oak logs") == [
        "Crafted 4 oak planks",
        "Crafted 4 oak planks",
    ]


def test_the_goal_ends_the_episode(env: TextCraftEnv) -> None:
    env.step("get 2 bamboo")
    observation, reward, terminated, truncated, info = env.step("craft 1 stick using 2 bamboo")
    assert (observation, reward, terminated, truncated) == ("Crafted 1 stick", 1.0, True, False)
    assert info["success"] is True and info["stop_reason"] == "success" and info["score"] == 1.0
    assert info["inventory"] == {"stick": 1}


@given(st.lists(COMMANDS, max_size=30))
def test_the_inventory_has_positive_amounts_and_matches_the_replies(commands: list[str]) -> None:
    env = TextCraftEnv(goal="torch")
    env.reset(seed=0)
    total = 0
    for command in commands:
        observation, _, terminated, _, info = env.step(command)
        inventory = info["inventory"]
        assert all(amount > 0 for amount in inventory.values())
        if observation.startswith("Got "):
            total += int(observation.split()[1])
        if command == "inventory":
            held = " ".join(f"[{name}] ({amount})" for name, amount in inventory.items())
            assert observation == "Inventory: " + (held or "You are not carrying anything.")
        assert not inventory or total
        if terminated:
            return


def test_equal_states_have_equal_keys() -> None:
    env = TextCraftEnv(goal="torch")
    keys = []
    for commands in (["get 2 coal", "get 3 bamboo"], ["get 3 bamboo", "inventory", "get 1 coal", "get 1 coal"]):
        env.reset(seed=0)
        replies(env, *commands)
        keys.append(env.step("inventory")[4]["state_key"])
    assert keys[0] == keys[1]


@given(st.lists(COMMANDS, max_size=8), st.lists(COMMANDS, min_size=1, max_size=8))
def test_a_copied_state_continues_as_a_replayed_one(before: list[str], after: list[str]) -> None:
    env, copied, replayed = (TextCraftEnv(goal="crafting table", split=None) for _ in range(3))
    env.reset(seed=7)
    replies(env, *before)
    saved = env.snapshot()
    replies(env, *after)  # the copy keeps the state from before
    assert saved.state_copy is not None
    assert copied.restore(saved) == replayed.restore(pickle.loads(pickle.dumps(saved)))
    assert [copied.step(command) for command in after] == [replayed.step(command) for command in after]
    assert copied.render() == replayed.render() and list(copied.oracle()) == list(replayed.oracle())


def test_a_copy_of_another_world_is_refused() -> None:
    env = TextCraftEnv()
    env.reset(seed=1)
    with pytest.raises(UsageError, match="with the tasks textcraft, this one has textcraft-invented"):
        TextCraftEnv(worlds="invented").restore(env.snapshot())


def test_info_holds_the_recipe_tree() -> None:
    env = TextCraftEnv(goal="oak fence", max_distractors=0)
    observation, info = env.reset(seed=0)
    tree = {recipe["item"]: recipe for recipe in info["recipe_tree"]}
    assert tree["oak fence"] == {
        "item": "oak fence",
        "count": 3,
        "ingredients": [["stick", 2, False], ["oak planks", 4, False]],
    }
    assert ["planks", 2, True] in [part for recipe in info["recipe_tree"] for part in recipe["ingredients"]]
    assert observation.count("\ncraft ") == len(info["recipe_tree"])
    info["recipe_tree"].clear()
    assert env.reset(seed=0)[1]["recipe_tree"]


@pytest.mark.parametrize("most", [0, 3, 10, 1000])
def test_distractors_are_limited(most: int) -> None:
    env = TextCraftEnv(goal="torch", max_distractors=most)
    observation, info = env.reset(seed=0)
    shown = observation.split("\n\n")[0].splitlines()[1:]
    needed = len(info["recipe_tree"])
    assert needed == 11
    assert len(shown) == len(set(shown)) == needed + min(most, len(env.recipe_book.distractors(env._goal)))
    seen = {env.reset(seed=seed)[0] for seed in range(10)}
    assert len(seen) == 10


@pytest.mark.parametrize("worlds", ["fictional", "invented"])
def test_other_worlds_list_the_kinds_of_items(worlds: Any) -> None:
    env = TextCraftEnv(worlds=worlds, goal="stick", max_distractors=0)
    observation, info = env.reset(seed=4)
    recipes, kinds, goal = observation.split("\n\n")
    kind, _, members = kinds.removeprefix("Kinds of items:\n").partition(": ")
    assert goal == f"Goal: {env.tasks.get(info['task_id']).goal}."
    assert f"using 2 {kind}\n" in recipes + "\n"
    made = {recipe["item"] for recipe in info["recipe_tree"]}
    assert len(members.split(", ")) == 8 and set(members.split(", ")) <= made
    plain = TextCraftEnv(worlds=worlds, goal="oak planks", max_distractors=0).reset(seed=4)[0]
    assert "Kinds" not in plain


def test_a_fixed_goal_is_used_in_every_episode() -> None:
    env = TextCraftEnv(goal="Minecraft:Oak_Plank", split="train")
    assert {env.reset()[1]["task_id"] for _ in range(5)} == {env.reset()[1]["task_id"]}
    assert env.task is not None and env.task.goal == "craft oak planks"
    assert env.reset(options={"task": "textcraft/7"})[1]["task_id"] == "textcraft/7"
    worlds = TextCraftEnv(goal="oak planks", worlds="fictional", split="test")
    tasks = {worlds.reset(seed=seed)[1]["task_id"] for seed in range(20)}
    assert len(tasks) == 20
    assert {task.split("/")[2] for task in tasks} == {env.reset()[1]["task_id"].split("/")[1]}
    assert all(2_000_000 <= int(task.split("/")[1]) < 3_000_000 for task in tasks)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"goal": "oak plonks"}, UnknownTask, "did you mean 'oak planks'"),
        ({"goal": "coal"}, UnknownTask, "cannot be a goal, since no recipe makes it"),
        ({"goal": "qqqqqqq"}, UnknownTask, "for example 'acacia planks' can"),
        ({"goal": "torch", "groups": ("depth-1",)}, UsageError, "is of depth-2"),
        ({"groups": ("depth-5",)}, UnknownTask, "choose from depth-1, depth-2, depth-3, depth-4"),
        ({"worlds": "real estate"}, UsageError, "worlds must be one of real, fictional, invented"),
        ({"max_distractors": -1}, UsageError, "at least 0, got -1"),
        ({"max_distractors": True}, UsageError, "got True"),
        ({"recipe_table": "no/such/table.json"}, TaskTableError, "cannot read the recipe table 'no/such/table.json'"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TextCraftEnv(**arguments)


def test_a_custom_recipe_table_defines_the_world(table: Any, written: Any) -> None:
    path = Path(written(table))
    env = gym.make("AgentGym/TextCraft-v0", recipe_table=path, goal="cup", split=None).unwrapped
    assert isinstance(env, TextCraftEnv)
    observation, info = env.reset(seed=0)
    assert "\n\nKinds of items:\nwood: board, plank\n\nGoal: craft cup." in observation
    assert info["task_id"].startswith(f"textcraft-{env.recipe_book.digest[:8]}/")
    env.step("get 1 tree")
    copy = pickle.loads(pickle.dumps(env))
    assert copy.recipe_book is env.recipe_book
    assert replies(copy, "craft 4 board using 1 tree", "craft cup using 2 boards") == [
        "Crafted 4 board",
        "Crafted 1 cup",
    ]


def test_pickles_are_small() -> None:
    env = TextCraftEnv(worlds="fictional")
    env.reset(seed=0)
    env.step("get 1 coal")
    assert len(pickle.dumps(env)) < 4_000
    assert pickle.loads(pickle.dumps(env)).recipe_book is load_recipe_book()


@pytest.mark.parametrize("worlds", ["real", "invented"])
def test_random_commands_are_well_formed_and_sometimes_win(worlds: Any) -> None:
    rng, won = random.Random(0), 0
    env = TextCraftEnv(worlds=worlds, groups=("depth-1",), max_distractors=0)
    assert env.random_command(rng) == "inventory"
    for seed in range(50):
        env.reset(seed=seed)
        for _ in range(20):
            observation, _, terminated, _, info = env.step(env.random_command(rng))
            assert info["invalid_action"] is None
            assert observation.startswith(("Got ", "Crafted ", "Could not find enough items"))
            if terminated:
                won += 1
                break
    assert won > 25


def test_ansi_render_shows_goal_inventory_and_recipes() -> None:
    env = TextCraftEnv(goal="stick", max_distractors=0, render_mode="ansi")
    assert env.render() == "No episode has started."
    env.reset(seed=0)
    replies(env, "get 2 bamboo", " get 1 oak logs ")
    text = env.render() or ""
    assert text.startswith(
        "Goal: craft stick\nInventory: 2 bamboo, 1 oak logs\n> get 1 oak logs\nGot 1 oak logs\nRecipes:\n  craft "
    )
    assert len(text.splitlines()) == 5 + 10


def test_the_import_loads_nothing_heavy() -> None:
    code = "import sys, agentgym_envs; print([m for m in sys.modules if 'textcraft' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.rotating
@pytest.mark.slow
def test_memory_stays_flat_over_thousands_of_episodes() -> None:
    import psutil

    process = psutil.Process()
    env = TextCraftEnv(worlds="fictional")
    real = TextCraftEnv()

    def episodes(first: int, last: int) -> int:
        for seed in range(first, last):
            each = env if seed % 2 else real
            each.reset(seed=seed)
            for command in each.oracle():
                each.step(command)
        return process.memory_info().rss

    warm = episodes(0, 4_000)
    assert episodes(4_000, 10_000) - warm < 2 * 2**20

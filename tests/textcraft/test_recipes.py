import hashlib
import pickle
from collections import Counter
from typing import Any

import pytest

from agentgym_envs.errors import TaskTableError
from agentgym_envs.textcraft.names import real_names
from agentgym_envs.textcraft.recipes import BUILT_IN, RecipeBook, load_recipe_book


def test_the_recipe_table_is_unchanged() -> None:
    expected = "07f1c03181b2741cd512d52d98b4cc5c0a7c1e8db623108b8faf2c165c806bc9"
    assert hashlib.sha256(BUILT_IN.read_bytes()).hexdigest() == expected == load_recipe_book().digest


def test_the_built_in_recipe_book_has_the_published_counts(recipe_book: RecipeBook) -> None:
    assert len(recipe_book.recipes) == 613
    assert len(recipe_book.items) == 676
    assert sum(recipe_book.base) == 132
    assert len(recipe_book.tags) == 23
    assert Counter(recipe_book.depth[goal] for goal in recipe_book.goals) == {1: 125, 2: 291, 3: 117, 4: 11}


def test_references_match_the_table(recipe_book: RecipeBook, raw: Any) -> None:
    def name(ref: int) -> str:
        return recipe_book.items[ref] if ref < recipe_book.size else "#" + recipe_book.tags[ref - recipe_book.size]

    for recipe, row in zip(recipe_book.recipes, raw["recipes"], strict=True):
        assert [name(recipe.item), recipe.makes, [[name(ref), n] for ref, n in recipe.parts]] == row[1:4]
    assert {name(tag)[1:]: [name(ref) for ref in members] for tag, members in recipe_book.members.items()} == raw[
        "tags"
    ]
    assert [recipe_book.items[ref] for ref in range(recipe_book.size) if recipe_book.base[ref]] == raw["base_items"]


def test_the_order_puts_ingredients_first(recipe_book: RecipeBook) -> None:
    for recipe in recipe_book.recipes:
        assert all(recipe_book.order[ref] < recipe_book.order[recipe.item] for ref, _ in recipe.parts)
    for tag, members in recipe_book.members.items():
        assert all(recipe_book.order[ref] < recipe_book.order[tag] for ref in members)


def test_a_goal_has_needed_recipes_and_distractors(recipe_book: RecipeBook) -> None:
    line, torch = real_names(recipe_book).line, recipe_book.items.index("torch")
    woods = {"acacia": "logs", "birch": "logs", "dark oak": "logs", "jungle": "logs", "oak": "logs", "spruce": "logs"}
    woods |= {"crimson": "stems", "warped": "stems"}
    assert sorted(line(number) for number in recipe_book.needed(torch)) == sorted(
        [
            "craft 4 torch using 1 stick, 1 coal",
            "craft 1 stick using 2 bamboo",
            "craft 4 stick using 2 planks",
            *(f"craft 4 {wood} planks using 1 {wood} {logs}" for wood, logs in woods.items()),
        ]
    )
    assert line(recipe_book.distractors(torch)[0]) == "craft 3 acacia fence using 2 stick, 4 acacia planks"
    shown, others = set(recipe_book.needed(torch)), set(recipe_book.distractors(torch))
    assert not shown & others
    used = {ref for number in shown for ref, _ in recipe_book.recipes[number].parts}
    assert all(any(ref in used for ref, _ in recipe_book.recipes[number].parts) for number in others)


def test_needed_recipes_and_distractors_follow_their_definition(recipe_book: RecipeBook) -> None:
    """The slow way, for every goal: walk down the tree, then read the whole table."""
    recipes = recipe_book.recipes
    first = [number for number, recipe in enumerate(recipes) if recipes.index(recipe) == number]
    assert len(first) == len(recipes) - 1, "the table has one recipe twice: sugar from sugar cane"
    for goal in recipe_book.goals:
        refs, size = {goal}, 0
        while size != len(refs):
            size = len(refs)
            refs |= {
                part for ref in refs for number in recipe_book.recipes_for[ref] for part, _ in recipes[number].parts
            }
        tree = {number for ref in refs for number in recipe_book.recipes_for[ref]}
        assert recipe_book.needed(goal) == tuple(sorted(tree))
        used = {ref for number in tree for ref, _ in recipes[number].parts}
        users = {number for number, recipe in enumerate(recipes) if used & {ref for ref, _ in recipe.parts}}
        assert recipe_book.distractors(goal) == tuple(sorted(users - tree))
        shown = [number for number in first if number in tree], [number for number in first if number in users - tree]
        assert recipe_book.distinct(goal) == shown


def test_match_accepts_any_mixture_for_a_tag(recipe_book: RecipeBook) -> None:
    item = recipe_book.items.index
    stick, oak, birch = item("stick"), item("oak_planks"), item("birch_planks")
    assert recipe_book.match(stick, {oak: 2}) == recipe_book.match(stick, {oak: 1, birch: 1})
    assert recipe_book.match(stick, {oak: 1}) is None
    assert recipe_book.match(stick, {oak: 2, birch: 1}) is None
    assert recipe_book.match(stick, {oak: 1, item("stone"): 1}) is None
    assert recipe_book.match(stick, {}) is None
    assert recipe_book.match(item("stone"), {oak: 2}) is None


def test_match_distinguishes_an_item_from_its_tag(table: Any, written: Any) -> None:
    recipe_book = load_recipe_book(written(table))
    tray, board, plank, cup = (recipe_book.items.index(name) for name in ("tray", "board", "plank", "cup"))
    for boards in (1, 2, 4):
        assert recipe_book.match(tray, {board: boards, plank: 4 - boards, cup: 2} if boards < 4 else {board: 4, cup: 2})
    assert recipe_book.match(tray, {plank: 4, cup: 2}) is None
    assert recipe_book.match(tray, {board: 5, cup: 2}) is None
    assert recipe_book.match(tray, {board: 4, cup: 3}) is None


def test_a_pickled_recipe_book_refers_to_its_file(table: Any, written: Any) -> None:
    assert pickle.loads(pickle.dumps(load_recipe_book())) is load_recipe_book()
    assert len(pickle.dumps(load_recipe_book())) < 300
    path = written(table)
    pickled = pickle.dumps(load_recipe_book(path))
    assert pickle.loads(pickled) is load_recipe_book(path)
    table["version"] = 2
    written(table)
    with pytest.raises(TaskTableError, match="has changed"):
        pickle.loads(pickled)


MALFORMED = {
    "is not JSON": "{",
    "is a JSON object, got list": [],
    "key 'tags' is missing": lambda t: t.pop("tags"),
    "'version' must be of type int, got str": lambda t: t.update(version="1"),
    "'version' must be of type int, got bool": lambda t: t.update(version=True),
    "'recipes' must be of type list": lambda t: t.update(recipes={}),
    r"recipe 0: a recipe is \[id, item": lambda t: t["recipes"].__setitem__(0, ["x"]),
    "recipe 1: a count is a whole number": lambda t: t["recipes"][1].__setitem__(2, 0),
    "recipe 1: a count .* got 1.5": lambda t: t["recipes"][1][3].__setitem__(0, ["bush", 1.5]),
    "recipe 1: a count .* got True": lambda t: t["recipes"][1].__setitem__(2, True),
    "a count .* got 100000": lambda t: t["recipes"][1].__setitem__(2, 100_000),
    "recipe 2: ingredients are a list": lambda t: t["recipes"][2].__setitem__(3, []),
    "recipe 2: 7 is not a name": lambda t: t["recipes"][2][3].__setitem__(0, [7, 1]),
    "'Oak Planks' is not a name": lambda t: t["base_items"].append("Oak Planks"),
    "'not_using_this' is not a name": lambda t: t["base_items"].append("not_using_this"),
    "'base_items': 'bush' occurs twice": lambda t: t["base_items"].append("bush"),
    "ids of the recipes: 'cup' occurs twice": lambda t: t["recipes"].append(t["recipes"][2]),
    "recipe 0: 'tree' occurs twice": lambda t: t["recipes"][0][3].append(["tree", 1]),
    "the group text or null": lambda t: t["recipes"][0].__setitem__(4, 3),
    "base item 'cup' is also made": lambda t: t["base_items"].append("cup"),
    "uses 'air', which is not a base item": lambda t: t["recipes"][0].__setitem__(3, [["air", 1]]),
    "uses '#air', which is not a base item, a tag": lambda t: t["recipes"][0].__setitem__(3, [["#air", 1]]),
    "tag 'wood' names 'air'": lambda t: t["tags"]["wood"].append("air"),
    "tag 'wood' has no member": lambda t: t["tags"].update(wood=[]),
    "'clay' is both an item and a tag": lambda t: t["tags"].update(clay=["tray"]),
    "'board' has more than one tag": lambda t: t["tags"].update(flat=["board"]),
    "a cycle: .*board.*tree.*board|a cycle: .*tree.*board.*tree": lambda t: (
        t["base_items"].remove("tree"),
        t["recipes"].append(["tree", "tree", 1, [["board", 1]], None]),
    ),
    "goal 'clay' is made by no recipe": lambda t: t["goals"].update({"1": ["clay"]}),
    "goal 'wood' is made by no recipe": lambda t: t["goals"].update({"1": ["wood"]}),
    "goal 'cup' is listed at depth 3, but its depth is 2": lambda t: t["goals"].update({"2": [], "3": ["cup"]}),
    "must name at least one item": lambda t: t.update(goals={}),
    "'goals', '1': expected a list": lambda t: t["goals"].update({"1": "board"}),
}


@pytest.mark.parametrize("message", MALFORMED)
def test_malformed_tables_are_refused(message: str, table: Any, written: Any) -> None:
    damage = MALFORMED[message]
    if callable(damage):
        damage(table)
    with pytest.raises(TaskTableError, match=message) as caught:
        load_recipe_book(written(table if callable(damage) else damage))
    assert "table.json" in str(caught.value)


def test_a_relative_path_works_from_another_folder(table: Any, written: Any, monkeypatch: Any, tmp_path: Any) -> None:
    written(table)
    monkeypatch.chdir(tmp_path)
    recipe_book = load_recipe_book("table.json")
    pickled = pickle.dumps(recipe_book)
    monkeypatch.chdir("/")
    assert pickle.loads(pickled) is recipe_book


def test_an_unreadable_table_is_refused(tmp_path: Any) -> None:
    with pytest.raises(TaskTableError, match=r"cannot read .*No such file"):
        load_recipe_book(str(tmp_path / "none.json"))
    with pytest.raises(TaskTableError, match="cannot read"):
        load_recipe_book(str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskTableError, match="not JSON"):
        load_recipe_book(str(tmp_path / "binary"))
    (tmp_path / "deep").write_text("[" * 100_000)
    with pytest.raises(TaskTableError, match="not JSON"):
        load_recipe_book(str(tmp_path / "deep"))

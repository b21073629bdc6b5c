import hashlib
import pickle
from collections import Counter
from typing import Any

import pytest

from agentgym_envs.errors import TaskTableError
from agentgym_envs.textcraft.names import real_names
from agentgym_envs.textcraft.recipes import BUILT_IN, RecipeBook, load_recipe_book


def test_the_table_is_the_one_that_was_derived() -> None:
    expected = "07f1c03181b2741cd512d52d98b4cc5c0a7c1e8db623108b8faf2c165c806bc9"
    assert hashlib.sha256(BUILT_IN.read_bytes()).hexdigest() == expected == load_recipe_book().digest


def test_counts(book: RecipeBook) -> None:
    assert len(book.recipes) == 613
    assert len(book.items) == 676
    assert sum(book.base) == 132
    assert len(book.tags) == 23
    assert Counter(book.depth[goal] for goal in book.goals) == {1: 125, 2: 291, 3: 117, 4: 11}


def test_references_keep_the_tables_facts(book: RecipeBook, raw: Any) -> None:
    def name(ref: int) -> str:
        return book.items[ref] if ref < book.size else "#" + book.tags[ref - book.size]

    for recipe, row in zip(book.recipes, raw["recipes"], strict=True):
        assert [name(recipe.item), recipe.makes, [[name(ref), n] for ref, n in recipe.parts]] == row[1:4]
    assert {name(tag)[1:]: [name(ref) for ref in members] for tag, members in book.members.items()} == raw["tags"]
    assert [book.items[ref] for ref in range(book.size) if book.base[ref]] == raw["base_items"]


def test_order_puts_ingredients_first(book: RecipeBook) -> None:
    for recipe in book.recipes:
        assert all(book.order[ref] < book.order[recipe.item] for ref, _ in recipe.parts)
    for tag, members in book.members.items():
        assert all(book.order[ref] < book.order[tag] for ref in members)


def test_needed_and_distractors_of_a_goal(book: RecipeBook) -> None:
    line, torch = real_names(book).line, book.items.index("torch")
    woods = {"acacia": "logs", "birch": "logs", "dark oak": "logs", "jungle": "logs", "oak": "logs", "spruce": "logs"}
    woods |= {"crimson": "stems", "warped": "stems"}
    assert sorted(line(number) for number in book.needed(torch)) == sorted(
        [
            "craft 4 torch using 1 stick, 1 coal",
            "craft 1 stick using 2 bamboo",
            "craft 4 stick using 2 planks",
            *(f"craft 4 {wood} planks using 1 {wood} {logs}" for wood, logs in woods.items()),
        ]
    )
    assert line(book.distractors(torch)[0]) == "craft 3 acacia fence using 2 stick, 4 acacia planks"
    shown, others = set(book.needed(torch)), set(book.distractors(torch))
    assert not shown & others
    used = {ref for number in shown for ref, _ in book.recipes[number].parts}
    assert all(any(ref in used for ref, _ in book.recipes[number].parts) for number in others)


def test_match_takes_a_tag_in_any_mixture(book: RecipeBook) -> None:
    item = book.items.index
    stick, oak, birch = item("stick"), item("oak_planks"), item("birch_planks")
    assert book.match(stick, {oak: 2}) == book.match(stick, {oak: 1, birch: 1})
    assert book.match(stick, {oak: 1}) is None
    assert book.match(stick, {oak: 2, birch: 1}) is None
    assert book.match(stick, {oak: 1, item("stone"): 1}) is None
    assert book.match(stick, {}) is None
    assert book.match(item("stone"), {oak: 2}) is None


def test_match_tells_an_item_from_the_tag_it_carries(table: Any, written: Any) -> None:
    book = load_recipe_book(written(table))
    tray, board, plank, cup = (book.items.index(name) for name in ("tray", "board", "plank", "cup"))
    for boards in (1, 2, 4):
        assert book.match(tray, {board: boards, plank: 4 - boards, cup: 2} if boards < 4 else {board: 4, cup: 2})
    assert book.match(tray, {plank: 4, cup: 2}) is None
    assert book.match(tray, {board: 5, cup: 2}) is None
    assert book.match(tray, {board: 4, cup: 3}) is None


def test_pickling_a_book_names_its_file(table: Any, written: Any) -> None:
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


def test_a_relative_path_is_found_again_from_elsewhere(
    table: Any, written: Any, monkeypatch: Any, tmp_path: Any
) -> None:
    written(table)
    monkeypatch.chdir(tmp_path)
    book = load_recipe_book("table.json")
    pickled = pickle.dumps(book)
    monkeypatch.chdir("/")
    assert pickle.loads(pickled) is book


def test_a_table_that_cannot_be_read(tmp_path: Any) -> None:
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

import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.textcraft.names import ItemNames, Worlds, make_names, real_names
from agentgym_envs.textcraft.recipes import RecipeBook, load_recipe_book

WORLD = st.integers(0, 2_999_999)
KIND = st.sampled_from(["fictional", "invented"])


def every_name(names: ItemNames) -> list[str]:
    return [names.name_of(ref) for ref in range(len(names.recipe_book.recipes_for))]


@given(WORLD, KIND)
def test_names_are_one_to_one(world: int, kind: Worlds) -> None:
    names = make_names(load_recipe_book(), kind, world)
    spoken = every_name(names)
    assert len(set(spoken)) == len(spoken)
    assert [names.find(name) for name in spoken[: names.recipe_book.size]] == list(range(names.recipe_book.size))


@given(WORLD)
def test_fictional_names_are_shuffled_real_names(world: int) -> None:
    recipe_book = load_recipe_book()
    names, real = every_name(make_names(recipe_book, "fictional", world)), every_name(real_names(recipe_book))
    assert sorted(names[: recipe_book.size]) == sorted(real[: recipe_book.size])
    assert sorted(names[recipe_book.size :]) == sorted(real[recipe_book.size :])
    assert sum(new == old for new, old in zip(names, real, strict=True)) < 20


@given(WORLD)
def test_invented_names_are_not_real(world: int) -> None:
    recipe_book = load_recipe_book()
    names = every_name(make_names(recipe_book, "invented", world))
    assert not set(names) & set(every_name(real_names(recipe_book)))
    assert all(re.fullmatch("([bdfgklmnprstvz][aeiou]){3}", name) for name in names)


@pytest.mark.parametrize("kind", ["fictional", "invented"])
def test_worlds_differ_and_are_stable(kind: Worlds, recipe_book: RecipeBook) -> None:
    worlds = [tuple(every_name(make_names(recipe_book, kind, world))) for world in range(200)]
    assert len(set(worlds)) == 200
    names = make_names(recipe_book, kind, 77)
    make_names.cache_clear()
    assert every_name(make_names(recipe_book, kind, 77)) == every_name(names)
    assert every_name(pickle.loads(pickle.dumps(names))) == every_name(names)


def test_names_of_fictional_worlds_are_frozen(recipe_book: RecipeBook) -> None:
    """These must never change, because the tasks of fictional worlds use them."""
    assert every_name(make_names(recipe_book, "fictional", 0))[:3] == FICTIONAL
    assert every_name(make_names(recipe_book, "invented", 2_000_000))[:3] == INVENTED


FICTIONAL = ["green concrete powder", "acacia stairs", "netherite block"]
INVENTED = ["nokoge", "titepo", "dikaba"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("oak planks", "oak planks"),
        ("oak plank", "oak planks"),
        ("sticks", "stick"),
        ("torches", "torch"),
        ("oak log", "oak log"),
        ("oak logs", "oak logs"),
        ("brick", "brick"),
        ("bricks", "bricks"),
        ("iron bar", "iron bars"),
    ],
)
def test_singular_and_plural_are_accepted(text: str, meant: str, recipe_book: RecipeBook) -> None:
    names = real_names(recipe_book)
    ref = names.find(text)
    assert ref is not None and names.name_of(ref) == meant


@pytest.mark.parametrize("text", ["", "planks", "plank", "wool", "s", "oak", "glas", "oak planks s", "oak plankss"])
def test_unknown_names_are_not_found(text: str, recipe_book: RecipeBook) -> None:
    assert real_names(recipe_book).find(text) is None


def test_the_plural_of_an_invented_name_is_accepted(recipe_book: RecipeBook) -> None:
    names = make_names(recipe_book, "invented", 5)
    assert names.find(names.name_of(3) + "s") == 3
    assert names.find(names.name_of(3) + "ss") is None
    assert names.find(names.name_of(3) + "x") is None


@given(WORLD)
def test_fictional_names_follow_from_two_stable_sorts(world: int) -> None:
    """The slow way to the same names: a list of two numbers as the seed, and `argsort`."""
    recipe_book = load_recipe_book()
    size, real = recipe_book.size, every_name(real_names(recipe_book))
    raw = np.random.PCG64([0, world]).random_raw(len(real))
    order = [*raw[:size].argsort(kind="stable"), *(raw[size:].argsort(kind="stable") + size)]
    assert every_name(make_names(recipe_book, "fictional", world)) == [real[ref] for ref in order]


def test_equal_random_numbers_keep_the_order_of_the_table(recipe_book: RecipeBook) -> None:
    size, count = recipe_book.size, len(recipe_book.recipes_for)
    numbers = np.random.PCG64(0).random_raw(count)
    numbers[::3] = numbers[0]
    numbers[1::3] += np.arange(len(numbers[1::3]), dtype=np.uint64)
    order = [*numbers[:size].argsort(kind="stable"), *(numbers[size:].argsort(kind="stable") + size)]
    assert real_names(recipe_book).shuffle(numbers).tolist() == order


@given(WORLD)
def test_invented_names_spell_a_multiple_of_the_reference(world: int) -> None:
    recipe_book = load_recipe_book()
    syllables = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
    first, shift = (int(number) for number in np.random.PCG64([1, world]).random_raw(2))
    factor = next(a for a in range(first % 70**3, 2 * 70**3) if math.gcd(a, 70) == 1)
    numbers = [(ref * factor + shift) % 70**3 for ref in range(len(recipe_book.recipes_for))]
    words = [syllables[n // 4900] + syllables[n // 70 % 70] + syllables[n % 70] for n in numbers]
    assert every_name(make_names(recipe_book, "invented", world)) == words


@given(WORLD, KIND, st.lists(st.integers(0, 612), min_size=1, max_size=20))
def test_names_looked_up_together_are_those_of_single_items(world: int, kind: Worlds, numbers: list[int]) -> None:
    recipe_book = load_recipe_book()
    names, fresh = make_names.__wrapped__(recipe_book, kind, world), make_names.__wrapped__(recipe_book, kind, world)
    recipes = [recipe_book.recipes[number] for number in numbers]
    expected = [
        f"craft {makes} {names.name_of(item)} using " + ", ".join(f"{n} {names.name_of(ref)}" for ref, n in parts)
        for item, makes, parts in recipes
    ]
    assert fresh.lines(numbers).split("\n") == expected
    trees = [
        {
            "item": names.name_of(item),
            "count": makes,
            "ingredients": [[names.name_of(ref), n, ref >= recipe_book.size] for ref, n in parts],
        }
        for item, makes, parts in recipes
    ]
    assert fresh.describe(numbers) == trees == make_names.__wrapped__(recipe_book, kind, world).describe(numbers)
    tags = [ref for recipe in recipes for ref, _ in recipe.parts if ref >= recipe_book.size]
    assert list(fresh.tags(numbers)) == list(dict.fromkeys(tags))

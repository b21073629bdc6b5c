"""The recipe book: items, tags, recipes and goals. It is read once, shared and immutable."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from agentgym_envs.errors import TaskTableError

MAX_AMOUNT = 9_999
"""The largest amount in a recipe or a command."""
BUILT_IN = Path(__file__).with_name("data") / "recipes.json"

_KEYS = {"version": int, "recipes": list, "tags": dict, "base_items": list, "goals": dict}
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class Recipe(NamedTuple):
    """A recipe: `parts`, pairs of a reference and an amount, make `makes` of `item`.

    A reference below `len(recipe_book.items)` is an item. Higher ones are tags; any member of the tag may be used.
    """

    item: int
    makes: int
    parts: tuple[tuple[int, int], ...]


class RecipeBook:
    """All items, tags, recipes and goals, by number instead of by name.

    `items` and `tags` are the sorted names (with underscores); a reference is an index into `items + tags`.
    `recipes_for[ref]` holds the numbers of the recipes that make an item, or a member of a tag. `order[ref]` increases
    from ingredients to products, so that it sorts the steps of a plan. `goals` holds the goals in canonical order.
    """

    def __init__(self, path: str | None, digest: str, raw: Mapping[str, Any], where: str) -> None:
        """Build the recipe book. Raises TaskTableError, with the entry, if `raw` is not a valid recipe table."""
        self.path, self.digest, self.version = path, digest, int(raw["version"])
        made: set[str] = {row[1] for row in raw["recipes"]}
        self.items: tuple[str, ...] = tuple(sorted({*raw["base_items"], *made}))
        self.tags: tuple[str, ...] = tuple(sorted(raw["tags"]))
        self.size = len(self.items)
        self._refs = {name: ref for ref, name in enumerate((*self.items, *(f"#{tag}" for tag in self.tags)))}
        self.recipes = tuple(self._recipe(row, where) for row in raw["recipes"])
        self.members = {self._refs[f"#{tag}"]: self._members(tag, raw["tags"][tag], where) for tag in self.tags}
        self.tag_of = self._invert_tags(where)
        self.recipes_for = self._group_recipes()
        self.base = tuple(not recipes_for for recipes_for in self.recipes_for[: self.size])
        self.order, self.depth = self._sort(where)
        self.goals = self._goals(raw["goals"], where)
        self._repeated = self._find_repeated()
        self._users = self._group_users()
        self._needed: dict[int, tuple[int, ...]] = {}
        self._distractors: dict[int, tuple[int, ...]] = {}
        self._distinct: dict[int, tuple[Sequence[int], Sequence[int]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return load_recipe_book, (self.path, self.digest)

    def needed(self, goal: int) -> tuple[int, ...]:
        """Return the recipes in the tree under a goal, in table order."""
        if goal not in self._needed:
            self._needed[goal] = tuple(sorted(self._under(goal)))
        return self._needed[goal]

    def distractors(self, goal: int) -> tuple[int, ...]:
        """Return the recipes, in table order, that use an ingredient of a needed recipe but are not needed."""
        if goal not in self._distractors:
            parts = {ref for number in self.needed(goal) for ref, _ in self.recipes[number].parts}
            users = set[int]().union(*[self._users[ref] for ref in parts])
            self._distractors[goal] = tuple(sorted(users - set(self.needed(goal))))
        return self._distractors[goal]

    def distinct(self, goal: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the needed recipes and the distractors without those that equal an earlier one."""
        if goal not in self._distinct:
            both = self.needed(goal), self.distractors(goal)
            needed, others = ([number for number in some if number not in self._repeated] for some in both)
            self._distinct[goal] = needed, others
        return self._distinct[goal]

    def match(self, item: int, given: Mapping[int, int]) -> Recipe | None:
        """Return the first recipe for `item` with exactly these ingredients (item -> amount); tags accept any mix."""
        for number in self.recipes_for[item]:
            if self._fits(self.recipes[number], given):
                return self.recipes[number]
        return None

    def _fits(self, recipe: Recipe, given: Mapping[int, int]) -> bool:
        parts = dict(recipe.parts)
        if parts == given:
            return True
        left = dict(given)
        for ref in [ref for ref in parts if ref < self.size]:
            left[ref] = left.get(ref, 0) - parts.pop(ref)
        by_tag: dict[int, int] = {}
        for ref, amount in left.items():
            if amount < 0:
                return False
            if amount:
                by_tag[self.tag_of[ref]] = by_tag.get(self.tag_of[ref], 0) + amount
        return by_tag == parts

    def _under(self, goal: int) -> set[int]:
        """Return the recipes in the tree under a goal."""
        seen, found, todo = {goal}, set[int](), [goal]
        while todo:
            for number in self.recipes_for[todo.pop()]:
                found.add(number)
                for part, _ in self.recipes[number].parts:
                    if part not in seen:
                        seen.add(part)
                        todo.append(part)
        return found

    def _find_repeated(self) -> frozenset[int]:
        """Find the recipes that equal an earlier one: the game has two files for sugar from sugar cane."""
        first = {recipe: number for number, recipe in reversed(list(enumerate(self.recipes)))}
        return frozenset(number for number, recipe in enumerate(self.recipes) if first[recipe] != number)

    def _group_users(self) -> tuple[frozenset[int], ...]:
        """Group the recipes by the items and tags that they use."""
        users: list[list[int]] = [[] for _ in self.recipes_for]
        for number, recipe in enumerate(self.recipes):
            for ref, _ in recipe.parts:
                users[ref].append(number)
        return tuple(map(frozenset, users))

    def _recipe(self, row: Sequence[Any], where: str) -> Recipe:
        for name, _ in row[3]:
            if name not in self._refs:
                _fail(where, f"recipe {row[0]!r} uses {name!r}, which is not a base item, a tag or made by a recipe")
        return Recipe(self._refs[row[1]], row[2], tuple((self._refs[name], count) for name, count in row[3]))

    def _members(self, tag: str, names: Sequence[str], where: str) -> tuple[int, ...]:
        if tag in self._refs:
            _fail(where, f"{tag!r} is both an item and a tag")
        if not names:
            _fail(where, f"tag {tag!r} has no member")
        if unknown := [name for name in names if name not in self._refs]:
            _fail(where, f"tag {tag!r} names {unknown[0]!r}, which is not an item")
        return tuple(self._refs[name] for name in names)

    def _invert_tags(self, where: str) -> tuple[int, ...]:
        tag_of = [-1] * self.size
        for tag, members in self.members.items():
            for ref in members:
                if tag_of[ref] >= 0:
                    _fail(where, f"item {self.items[ref]!r} has more than one tag, or a tag twice")
                tag_of[ref] = tag
        return tuple(tag_of)

    def _group_recipes(self) -> tuple[tuple[int, ...], ...]:
        recipes_for: list[list[int]] = [[] for _ in range(self.size + len(self.tags))]
        for number, recipe in enumerate(self.recipes):
            recipes_for[recipe.item].append(number)
            if self.tag_of[recipe.item] >= 0:
                recipes_for[self.tag_of[recipe.item]].append(number)
        return tuple(tuple(numbers) for numbers in recipes_for)

    def _sort(self, where: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        graph: dict[int, dict[int, None]] = {ref: {} for ref in range(len(self.recipes_for))}
        for recipe in self.recipes:
            graph[recipe.item].update(dict.fromkeys(ref for ref, _ in recipe.parts))
        graph.update({tag: dict.fromkeys(members) for tag, members in self.members.items()})
        try:
            sequence = list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            names = " <- ".join(self._name(ref) for ref in error.args[1])
            _fail(where, f"the recipes form a cycle: {names}")
        depth = self._depths(sequence)
        order = [0] * len(sequence)
        for position, ref in enumerate(sequence):
            order[ref] = position
        return tuple(order), tuple(depth)

    def _depths(self, sequence: Sequence[int]) -> list[int]:
        depth = [0] * len(sequence)
        for ref in sequence:
            if ref >= self.size:
                depth[ref] = min((depth[member] for member in self.members[ref]), default=0)
            elif self.recipes_for[ref]:
                depth[ref] = 1 + min(max(depth[p] for p, _ in self.recipes[n].parts) for n in self.recipes_for[ref])
        return depth

    def _goals(self, goals: Mapping[str, Sequence[str]], where: str) -> tuple[int, ...]:
        found: list[int] = []
        for depth, names in goals.items():
            for name in names:
                ref = self._refs.get(name, -1)
                if not 0 <= ref < self.size or self.base[ref]:
                    _fail(where, f"goal {name!r} is made by no recipe")
                if str(self.depth[ref]) != depth:
                    _fail(where, f"goal {name!r} is listed at depth {depth}, but its depth is {self.depth[ref]}")
                found.append(ref)
        if not found or len(set(found)) != len(found):
            _fail(where, "'goals' must name at least one item, and no item twice")
        return tuple(found)

    def _name(self, ref: int) -> str:
        return self.items[ref] if ref < self.size else "#" + self.tags[ref - self.size]


def load_recipe_book(path: str | None = None, digest: str | None = None) -> RecipeBook:
    """Load the recipe book from a file, or the built-in one. An unchanged file gives the same object again.

    Args:
        path: the recipe table; None for the built-in one.
        digest: the expected SHA-256 of the file, given when a book is unpickled.

    Raises:
        TaskTableError: the file cannot be read, is not a recipe table or has another digest.
    """
    if path is None:
        return _built_in()
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TaskTableError(f"cannot read the recipe table {str(path)!r}: {error.strerror or error}") from None
    if digest is not None and hashlib.sha256(data).hexdigest() != digest:
        raise TaskTableError(f"the recipe table {str(path)!r} has changed since the environment was created")
    return _parse(os.path.abspath(path), data)  # absolute, so that a pickle finds it from any folder


@lru_cache(maxsize=1)
def _built_in() -> RecipeBook:
    data = BUILT_IN.read_bytes()
    return RecipeBook(None, hashlib.sha256(data).hexdigest(), json.loads(data), "the built-in recipe table")


@lru_cache(maxsize=8)
def _parse(path: str, data: bytes) -> RecipeBook:
    where = f"recipe table {path!r}"
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        _fail(where, f"this is not JSON: {error}")
    _check(raw, where)
    return RecipeBook(path, hashlib.sha256(data).hexdigest(), raw, where)


def _check(raw: Any, where: str) -> None:
    if not isinstance(raw, dict):
        _fail(where, f"a recipe table is a JSON object, got {type(raw).__name__}")
    for key, kind in _KEYS.items():
        if key not in raw:
            _fail(where, f"the key {key!r} is missing (needed: {', '.join(_KEYS)})")
        if not isinstance(raw[key], kind) or isinstance(raw[key], bool):
            _fail(where, f"{key!r} must be of type {kind.__name__}, got {type(raw[key]).__name__}")
    ids = [_check_recipe(row, f"{where}, recipe {number}") for number, row in enumerate(raw["recipes"])]
    _check_distinct(ids, f"{where}, ids of the recipes")
    _check_names(raw["base_items"], f"{where}, 'base_items'")
    for key in ("tags", "goals"):
        for name, names in raw[key].items():
            _check_names(names, f"{where}, {key!r}, {name!r}")
    _check_names(list(raw["tags"]), f"{where}, 'tags'")
    if both := sorted({row[1] for row in raw["recipes"]} & set(raw["base_items"])):
        _fail(where, f"base item {both[0]!r} is also made by a recipe")


def _check_recipe(row: Any, where: str) -> str:
    if not isinstance(row, list) or len(row) != 5:
        _fail(where, f"a recipe is [id, item, count, ingredients, group], got {row!r:.80}")
    name: object = row[0]
    _, item, count, parts, group = row
    _check_names([item], where)
    _check_count(count, where)
    if not isinstance(name, str) or not isinstance(group, str | None):
        _fail(where, f"the id must be text, and the group text or null, got {name!r:.40} and {group!r:.40}")
    if not isinstance(parts, list) or not parts or not all(isinstance(p, list) and len(p) == 2 for p in parts):
        _fail(where, f"ingredients are a list of [name, count] that is not empty, got {parts!r:.80}")
    _check_names([p[0].removeprefix("#") if isinstance(p[0], str) else p[0] for p in parts], where)
    for _, amount in parts:
        _check_count(amount, where)
    return name


def _check_names(names: Any, where: str) -> None:
    if not isinstance(names, list):
        _fail(where, f"expected a list of names, got {type(names).__name__}")
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or "using" in name.split("_"):
            _fail(where, f"{name!r:.80} is not a name (lower case, digits and single underscores, no word 'using')")
    _check_distinct(names, where)


def _check_distinct(names: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            _fail(where, f"{name!r} occurs twice")
        seen.add(name)


def _check_count(count: Any, where: str) -> None:
    if type(count) is not int or not 1 <= count <= MAX_AMOUNT:
        _fail(where, f"a count is a whole number from 1 to {MAX_AMOUNT}, got {count!r:.40}")


def _fail(where: str, what: str) -> NoReturn:
    raise TaskTableError(f"{where}: {what}")

"""The difficulty of TextCraft's tasks, from the recipes that an episode shows."""

from __future__ import annotations

from agentgym_envs.task import Difficulty
from agentgym_envs.textcraft.names import ItemNames
from agentgym_envs.textcraft.recipes import RecipeBook

MAX_DISTRACTORS = 10
"""The default number of unneeded recipes that are shown."""


_FRAME = "Crafting commands:\n\nGoal: craft ."


def measure(recipe_book: RecipeBook, names: ItemNames, goal: int, turns: int) -> Difficulty:
    """Measure a task with the default number of distractors.

    A choice is an item that a needed recipe takes, or a needed recipe. The length is that of the first observation
    with distractors of average length, without the kinds of items.
    """
    needed, others = recipe_book.distinct(goal)
    parts = {ref for number in needed for ref, _ in recipe_book.recipes[number].parts}
    takes = sum(ref < recipe_book.size and recipe_book.base[ref] for ref in parts)
    shown = min(len(others), MAX_DISTRACTORS)
    lengths = [len(names.line(number)) + 1 for number in others]
    chars = len(_FRAME) + len(names.name_of(goal)) + sum(len(names.line(number)) + 1 for number in needed)
    chars += round(shown * sum(lengths) / max(len(lengths), 1))
    return Difficulty(turns, float(takes + len(needed)), shown, chars)

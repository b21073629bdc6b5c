"""Who of a team brought about what was needed: the individual part of the reward."""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_envs.textcraft.oracle import make_plan
from agentgym_envs.textcraft.recipes import RecipeBook


class IndividualReward:
    """The steps of the shortest plan from nothing, each paid once, to whom takes or crafts that item first.

    A step is an item that is taken or crafted; an item of the same kind will do as well, except for the goal.
    """

    def __init__(self, book: RecipeBook, goal: int) -> None:
        self._book, self._goal = book, goal
        plan = make_plan(book, goal, {})
        self._open = {self._step(ref) for ref in [*plan.gets, *(recipe.item for recipe, _ in plan.crafts)]}
        self._worth = 1 / len(self._open)

    def pay(self, made: Sequence[int | None]) -> list[float]:
        """Each agent's share for what it made this round, one item at most.

        Over an episode all shares sum to at most 1: what is had in another way than the plan's leaves its steps unpaid.

        Those who make the same in the same round are paid in equal parts.
        """
        steps = [None if ref is None else self._step(ref) for ref in made]
        paid = [self._worth / steps.count(step) if step in self._open else 0.0 for step in steps]
        self._open.difference_update(step for step in steps if step is not None)
        return paid

    def _step(self, ref: int) -> int:
        """What stands for an item and all of its kind."""
        kind = self._book.tag_of[ref]
        return ref if ref == self._goal or kind < 0 else kind

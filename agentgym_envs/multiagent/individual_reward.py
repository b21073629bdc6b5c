"""The individual part of a team's reward."""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_envs.textcraft.oracle import make_plan
from agentgym_envs.textcraft.recipes import RecipeBook


class IndividualReward:
    """Pays each step of the shortest plan once, to the agent that is first to take or craft that item.

    A step is an item to take or craft. An item of the same kind counts as well, except for the goal.
    """

    def __init__(self, book: RecipeBook, goal: int) -> None:
        self._book, self._goal = book, goal
        plan = make_plan(book, goal, {})
        self._open = {self._step(ref) for ref in [*plan.gets, *(recipe.item for recipe, _ in plan.crafts)]}
        self._worth = 1 / len(self._open)

    def pay(self, made: Sequence[int | None]) -> list[float]:
        """Each agent's share for the item that it took or crafted in this round, if any.

        The shares of an episode sum to at most 1, since steps that the team does not need remain unpaid. Agents that
        make the same item in the same round share its payment equally.
        """
        steps = [None if ref is None else self._step(ref) for ref in made]
        paid = [self._worth / steps.count(step) if step in self._open else 0.0 for step in steps]
        self._open.difference_update(step for step in steps if step is not None)
        return paid

    def _step(self, ref: int) -> int:
        """The step of an item: its kind if it has one, else the item."""
        kind = self._book.tag_of[ref]
        return ref if ref == self._goal or kind < 0 else kind

"""What an answer has to say, in a way that naming everything does not pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentgym_envs.webarena.evaluators.base import Finished, Verdict
from agentgym_envs.webarena.evaluators.strings import OR, includes, shown
from agentgym_envs.webarena.evaluators.values import clean, quantities_in, read_quantity

NOT_ACHIEVABLE = "N/A"
"""The answer to a task that cannot be done, as WebArena has it."""


@dataclass(frozen=True, slots=True)
class Says:
    """The answer includes each of `wanted`, and none of `others`.

    Each is a text, in which " |OR| " stands between alternatives, or a number. Where one number is wanted, the answer
    may hold no other of its kind, so that a list of guesses is none.
    """

    wanted: Sequence[str]
    others: Sequence[str] = ()

    async def __call__(self, episode: Finished) -> Verdict:
        """See `Evaluator`."""
        named = self._named(clean(episode.answer))
        for reference in self.wanted:
            if not named & {*reference.split(OR)}:
                return Verdict(0.0, f"the answer {shown(episode.answer)} does not include {shown(reference)}")
        if wrong := sorted(named - {name for reference in self.wanted for name in reference.split(OR)}):
            return Verdict(0.0, f"the answer {shown(episode.answer)} also includes {shown(wrong[0])}")
        return self._one_number(episode.answer)

    def _named(self, left: str) -> set[str]:
        """What of all that counts is in an answer, where a part of a longer name does not count as a name."""
        names = {name for reference in (*self.wanted, *self.others) for name in reference.split(OR)}
        found = set()
        for name in sorted(names, key=lambda name: (-len(name), name)):
            if includes(left, name):
                found.add(name)
                left = left.replace(clean(name), " ")
        return found

    def _one_number(self, answer: str) -> Verdict:
        """Another number of the same kind beside the only one that is wanted makes a guess of it."""
        quantity = read_quantity(clean(self.wanted[0])) if len(self.wanted) == 1 else None
        if quantity is not None:
            for other in quantities_in(clean(answer)):
                if other.dimension == quantity.dimension and not other.same(quantity):
                    return Verdict(0.0, f"the answer {shown(answer)} names other numbers than {self.wanted[0]}")
        return Verdict(1.0)


def says(*wanted: object, others: Sequence[object] = ()) -> Says:
    """An answer that includes all of these, as texts, and none of the others."""
    return Says(tuple(map(str, wanted)), tuple(map(str, others)))


@dataclass(frozen=True, slots=True)
class NotAchievable:
    """The answer is "N/A", perhaps with a reason behind it."""

    async def __call__(self, episode: Finished) -> Verdict:
        """See `Evaluator`."""
        if re.match(r"n/a(?![a-z0-9])", clean(episode.answer)):
            return Verdict(1.0)
        return Verdict(0.0, f"the task cannot be done, and the answer {shown(episode.answer)} is not N/A")

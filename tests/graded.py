"""TextCraft for runs of an untrained model."""

from __future__ import annotations

from typing import Any

from agentgym_envs.core import Transition
from agentgym_envs.errors import InvalidAction
from agentgym_envs.textcraft.env import TextCraftEnv

KWARGS: dict[str, Any] = {"instructions": "", "max_distractors": 0, "worlds": "fictional"}


class GradedCraft(TextCraftEnv):
    """TextCraft that pays up to 3/14 a turn for what an answer spells: an untrained model gets all kinds of scores.

    At most four turns, or the score would exceed 1.
    """

    def _act(self, command: str) -> Transition:
        reward = sum(command.encode()) % 7 / 28
        try:
            return Transition(super()._act(command).observation, reward)
        except InvalidAction as error:
            return Transition(str(error), reward)

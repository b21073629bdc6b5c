"""TextCraft for training runs of an untrained model."""

from __future__ import annotations

from typing import Any

from agentgym_envs.core import Transition
from agentgym_envs.errors import InvalidAction
from agentgym_envs.textcraft.env import TextCraftEnv

KWARGS: dict[str, Any] = {"instructions": "", "max_distractors": 0, "worlds": "fictional"}


class GradedCraft(TextCraftEnv):
    """TextCraft that pays up to 3/14 per turn for the bytes of the answer, so that scores of untrained models vary.

    Use at most four turns, so that the score stays within 1.
    """

    def _act(self, command: str) -> Transition:
        reward = sum(command.encode()) % 7 / 28
        try:
            return Transition(super()._act(command).observation, reward)
        except InvalidAction as error:
            return Transition(str(error), reward)

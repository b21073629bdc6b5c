"""Environments that runs of verl are tested with; an id "module:Id" has every process of Ray import them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from agentgym_envs.core import Transition
from agentgym_envs.errors import EnvError, InvalidAction
from agentgym_envs.registration import register
from agentgym_envs.task import Task
from agentgym_envs.textcraft.env import TextCraftEnv

KWARGS: dict[str, Any] = {"instructions": "", "max_distractors": 0, "worlds": "fictional"}
GRADED = f"{__name__}:Test/GradedCraft-v0"
FLAKY = f"{__name__}:Test/FlakyCraft-v0"


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


class FlakyCraft(GradedCraft):
    """Fails in its second turn, when it has paid for the first: in every `every`-th episode of a process."""

    _episodes = itertools.count(1)

    def __init__(self, every: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._every, self._fails = every, False

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._fails = next(self._episodes) % self._every == 0
        return super()._begin(task, rng)

    def _act(self, command: str) -> Transition:
        if self._fails and self._turn > 1:
            raise EnvError("the crafting table burns")
        return super()._act(command)


register("Test/GradedCraft-v0", f"{__name__}:GradedCraft")
register("Test/FlakyCraft-v0", f"{__name__}:FlakyCraft")

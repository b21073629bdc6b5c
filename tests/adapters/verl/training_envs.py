"""Environments for tests with verl; every process of Ray imports them by the id "module:Id"."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from agentgym_envs.core import Transition
from agentgym_envs.errors import EnvError
from agentgym_envs.registration import register
from agentgym_envs.task import Task
from tests.graded import GradedCraft

GRADED = f"{__name__}:Test/GradedCraft-v0"
FLAKY = f"{__name__}:Test/FlakyCraft-v0"


class FlakyCraft(GradedCraft):
    """Fails in its second turn, after a reward for the first, in every `every`-th episode of a process."""

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


register("Test/GradedCraft-v0", f"{GradedCraft.__module__}:GradedCraft")
register("Test/FlakyCraft-v0", f"{__name__}:FlakyCraft")

"""Environments for tests with verl; every process of Ray imports them by the id "module:Id"."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from agentgym_envs.core import Transition
from agentgym_envs.errors import EnvError
from agentgym_envs.registration import register
from agentgym_envs.task import Task
from tests.graded import GradedCraft

GRADED = f"{__name__}:Test/GradedCraft-v0"
FLAKY = f"{__name__}:Test/FlakyCraft-v0"
LATE = f"{__name__}:Test/LateCraft-v0"
NOT_BEFORE = re.compile(r"not before version (\d+)")
"""In a prompt: the first version of the weights with which the test's server finishes an answer to it."""


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


class LateCraft(GradedCraft):
    """Asks the server not to finish an answer before the weights have this version."""

    def __init__(self, version: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._version = version

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return f"{super()._begin(task, rng)}\nnot before version {self._version}"


register("Test/GradedCraft-v0", f"{GradedCraft.__module__}:GradedCraft")
register("Test/FlakyCraft-v0", f"{__name__}:FlakyCraft")
register("Test/LateCraft-v0", f"{__name__}:LateCraft")

"""A toy scenario: count up to a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.errors import EnvError, InvalidAction
from agentgym_envs.task import Task, TaskTable

TASKS = [
    Task("count/2", "train", "small", "count to 2", {"target": 2}),
    Task("count/3", "train", "small", "count to 3", {"target": 3}),
    Task("count/9", "train", "large", "count to 9", {"target": 9}),
    Task("count/4", "validation", "small", "count to 4", {"target": 4}),
    Task("count/10", "test", "large", "count to 10", {"target": 10}),
    Task("count/0", "test", "broken", "the machine fails at reset", {"target": 0}),
]


class CountEnv(TextEnv):
    """`up` counts, for an equal share of the reward. `crash`, `give up` and `cheat` end the episode in other ways."""

    tasks = TaskTable("count", 1, TASKS)
    rules = "Count up with the command: up"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.count = self.target = self.closed = 0

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self.count, self.target = 0, task.data["target"]
        if not self.target:
            raise EnvError("no power")
        self.lucky = int(rng.integers(10**9))
        return f"Count to {self.target}. Lucky number: {self.lucky}"

    def _act(self, command: str) -> Transition:
        if command == "crash":
            raise EnvError("the abacus broke")
        if command == "give up":
            return Transition("A pity.", 0.0, True)
        if command == "cheat":
            return Transition("Fine, but no points.", 0.0, True, success=True)
        if command != "up":
            raise InvalidAction(f"Unknown command: {command}")
        self.count += 1
        return Transition(f"{self.count}", 1 / self.target, self.count == self.target, info={"count": self.count})

    def _state(self) -> str:
        return f"{self.count}/{self.target}"

    def _plan(self) -> Sequence[str]:
        return ["up"] * (self.target - self.count)

    def _details(self) -> dict[str, Any]:
        return {"target": self.target}

    def _close(self) -> None:
        self.closed += 1

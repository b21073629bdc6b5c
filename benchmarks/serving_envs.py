"""An environment that does nothing, to measure what a step over HTTP costs by itself."""

from __future__ import annotations

import numpy as np

import agentgym_envs
from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.task import Task, TaskTable

EMPTY_ID = "Benchmark/Empty-v0"


class EmptyEnv(TextEnv):
    """Says what it hears, like OpenEnv's echo."""

    tasks = TaskTable("empty", 1, [Task("empty/1", "train", "empty", "Say anything.", {})])
    rules = "Say anything."

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        return "begun"

    def _act(self, command: str) -> Transition:
        return Transition(command)

    def _state(self) -> str:
        return ""


agentgym_envs.register(EMPTY_ID, "benchmarks.serving_envs:EmptyEnv")

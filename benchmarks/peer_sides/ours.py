"""AgentGym Envs on the task: `python -m benchmarks.peer_sides.ours SECONDS`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import agentgym_envs
from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.task import Task, TaskTable
from agentgym_envs.vector import TextVectorEnv
from benchmarks.peer_sides import task as trivial
from benchmarks.peer_sides.task import EPISODE, TOGETHER, print_figures, seconds, timed
from benchmarks.soak import serving

ENV_ID = "Benchmark/Task-v0"


class TaskEnv(TextEnv):
    """The task, with all that every environment of the suite has: grammar, infos, state keys, failures as data."""

    tasks = TaskTable("trivial", 1, [Task("trivial/0", "train", "only", "go on", {})])
    rules = "Say anything."

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._trivial = trivial.Task()
        return self._trivial.begin()

    def _act(self, command: str) -> Transition:
        text, over = self._trivial.act(command)
        return Transition(text, 0.0, over)

    def _state(self) -> str:
        return str(self._trivial.turn)


agentgym_envs.register(ENV_ID, "benchmarks.peer_sides.ours:TaskEnv")


def one(env: gym.Env[str, str]) -> int:
    env.reset(seed=0)
    for _ in range(EPISODE):
        env.step("on")
    return EPISODE


def together(envs: TextVectorEnv) -> int:
    envs.reset(seed=0)
    actions = ["on"] * TOGETHER
    for _ in range(EPISODE):
        envs.step(actions)
    return EPISODE * TOGETHER


def main() -> None:
    alone = gym.make(ENV_ID)
    figures = {"one": timed(lambda: one(alone), seconds())}
    vectors: dict[str, dict[str, Any]] = {"inline": {}, "processes": {"backend": "process", "num_workers": 2}}
    for name, options in vectors.items():
        envs = agentgym_envs.make_vec(ENV_ID, TOGETHER, **{"backend": "inline", **options})
        figures[f"make_vec, {name}"] = timed(lambda envs=envs: together(envs), seconds())  # type: ignore[misc]
        envs.close()
    with serving([f"benchmarks.peer_sides.ours:{ENV_ID}"], ()) as (_, url):
        remote = gym.make(ENV_ID, base_url=url)
        figures["served, one"] = timed(lambda: one(remote), seconds())
        remote.close()
        envs = agentgym_envs.make_vec(ENV_ID, TOGETHER, base_url=url)
        figures["served, make_vec"] = timed(lambda: together(envs), seconds())
        envs.close()
    print_figures("agentgym-envs", figures)


if __name__ == "__main__":
    main()

"""Gymnasium's own vector environments: `python -m benchmarks.peer_sides.gymnasium_side SECONDS`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.spaces import Text
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from benchmarks.peer_sides.task import EPISODE, TOGETHER, Task, print_figures, seconds, timed

LETTERS = "".join(map(chr, range(32, 127)))


class TaskEnv(gym.Env[str, str]):
    def __init__(self) -> None:
        self.observation_space = self.action_space = Text(4096, charset=LETTERS)
        self.task = Task()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return self.task.begin(), {"turn": 0}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        text, over = self.task.act(action)
        return text, 0.0, over, False, {"turn": self.task.turn}


def one(env: gym.Env[str, str]) -> int:
    env.reset(seed=0)
    for _ in range(EPISODE):
        env.step("on")
    return EPISODE


def together(envs: VectorEnv) -> int:
    envs.reset(seed=0)
    for _ in range(EPISODE):
        envs.step(("on",) * TOGETHER)
    return EPISODE * TOGETHER


def main() -> None:
    alone, figures = TaskEnv(), {}
    figures["one"] = timed(lambda: one(alone), seconds())
    for name, make in (("SyncVectorEnv", SyncVectorEnv), ("AsyncVectorEnv", _async)):
        envs = make([TaskEnv] * TOGETHER)
        figures[name] = timed(lambda envs=envs: together(envs), seconds())  # type: ignore[misc]
        envs.close()
    print_figures("gymnasium", figures)


def _async(makers: Any) -> VectorEnv:
    """With its default, `shared_memory=True`, every text would be the same for ever."""
    return AsyncVectorEnv(makers, shared_memory=False)


if __name__ == "__main__":
    main()

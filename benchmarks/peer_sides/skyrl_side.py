"""SkyRL Gym: `python -m benchmarks.peer_sides.skyrl_side SECONDS`. It has no vector environment."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.peer_sides.task import EPISODE, Task, print_figures, seconds, timed

BEGIN = [{"role": "user", "content": "Go on."}]


def make_env() -> Any:
    base: Any = importlib.import_module("skyrl_gym.envs.base_text_env")

    class TaskEnv(base.BaseTextEnv):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.task = Task()

        def init(self, prompt: Any) -> Any:
            self.turns = 0
            return [*prompt, {"role": "user", "content": self.task.begin()}], {}

        def step(self, action: str) -> Any:
            self.turns += 1
            text, over = self.task.act(action)
            told_back = [{"role": "user", "content": text}]
            return base.BaseTextEnvStepOutput(observations=told_back, reward=0.0, done=over, metadata={})

    return TaskEnv()


def main() -> None:
    env = make_env()

    def episode() -> int:
        env.init(BEGIN)
        for _ in range(EPISODE):
            env.step("on")
        return EPISODE

    print_figures("skyrl-gym", {"one": timed(episode, seconds())})


if __name__ == "__main__":
    main()

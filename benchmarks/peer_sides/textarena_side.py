"""TextArena: `python -m benchmarks.peer_sides.textarena_side SECONDS`. It has no vector environment.

With the default wrapper of `textarena.make` for language models, which returns the whole game so far.
"""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.peer_sides.task import EPISODE, Task, print_figures, seconds, timed


def make_env() -> Any:
    textarena: Any = importlib.import_module("textarena")

    class TaskEnv(textarena.Env):  # type: ignore[misc]
        def __init__(self) -> None:
            self.task = Task()

        def reset(self, num_players: int, seed: int | None = None) -> None:
            self.state = textarena.SinglePlayerState(num_players=num_players, seed=seed)
            self.state.reset(game_state={}, player_prompt_function=lambda **_: self.task.begin())

        def step(self, action: str) -> Any:
            text, over = self.task.act(action)
            self.state.add_observation(message=text, observation_type=textarena.ObservationType.GAME_MESSAGE)
            if over:
                self.state.set_outcome(reward=0.0, reason="over")
            return self.state.step()

    return textarena.wrappers.LLMObservationWrapper(env=TaskEnv())


def main() -> None:
    env = make_env()

    def episode() -> int:
        env.reset(num_players=1, seed=0)
        for _ in range(EPISODE):
            env.get_observation()
            env.step(action="on")
        env.close()
        return EPISODE

    print_figures("textarena", {"one": timed(episode, seconds())})


if __name__ == "__main__":
    main()

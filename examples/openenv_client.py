"""Play an environment of this suite through OpenEnv's own client.

    agentgym serve textcraft --dialect openenv
    python examples/openenv_client.py http://127.0.0.1:8000 [TASK]     then type actions, one per line

`TextEnvTool` has the interface of TRL's `GRPOTrainer(environment_factory=TextEnvTool)`.
"""

import sys
from typing import Any

from openenv.core import GenericEnvClient


class TextEnvTool:
    """One tool, `act`, over an OpenEnv server. The columns `task` and `seed` of a dataset choose the episode."""

    base_url = "http://127.0.0.1:8000"

    def __init__(self) -> None:
        self.client = GenericEnvClient(base_url=self.base_url).sync()
        self.reward, self.done = 0.0, False

    def reset(self, task: str | None = None, seed: int | None = None, **columns: Any) -> str:
        """Begin an episode. The observation is added to the prompt."""
        result = self.client.reset(task=task, seed=seed)
        self.reward, self.done = 0.0, result.done
        return str(result.observation["text"])

    def act(self, action: str) -> str:
        """Act in the environment.

        Args:
            action: What to do, for example: inventory

        Returns:
            The observation.
        """
        if self.done:
            return "The episode is over."
        result = self.client.step({"message": action})
        self.reward += result.reward or 0.0  # rewards sum to the score
        self.done = result.done
        return str(result.observation["text"])


def main() -> None:
    """Play with actions from the terminal."""
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    TextEnvTool.base_url, *task = sys.argv[1:]
    env = TextEnvTool()
    print(env.reset(*task))
    while not env.done and (line := sys.stdin.readline()):
        print(env.act(line.rstrip("\n")))
    print(f"reward {env.reward}")
    env.client.close()


if __name__ == "__main__":
    main()

"""Any environment of this suite as an environment of SkyRL (written for skyrl-gym 0.4.0).

    from skyrl_gym.envs import register
    register(id="agentgym", entry_point="examples.skyrl_env:AgentGymEnv")

A row of SkyRL's dataset names the episode. `dataset_row` makes one. Equal rows start equal episodes, so the samples of
a row can be compared.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.core import text_env
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.trajectory import prompt_messages


def dataset_row(env_id: str, task: str, seed: int = 0, *, max_turns: int = 30, **env_kwargs: Any) -> dict[str, Any]:
    """Make a row of a dataset. SkyRL renders `prompt`, which `init` replaces with the first observation."""
    episode = {"env": env_id, "task": task, "seed": seed, "env_kwargs": env_kwargs}
    prompt = [{"role": "user", "content": task}]
    return {"prompt": prompt, "env_class": "agentgym", "max_turns": max_turns, "extra_info": episode}


class AgentGymEnv(BaseTextEnv):
    """One episode. The rewards of its turns sum to the metric `score`."""

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        """`extras` are the columns of the row without its prompt."""
        super().__init__()
        try:
            self.episode = dict((extras or {})["extra_info"])
            env_id, self.task = self.episode["env"], self.episode["task"]
        except (KeyError, TypeError):
            raise UsageError(
                f"a row names its episode as extra_info={{'env': id, 'task': id}}, got {extras!r:.200}; "
                "dataset_row() makes one"
            ) from None
        self.max_turns = int((extras or {}).get("max_turns", 30))
        self.env = gym.make(env_id, **(self.episode.get("env_kwargs") or {}))
        self.info: dict[str, Any] = {}

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Begin the episode, and return the conversation to answer."""
        observation, self.info = self.env.reset(seed=self.episode.get("seed", 0), options={"task": self.task})
        self._check()
        return list(prompt_messages(text_env(self.env).instructions, observation)), dict(self.info)

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Take the model's message."""
        self.turns += 1
        observation, reward, terminated, truncated, self.info = self.env.step(action)
        self._check()
        done = terminated or truncated or self.turns >= self.max_turns
        answer = [] if done else [{"role": "user", "content": observation}]
        return BaseTextEnvStepOutput(observations=answer, reward=reward, done=done, metadata=dict(self.info))

    def get_metrics(self) -> dict[str, Any]:
        """The metrics of the episode. SkyRL logs their means."""
        return {"success": self.info["success"], "score": self.info["score"], "turns": self.turns}

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _check(self) -> None:
        """Raise EnvError after a failure of the environment: the caller must play the episode again."""
        if self.info["stop_reason"] == "env_error":
            raise EnvError(self.info["error"])

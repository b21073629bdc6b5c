"""Environments as tools of TRL's own `GRPOTrainer`, which trains on images this way only.

    trainer = GRPOTrainer(
        "Qwen/Qwen3-VL-2B-Instruct",
        environment_factory=make_tool_environment("AgentGym/WebArenaPixels-v0", max_turns=15),
        train_dataset=make_dataset(gym.make("AgentGym/WebArenaPixels-v0").unwrapped, 1000),
        args=GRPOConfig(max_tool_calling_iterations=15, max_completion_length=16384, ...),
    )

The chat template of the model must support tools. Every image stays in the context, and advantages and masks are TRL's.
For observations of text, `AgentTrainer` is faster and has the suite's algorithms, schedules and metrics.

Interface: `environment_factory` of TRL 1.16 (https://huggingface.co/docs/trl/main/en/openenv).
"""

from __future__ import annotations

import io
from typing import Any, ClassVar

import gymnasium as gym

from agentgym_envs.core import StopReason, TextEnv
from agentgym_envs.errors import UsageError
from agentgym_envs.image_observations import text_of

Content = str | list[dict[str, Any]]
"""A text, or parts of a message: an image and a text."""
OVER = "The episode is over."


class ToolEnvironment:
    """An environment with the tool `act`. TRL makes one for each episode of a batch and reuses them.

    `make_tool_environment` makes the class of an environment.
    """

    _make: ClassVar[staticmethod[[], TextEnv]]
    _max_turns: ClassVar[int]

    def __init__(self) -> None:
        self._env = self._make()
        self._info: dict[str, Any] = {"stop_reason": StopReason.CLOSED, "score": 0.0}

    def reset(self, task: str | None = None, seed: int | None = None, **columns: Any) -> Content:
        """Begin the episode of a row of `make_dataset`. Returns what TRL adds to the last message of the prompt.

        Args:
            task: the id of the task; None draws one.
            seed: the seed of the episode.
            **columns: the other columns of the row, unused.
        """
        observation, self._info = self._env.reset(seed=seed, options=None if task is None else {"task": task})
        return _content(f"\n\n{self._env.instructions}\n\n{text_of(observation)}", self._info)

    def act(self, action: str) -> Content:
        """Take one action in the environment.

        Args:
            action: The action, one of those in the instructions.

        Returns:
            What is seen then.
        """
        if self._is_over():
            return OVER
        observation, *_, self._info = self._env.step(action)
        text = text_of(observation)
        return _content(f"{text}\n\n{OVER}" if self._is_over() else text, self._info)

    def get_reward(self) -> float | None:
        """The sum of the episode's rewards; None after an infrastructure error, so that TRL leaves the episode out."""
        return None if self._info["stop_reason"] == StopReason.ENV_ERROR else float(self._info["score"])

    def _is_over(self) -> bool:
        return self._info["stop_reason"] is not None or self._info["turn"] >= self._max_turns


def make_tool_environment(env_id: str, *, max_turns: int = 30, **env_kwargs: Any) -> type[ToolEnvironment]:
    """The `environment_factory` of an environment: a class that TRL makes instances of.

    Args:
        env_id: a registered id, such as "AgentGym/WebArenaPixels-v0".
        max_turns: actions of an episode. TRL's `max_tool_calling_iterations` should not be smaller.
        **env_kwargs: arguments of the environment.

    Raises:
        UsageError: `max_turns` is below 1, or a grammar is given: the tool call is the grammar.
    """
    if max_turns < 1:
        raise UsageError(f"max_turns must be at least 1, got {max_turns}")
    if "grammar" in env_kwargs:
        raise UsageError(f"an action is an argument of the tool, so grammar={env_kwargs['grammar']!r} has no effect")

    def make() -> TextEnv:
        env: TextEnv = gym.make(env_id, grammar="bare", **env_kwargs).unwrapped  # type: ignore[assignment]
        return env

    name = env_id.rpartition("/")[2].partition("-v")[0]
    return type(name, (ToolEnvironment,), {"_make": staticmethod(make), "_max_turns": max_turns})


def _content(text: str, info: dict[str, Any]) -> Content:
    """A text, and the screenshot of an info before it."""
    if (encoded := info.get("screenshot")) is None:
        return text
    from PIL import Image

    return [{"type": "image", "image": Image.open(io.BytesIO(encoded)).convert("RGB")}, {"type": "text", "text": text}]

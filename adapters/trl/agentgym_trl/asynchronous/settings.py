"""`AsyncSettings`, and `VirtualTimes` for runs on a virtual clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agentgym_envs.errors import UsageError

_ENV, _TRAIN = 0, 1


@dataclass(frozen=True, slots=True)
class VirtualTimes:
    """Seconds that the parts of a run take on a virtual clock. All follow from the seed.

    A step of the environment takes log-normal time with mean `env` and parameter `env_sigma`. A batch of answers takes
    `batch` seconds, `token` seconds for every token of its longest answer, and `row` seconds for every token of all
    answers. The training between two rollouts takes log-normal time with mean `train` and parameter `train_sigma`.
    """

    seed: int = 0
    env: float = 0.0
    env_sigma: float = 1.0
    batch: float = 0.0
    token: float = 0.0
    row: float = 0.0
    train: float = 0.0
    train_sigma: float = 0.0

    def env_seconds(self, episode: Sequence[int], turn: int) -> float:
        """The time of a turn's step; `episode` are the numbers that identify the episode."""
        return self._draw(self.env, self.env_sigma, _ENV, *episode, turn)

    def decode_seconds(self, lengths: Sequence[int]) -> float:
        """The time of a batch with answers of these lengths."""
        return self.batch + self.token * max(lengths) + self.row * sum(lengths)

    def train_seconds(self, rollout: int) -> float:
        """The time of the training after a rollout."""
        return self._draw(self.train, self.train_sigma, _TRAIN, rollout)

    def _draw(self, mean: float, sigma: float, *key: int) -> float:
        if not mean:
            return 0.0
        noise = float(np.random.default_rng([self.seed, *key]).standard_normal()) if sigma else 0.0
        return mean * float(np.exp(sigma * noise - sigma * sigma / 2))


@dataclass(frozen=True, slots=True)
class AsyncSettings:
    """Settings of asynchronous training.

    max_staleness: the largest difference between the version of the policy that is trained on a token and the version
        that sampled it. A version lasts from one rollout to the next.
    oversample: further groups in flight. A batch then takes the first complete groups; groups that miss the bound are
        played again from the start.
    times: play on a virtual clock, with these times.
    """

    max_staleness: int = 1
    oversample: int = 0
    times: VirtualTimes | None = None

    def __post_init__(self) -> None:
        for name in ("max_staleness", "oversample"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must be at least 0, got {getattr(self, name)}")

"""Simulated answer times of a model, recorded once and shared by all sides of a comparison.

A tail is named as "log-normal 1.0" (sigma) or "Pareto 1.5" (alpha); the mean is one second whatever the tail, and
nothing takes longer than `LONGEST`: a limit of tokens cuts an answer, in AgentGym-RL as elsewhere. The number after the
name says how heavy the tail is: a larger sigma and a smaller alpha are heavier.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LEAST_TURNS, MOST_TURNS = 4, 30
LONGEST = 5.0
"""Seconds at which an answer is truncated: five times the mean before truncation."""
TAILS = (
    "log-normal 0.25",
    "log-normal 0.5",
    "log-normal 1.0",
    "log-normal 1.5",
    "Pareto 3.0",
    "Pareto 2.0",
    "Pareto 1.5",
)


class Recording(NamedTuple):
    """Seconds that the model and the environment take, for each turn of each episode."""

    answers: list[list[float]]
    env: list[list[float]]

    @property
    def longest(self) -> float:
        """Seconds of the episode that takes longest: nothing is sooner, if all begin at once."""
        return max(sum(one) + sum(other) for one, other in zip(self.answers, self.env, strict=True))

    @property
    def total(self) -> float:
        """Seconds of all answers together."""
        return sum(map(sum, self.answers))

    def scaled(self, factor: float) -> Recording:
        """The same in other seconds."""
        return Recording(*([[factor * value for value in row] for row in rows] for rows in self))


def draw(tail: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Latencies of mean 1 before truncation. Raises ValueError for an unknown tail or one without a mean."""
    name, _, number = tail.rpartition(" ")
    weight = float(number)
    if name == "log-normal":
        return np.minimum(LONGEST, rng.lognormal(-weight * weight / 2, weight, count))
    if name == "Pareto" and weight > 1:
        return np.minimum(LONGEST, (1 + rng.pareto(weight, count)) * (weight - 1) / weight)
    raise ValueError(f"a tail is 'log-normal SIGMA' or 'Pareto ALPHA' with ALPHA above 1, not {tail!r}")


def record(episodes: int, tail: str, seed: int, env_seconds: float = 0.0) -> Recording:
    """Draw the turns of each episode (4 to 30, evenly), and how long each answer and each step takes.

    Steps of the environment have mean `env_seconds` and the tail "log-normal 1.0".
    """
    rng = np.random.default_rng([seed, episodes])
    turns = rng.integers(LEAST_TURNS, MOST_TURNS, episodes, endpoint=True)
    answers = [draw(tail, rng, count).tolist() for count in turns]
    steps = [(env_seconds * draw("log-normal 1.0", rng, count)).tolist() for count in turns]
    return Recording(answers, steps)


def read(path: Path) -> Recording:
    """Latencies of a real model from JSON: a list of seconds per episode. Raises ValueError for another format."""
    rows: Any = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(rows, list) or not rows or not all(_is_row(row) for row in rows):
        raise ValueError(f"{path} must hold a list of lists of seconds, one for each episode and none of them empty")
    return Recording([[float(value) for value in row] for row in rows], [[0.0] * len(row) for row in rows])


def _is_row(row: Any) -> bool:
    return isinstance(row, Sequence) and len(row) > 0 and all(isinstance(v, int | float) and v >= 0 for v in row)

"""The table of task samplers: the values of `--sampler`, their help, and the table in docs/algorithms.md.

To add one, write a class with `weights` and add a row to `SAMPLERS`. `TaskSampler` does the rest: it estimates the
success rates, draws, and saves its state. This module imports neither torch nor TRL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.errors import UsageError

Rates = NDArray[np.float64]
_RANGE = re.compile(r"(\d*\.?\d+)-(\d*\.?\d+)")


class TaskWeights(Protocol):
    """The part in which samplers differ."""

    def weights(self, rates: Rates) -> Rates:
        """The weight (>= 0) of each task in a draw, from the estimated success rates of the tasks, (N,)."""

    def pools(self, rates: Rates) -> dict[str, float]:
        """Sizes of pools to log, by name."""


@dataclass(frozen=True, slots=True)
class SuccessRange:
    """Draws tasks whose success rate lies in [low, high].

    Source: the difficulty pools of prime-rl (Prime Intellect).
    """

    low: float
    high: float

    def weights(self, rates: Rates) -> Rates:
        """1 for a task in the range, 0 for a retired one."""
        return ((self.low <= rates) & (rates <= self.high)).astype(np.float64)

    def pools(self, rates: Rates) -> dict[str, float]:
        """The number of tasks that are too hard, in the range, and too easy."""
        hard, easy = int((rates < self.low).sum()), int((rates > self.high).sum())
        return {"too_hard": float(hard), "in_range": float(len(rates) - hard - easy), "too_easy": float(easy)}


@dataclass(frozen=True, slots=True)
class Learnability:
    """Draws tasks in proportion to p(1 - p), the variance of a success.

    Sources: arXiv 2408.15099 (sampling for learnability), 2504.05520 (its use with language models).
    """

    def weights(self, rates: Rates) -> Rates:
        """The variance of a success at each rate."""
        return rates * (1.0 - rates)

    def pools(self, rates: Rates) -> dict[str, float]:
        """None: every task may be drawn."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """One value of `--sampler`.

    form: the spelling on the command line.
    draws: the tasks that it draws: a cell of the table in the documentation.
    parse: makes the weights from the text after the colon ("" without one); raises ValueError if it is malformed.
    """

    form: str
    draws: str
    parse: Callable[[str], TaskWeights | None]


def _no_argument(weights: TaskWeights | None) -> Callable[[str], TaskWeights | None]:
    def parse(argument: str) -> TaskWeights | None:
        if argument:
            raise ValueError("it takes no argument")
        return weights

    return parse


def _success_range(argument: str) -> TaskWeights:
    found = _RANGE.fullmatch(argument)
    if found is None:
        raise ValueError("it needs two success rates, as in success:0.2-0.8")
    low, high = float(found[1]), float(found[2])
    if not 0 <= low < high <= 1:
        raise ValueError("the rates must rise and lie in [0, 1]")
    return SuccessRange(low, high)


SAMPLERS: dict[str, Sampler] = {
    "uniform": Sampler(form="uniform", draws="every task once per epoch, in random order", parse=_no_argument(None)),
    "success": Sampler(
        form="success:LOW-HIGH",
        draws="uniformly from the tasks with a success rate in the range",
        parse=_success_range,
    ),
    "learnability": Sampler(
        form="learnability",
        draws="in proportion to p(1 - p), with p the success rate",
        parse=_no_argument(Learnability()),
    ),
}


def sampler_forms() -> str:
    """The spellings of all samplers, for help and errors."""
    return ", ".join(sampler.form for sampler in SAMPLERS.values())


def parse_sampler(text: str) -> TaskWeights | None:
    """Parse the value of `--sampler`; None for `uniform`. Raises UsageError."""
    name, colon, argument = str(text).partition(":")
    if name not in SAMPLERS:
        raise UsageError(f"there is no sampler {text!r}; choose from {sampler_forms()}")
    try:
        if colon and not argument:
            raise ValueError("nothing follows the colon")
        return SAMPLERS[name].parse(argument)
    except ValueError as error:
        raise UsageError(f"--sampler {text} cannot be read: {error}; write {SAMPLERS[name].form}") from None


def sampler_table() -> str:
    """The table in the documentation."""
    rows = [f"| `{sampler.form}` | {sampler.draws} |" for sampler in SAMPLERS.values()]
    return "\n".join(["| `--sampler` | draws |", "|---|---|", *rows, ""])

"""The outcome of a check, before the policy gives it a severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.evaluate.estimates import Estimate, TaskValues, estimates

ORACLE_TOLERANCE = 0.1
"""The oracle's mean score must reach the maximum up to this, the largest tolerance that OpenEnv's policy allows.

A score may fall with the number of turns, as in BabyAI."""
FLOOR_MARGIN = 0.1
"""The smallest gap between the maximum and a policy that does not solve the task; OpenEnv's lower bound."""
SPREAD_TOLERANCE = 0.2
"""The largest standard deviation of the score of equal plans; OpenEnv's upper bound."""
EPISODE_SECONDS = 3600.0
"""The longest allowed episode; OpenEnv's upper bound."""
_SHOWN = 5


class RefusedSubject(UsageError):
    """The environment cannot be made with its arguments, or its actions or observations are no texts."""


class NotApplicable(Exception):
    """The check cannot be measured for this environment. The message is the reason."""


class BudgetUsed(BaseException):
    """The time is used up. It is no `Exception`, so that the code of an environment does not handle it."""


@dataclass(frozen=True)
class Finding:
    """The violations that a check found, and what it measured (JSON). No violation is a pass."""

    problems: Sequence[str] = ()
    measured: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> list[str]:
        """The first violations, and the number of the others."""
        rest = len(self.problems) - _SHOWN
        return [*self.problems[:_SHOWN], *([f"and {rest} more"] if rest > 0 else [])]


def estimated(values: Sequence[float], bound: float, **more: Any) -> dict[str, Any]:
    """The measured part of a statistical finding: sample, estimate, its 95 % interval, and the bound.

    `values` are one per task and in [0, 1]; others are clipped.
    """
    found = mean_of(values)
    limits = {"estimate": round(found.mean, 4), "low": round(found.low, 4), "high": round(found.high, 4)}
    return {"sample": len(values), **limits, "bound": bound, **more}


def mean_of(values: Sequence[float]) -> Estimate:
    """The mean of values in [0, 1] with its 95 % interval. Raises NotApplicable without values."""
    clipped = [min(max(float(value), 0.0), 1.0) for value in values]
    found = estimates({"": TaskValues(clipped, len(clipped), "bounded")})[""]
    if found is None:
        raise NotApplicable("no episode was played within the budget")
    return found

"""The arms of the study: how the turn limit, the start of an episode, or the loss differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.study.budget import Ledger, Row

if TYPE_CHECKING:
    from benchmarks.study.settings import StudySettings

Limit = Callable[[int], int]
"""Maps a training step, from 0, to the turn limit of an episode that begins in it; called once for each episode."""
MakeLimit = Callable[["StudySettings", Ledger], Limit]


@dataclass(frozen=True, slots=True)
class Arm:
    """A way to train from a warm start."""

    name: str
    limit: MakeLimit
    options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `AgentConfig`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `StudySettings` that differ."""
    lora: int = 0
    """The rank of an adapter; 0 trains all weights."""
    is_core: bool = False
    """True if it runs on all seeds, else on the first ones."""
    is_backward: bool = False
    """True if episodes begin with turns of the oracle, fewer as training goes on."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """One of the settings' limits, by name."""

    name: str

    def __call__(self, settings: StudySettings, ledger: Ledger) -> Limit:
        """The limit of every step."""
        return lambda step: int(getattr(settings, self.name))


@dataclass(frozen=True, slots=True)
class Stages:
    """Short, middle and long limits, each from a share of the token budget on."""

    shares: tuple[float, float, float] = (0.0, 0.25, 0.5)
    last: str = "long"

    def __call__(self, settings: StudySettings, ledger: Ledger) -> Limit:
        """The limit by the tokens spent before the step, which is the same after a resume."""
        limits = (settings.short, settings.middle, int(getattr(settings, self.last)))

        def limit(step: int) -> int:
            spent = ledger.total("sampled", step) / settings.budget
            return [turns for begin, turns in zip(self.shares, limits, strict=True) if spent >= begin][-1]

        return limit


@dataclass(frozen=True, slots=True)
class Gated:
    """Short, middle and long limits; the next one once success in training has stopped rising.

    That is when the last `steps` steps under the present limit are less than `rise` above as many steps before them. A
    threshold of success would not do for all scenarios: under a short limit, many of the tasks cannot be solved.
    """

    rise: float = 0.02
    steps: int = 5

    def __call__(self, settings: StudySettings, ledger: Ledger) -> Limit:
        """The limit by the steps before."""
        limits = (settings.short, settings.middle, settings.long)

        def limit(step: int) -> int:
            stage, since = 0, 0
            for number in range(1, step + 1):
                if stage < 2 and number - since >= 2 * self.steps and self._stopped(ledger.rows[:number]):
                    stage, since = stage + 1, number
            return limits[stage]

        return limit

    def _stopped(self, rows: Sequence[Row]) -> bool:
        before, last = rows[-2 * self.steps : -self.steps], rows[-self.steps :]
        return _success(last) < _success(before) + self.rise


def _success(rows: Sequence[Row]) -> float:
    won, episodes = (sum(row[name] for row in rows) for name in ("won", "episodes"))
    return won / episodes


@dataclass(frozen=True, slots=True)
class Random:
    """A limit for each episode, uniform between short and long."""

    def __call__(self, settings: StudySettings, ledger: Ledger) -> Limit:
        """The limit by the step and the number of the episode in it."""
        counted = [-1, 0]

        def limit(step: int) -> int:
            if counted[0] != step:
                counted[:] = [step, 0]
            counted[1] += 1
            rng = np.random.default_rng((settings.seed, step, counted[1]))
            return int(rng.integers(settings.short, settings.long + 1))

        return limit


_LARGE_GROUPS = {"num_generations": 16}
ARMS = {
    arm.name: arm
    for arm in (
        Arm("short", Fixed("short"), is_core=True),
        Arm("middle", Fixed("middle"), is_core=True),
        Arm("long", Fixed("long"), is_core=True),
        Arm("very long", Fixed("very_long"), is_core=True),
        Arm("growing", Stages(), is_core=True),
        Arm("growing, gated", Gated(), is_core=True),
        Arm("growing, short first stage", Stages((0.0, 0.1, 0.2))),
        Arm("very long, discounted", Fixed("very_long"), {"gamma": 0.9}),
        Arm("very long, KL", Fixed("very_long"), {"beta": 0.02, "kl_clip": 10.0}),
        Arm("random", Random()),
        Arm("backward", Fixed("long"), is_backward=True),
        Arm("long, groups of 16", Fixed("long"), _LARGE_GROUPS),
        Arm("growing, groups of 16", Stages(), _LARGE_GROUPS),
    )
}
SHORT_ONLY = ("short", "middle", "long", "growing", "backward")
"""The arms that begin from the warm start "short only", too."""


def seeds_of(settings: StudySettings, start: str, arm: str) -> int:
    """The number of seeds of an arm from a warm start."""
    if start == "short only":
        return settings.few if arm in SHORT_ONLY else 0
    return settings.seeds if ARMS[arm].is_core else settings.few

"""Preference pairs: two trajectories that began alike, and which of them went better.

Both sides of a pair have the same start: environment and its arguments, task, seed, and hence the same prompt. Of two
such trajectories

1. one that reached the goal is better than one that did not (`success`);
2. else the higher score is better, if it is higher by the margin (`score`);
3. else, if both reached the goal with equal scores, the one of fewer turns is better (`turns`).

Trajectories in which the machine failed, and those without a turn, are left out (`Trajectory.usable`).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError
from agentgym_envs.task import canonical_hash
from agentgym_envs.trajectory import Trajectory, read_trajectories
from agentgym_trl.error_messages import reject_teams

_EQUAL = 1e-9
"""Scores are sums of floats: those this close are equal."""
HOW_TO_GET = (
    "play tasks several times from the same seed: a training run's output_dir/trajectories/*.jsonl holds such groups, "
    "and `agentgym eval ENV --policy ... --split train --seed 0 --out DIR` of two models (or that and "
    "`agentgym demos ENV --seed 0 --out FILE`) gives two files that fit together"
)


class Preference(StrEnum):
    """Why the chosen trajectory is better than the rejected one; the strongest reason first."""

    SUCCESS = "success"
    """It reached the goal, the other did not."""
    SCORE = "score"
    """Neither or both reached the goal, and its score is higher."""
    TURNS = "turns"
    """Both reached the goal with equal scores, and it took fewer turns."""


_ORDER = list(Preference)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two trajectories with the same start, and why the chosen one is better."""

    chosen: Trajectory
    rejected: Trajectory
    preference: Preference


@dataclass(frozen=True, slots=True)
class PairSummary:
    """What pairing made of the trajectories. A start is a task and a seed, with the environment's arguments."""

    trajectories: int
    unusable: int
    starts: int
    starts_without: int
    pairs: Mapping[Preference, int]

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {preference}" for preference, count in self.pairs.items())
        unusable = f", {self.unusable} of them unusable" if self.unusable else ""
        return (
            f"{sum(self.pairs.values())} preference pairs ({kinds}) from {self.trajectories} trajectories{unusable}; "
            f"{self.starts_without} of {self.starts} starts (task and seed) gave none"
        )


@dataclass(frozen=True, slots=True)
class PairSet:
    """The pairs, start by start in the order of the trajectories, and how they came about."""

    pairs: list[Pair]
    summary: PairSummary

    def digest(self) -> str:
        """A short hash of every pair, so that a run that goes on can tell that it goes on with the same data."""
        sides = [[pair.preference, pair.chosen.to_json(), pair.rejected.to_json()] for pair in self.pairs]
        return canonical_hash(sides)[:16]


def load_trajectories(paths: Iterable[str | Path]) -> list[Trajectory]:
    """The trajectories of JSONL files, in order. Raises UsageError, with file and line if a line does not read."""
    found: list[Trajectory] = []
    for path in paths:
        try:
            found += read_trajectories(path)
        except OSError as error:
            raise UsageError(f"--trajectories {path} cannot be read: {error.strerror}") from None
    return found


def make_pairs(
    trajectories: Iterable[Trajectory],
    *,
    max_pairs_per_task: int = 4,
    min_margin: float = 0.0,
    preferences: Sequence[str] = tuple(Preference),
    tasks: int | None = None,
    seed: int = 0,
) -> PairSet:
    """Preference pairs within the same start; the same arguments give the same pairs.

    Args:
        trajectories: of any number of tasks and seeds; several that say and do the same count as one.
        max_pairs_per_task: how many pairs a start gives at most: the strongest kinds first, drawn by `seed` within
            a kind.
        min_margin: by how much a score must be higher, in [0, 1]; with 0 any higher score is better.
        preferences: which kinds are used. A pair has one kind only: without `success`, a success and a failure make
            no pair, whatever their scores.
        tasks: how many starts give pairs at most, drawn by `seed`; all if None.
        seed: decides what is drawn.

    Raises:
        UsageError: an argument that cannot be, a team's record, or no pair at all.
    """
    wanted = _check(max_pairs_per_task, min_margin, preferences, tasks)
    given = list(trajectories)
    reject_teams(given, "dpo")
    starts = _by_start(trajectory for trajectory in given if trajectory.usable)
    found: dict[str, list[Pair]] = {}
    for key, group in starts.items():
        candidates = [pair for pair in _candidates(group, min_margin) if pair.preference in wanted]
        if candidates:
            found[key] = _draw(candidates, max_pairs_per_task, random.Random(f"{seed} {key}"))
    pairs = [pair for key in _some(list(found), tasks, seed) for pair in found[key]]
    kinds = Counter(pair.preference for pair in pairs)
    summary = PairSummary(
        trajectories=len(given),
        unusable=sum(not trajectory.usable for trajectory in given),
        starts=len(starts),
        starts_without=len(starts) - len(found),
        pairs={preference: kinds[preference] for preference in wanted},
    )
    if not pairs:
        raise UsageError(f"there is no pair to learn from: {summary}; {HOW_TO_GET}")
    return PairSet(pairs, summary)


def prefer(first: Trajectory, second: Trajectory, min_margin: float = 0.0) -> Pair | None:
    """The two as a pair, or None if neither is better, or if the policy did the same in both.

    They must have the same start, which is not checked here.
    """
    if first.actions == second.actions:
        return None
    for preference, gain in _gains(first, second, min_margin):
        if gain:
            chosen, rejected = (first, second) if gain > 0 else (second, first)
            return Pair(chosen, rejected, preference)
    return None


def _gains(first: Trajectory, second: Trajectory, min_margin: float) -> Iterable[tuple[Preference, float]]:
    """Each kind and by how much the first is better: 0 if that kind does not apply."""
    difference = first.score - second.score
    equal = abs(difference) <= _EQUAL
    enough = not equal and abs(difference) >= min_margin - _EQUAL
    both = first.success and second.success
    yield Preference.SUCCESS, int(first.success) - int(second.success)
    yield Preference.SCORE, difference if enough else 0.0
    yield Preference.TURNS, len(second.turns) - len(first.turns) if both and equal else 0


def _candidates(group: Sequence[Trajectory], min_margin: float) -> Iterable[Pair]:
    for first, second in combinations(group, 2):
        if pair := prefer(first, second, min_margin):
            yield pair


def _draw(candidates: list[Pair], most: int, rng: random.Random) -> list[Pair]:
    rng.shuffle(candidates)
    return sorted(candidates, key=lambda pair: _ORDER.index(pair.preference))[:most]


def _some(keys: list[str], most: int | None, seed: int) -> list[str]:
    """At most so many, in their order."""
    if most is None or most >= len(keys):
        return keys
    kept = set(random.Random(seed).sample(keys, most))
    return [key for key in keys if key in kept]


def _by_start(trajectories: Iterable[Trajectory]) -> dict[str, list[Trajectory]]:
    """Trajectories by their start, those that say and do the same once."""
    starts: dict[str, dict[Any, Trajectory]] = {}
    for trajectory in trajectories:
        episode = (tuple(trajectory.actions), trajectory.success, trajectory.score)
        starts.setdefault(_start(trajectory), {}).setdefault(episode, trajectory)
    return {key: list(episodes.values()) for key, episodes in starts.items()}


def _start(trajectory: Trajectory) -> str:
    """Equal for trajectories with the same start, the prompt included: `instructions` may differ between runs."""
    prompt = [trajectory.instructions, trajectory.turns[0].observation]
    return canonical_hash(
        [trajectory.env_id, dict(trajectory.env_kwargs), trajectory.task.id, trajectory.seed, *prompt]
    )


def _check(most: int, margin: float, preferences: Sequence[str], tasks: int | None) -> list[Preference]:
    for name, count in (("max_pairs_per_task", most), ("tasks", tasks)):
        if count is not None and count < 1:
            raise UsageError(f"--{name} must be at least 1, got {count}")
    if not (math.isfinite(margin) and 0.0 <= margin <= 1.0):
        raise UsageError(f"--min-margin is a difference of scores, from 0 to 1; got {margin}")
    unknown = [name for name in preferences if name not in _ORDER]
    if unknown or not preferences:
        raise UsageError(f"--preferences must name some of {', '.join(_ORDER)}; got {', '.join(unknown) or 'none'}")
    return [preference for preference in _ORDER if preference in preferences]

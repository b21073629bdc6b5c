"""Preference pairs: a better and a worse trajectory with the same start.

Both sides of a pair have the same start: environment and its arguments, task, seed, and so the same prompt. Of two such
trajectories

1. one that reached the goal is better than one that did not (`success`);
2. else the higher score is better, if it is higher by the margin (`score`);
3. else, if both reached the goal with equal scores, the one with fewer turns is better (`turns`).

Trajectories that ended in `env_error` or have no turn are left out (`Trajectory.usable`).
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
"""The tolerance for equal scores, which are sums of floats."""
HOW_TO_GET = (
    "play tasks several times from the same seed: the OUT/trajectories/*.jsonl of a training run have such groups, and "
    "so have the files of two models by `agentgym eval ENV --policy ... --split train --seed 0 --out DIR`, or of one "
    "model and `agentgym demos ENV --seed 0 --out FILE`"
)


class Preference(StrEnum):
    """The reason why the chosen trajectory is better, the strongest first."""

    SUCCESS = "success"
    """It reached the goal, the other did not."""
    SCORE = "score"
    """Neither or both reached the goal, and its score is higher."""
    TURNS = "turns"
    """Both reached the goal with equal scores, and it took fewer turns."""


_ORDER = list(Preference)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two trajectories with the same start, and the reason why the chosen one is better."""

    chosen: Trajectory
    rejected: Trajectory
    preference: Preference


@dataclass(frozen=True, slots=True)
class PairSummary:
    """Counts of trajectories and pairs. A start is a task and a seed, with the environment's arguments."""

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
    """The pairs, grouped by start in the order of the trajectories, and their summary."""

    pairs: list[Pair]
    summary: PairSummary

    def digest(self) -> str:
        """A short hash of all pairs, with which a resumed run checks that its data is the same."""
        sides = [[pair.preference, pair.chosen.to_json(), pair.rejected.to_json()] for pair in self.pairs]
        return canonical_hash(sides)[:16]


def load_trajectories(paths: Iterable[str | Path]) -> list[Trajectory]:
    """Read the trajectories of JSONL files, in order. Raises UsageError; names file and line of an invalid record."""
    trajectories: list[Trajectory] = []
    for path in paths:
        try:
            trajectories += read_trajectories(path)
        except OSError as error:
            raise UsageError(f"--trajectories {path} cannot be read: {error.strerror}") from None
    return trajectories


def make_pairs(
    trajectories: Iterable[Trajectory],
    *,
    max_pairs_per_task: int = 4,
    min_margin: float = 0.0,
    preferences: Sequence[str] = tuple(Preference),
    tasks: int | None = None,
    seed: int = 0,
) -> PairSet:
    """Make preference pairs of trajectories with the same start; equal arguments give equal pairs.

    Args:
        trajectories: of any number of tasks and seeds; duplicates with the same actions and result count as one.
        max_pairs_per_task: max pairs per start: the strongest kinds first, drawn by `seed` within a kind.
        min_margin: min difference of scores, in [0, 1]; with 0 any higher score is better.
        preferences: the kinds of pairs to use. A pair has one kind only: without `success`, a success and a failure
            make no pair, whatever their scores.
        tasks: max number of starts that give pairs, drawn by `seed`; all if None.
        seed: the seed of the draws.

    Raises:
        UsageError: an invalid argument, a team's record, or no pair at all.
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
        raise UsageError(f"there is no pair to train on: {summary}; {HOW_TO_GET}")
    return PairSet(pairs, summary)


def prefer(first: Trajectory, second: Trajectory, min_margin: float = 0.0) -> Pair | None:
    """Make a pair of two trajectories, or return None if neither is better or both have the same actions.

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
    """Each kind of preference, with the margin by which the first is better: 0 if the kind does not apply."""
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


def _draw(candidates: list[Pair], maximum: int, rng: random.Random) -> list[Pair]:
    rng.shuffle(candidates)
    return sorted(candidates, key=lambda pair: _ORDER.index(pair.preference))[:maximum]


def _some(keys: list[str], maximum: int | None, seed: int) -> list[str]:
    """Draw up to `maximum` keys, in their original order."""
    if maximum is None or maximum >= len(keys):
        return keys
    kept = set(random.Random(seed).sample(keys, maximum))
    return [key for key in keys if key in kept]


def _by_start(trajectories: Iterable[Trajectory]) -> dict[str, list[Trajectory]]:
    """Trajectories by their start, without duplicates."""
    starts: dict[str, dict[Any, Trajectory]] = {}
    for trajectory in trajectories:
        episode = (tuple(trajectory.actions), trajectory.success, trajectory.score)
        starts.setdefault(_start(trajectory), {}).setdefault(episode, trajectory)
    return {key: list(episodes.values()) for key, episodes in starts.items()}


def _start(trajectory: Trajectory) -> str:
    """A key of the start. It includes the prompt, as `instructions` may differ between runs."""
    prompt = [trajectory.instructions, trajectory.turns[0].observation]
    return canonical_hash(
        [trajectory.env_id, dict(trajectory.env_kwargs), trajectory.task.id, trajectory.seed, *prompt]
    )


def _check(maximum: int, margin: float, preferences: Sequence[str], tasks: int | None) -> list[Preference]:
    for name, count in (("max_pairs_per_task", maximum), ("tasks", tasks)):
        if count is not None and count < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1, got {count}")
    if not (math.isfinite(margin) and 0.0 <= margin <= 1.0):
        raise UsageError(f"--min-margin is a difference of scores, from 0 to 1; got {margin}")
    unknown = [name for name in preferences if name not in _ORDER]
    if unknown or not preferences:
        raise UsageError(f"--preferences must name some of {', '.join(_ORDER)}; got {', '.join(unknown) or 'none'}")
    return [preference for preference in _ORDER if preference in preferences]

"""Two runs over the same tasks, task by task: what was gained, how sure that is, and which tasks flipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, NamedTuple

from agentgym_envs.errors import UsageError
from agentgym_envs.evaluate.episodes import TaskKey, by_task, mean_of, split
from agentgym_envs.evaluate.estimates import paired_interval
from agentgym_envs.trajectory import Trajectory

Value = Callable[[Trajectory], float]
VALUES: Mapping[str, Value] = {
    "success": lambda trajectory: float(trajectory.success),
    "score": lambda trajectory: trajectory.score,
}
"""What can be compared, by name."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean over tasks of what a task gained, with its 95 % interval.

    `tasks` counts the pairs, `excluded` the tasks that have no usable episode on one side.
    """

    mean: float
    low: float
    high: float
    tasks: int
    excluded: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """What a set of tasks gained. `env_id` and `group` are None where the set spans several.

    `before` and `after` are means over the tasks that have a usable episode on both sides; without any, they and the
    difference are None. `won` and `lost` name the tasks that flipped: solved in at least half of their episodes on one
    side, in fewer on the other. `up` and `down` count the tasks whose own mean rose and fell, `p_value` is the exact
    sign test's over them (two-sided; McNemar's exact test where each task has one episode a side).
    """

    env_id: str | None
    group: str | None
    before: float | None
    after: float | None
    difference: PairedDifference | None
    up: int
    down: int
    p_value: float
    won: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one run gained over another: over everything, by environment, and by group.

    `only_before` and `only_after` name the tasks of one side only, which enter nothing.
    """

    overall: ComparedRow
    environments: tuple[ComparedRow, ...]
    groups: tuple[ComparedRow, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON objects and lists."""
        return {name: _listed(value) for name, value in asdict(self).items()}


class _Pair(NamedTuple):
    """A task: its means on either side, None without a usable episode on both, and whether each side solves it."""

    env_id: str
    group: str
    task: str
    means: tuple[float, float] | None
    solved: tuple[bool, bool]


def compare(
    before: Iterable[Trajectory],
    after: Iterable[Trajectory],
    *,
    value: Value = VALUES["success"],
    group_order: Sequence[str] = (),
    allow_partial: bool = False,
) -> Comparison:
    """What `after` gained over `before`, task by task, in `value`; the order of episodes does not matter.

    `allow_partial` leaves out the tasks that are on one side only, and names them in the result.

    Raises:
        UsageError: no task is on both sides, or some are on one side only and `allow_partial` is not set.
    """
    old, new = by_task(before), by_task(after)
    _check_same_tasks(old, new, allow_partial)
    pairs = [_pair(old[key], new[key], value) for key in sorted(old.keys() & new.keys())]
    by_env, bounded = split(pairs, lambda pair: pair.env_id), _is_bounded(value)
    groups = []
    for env_id, found in by_env.items():
        by_group = split(found, lambda pair: pair.group)
        ordered = [name for name in group_order if name in by_group]
        for name in [*ordered, *sorted(set(by_group) - set(ordered))]:
            groups.append(_row(by_group[name], env_id, name, bounded))
    environments = tuple(_row(found, env_id, None, bounded) for env_id, found in by_env.items())
    return Comparison(
        overall=environments[0] if len(environments) == 1 else _row(pairs, None, None, bounded),
        environments=environments,
        groups=tuple(groups),
        only_before=tuple(task for _, task in sorted(old.keys() - new.keys())),
        only_after=tuple(task for _, task in sorted(new.keys() - old.keys())),
    )


def paired_difference(
    before: Iterable[Trajectory],
    after: Iterable[Trajectory],
    *,
    value: Value = VALUES["success"],
) -> PairedDifference:
    """What `after` gained over `before`, task by task, by default in success.

    Each task counts by the difference of its means, so that a task's own difficulty drops out. The interval is
    `paired_interval`.

    Raises:
        UsageError: the two are not over the same tasks, or no task has a usable episode in both.
    """
    old, new = by_task(before), by_task(after)
    _check_same_tasks(old, new, False)
    pairs = [_pair(old[key], new[key], value) for key in sorted(old)]
    found = _difference(pairs, _is_bounded(value))
    if found is None:
        raise UsageError("there is no task with a usable episode on both sides, so there is nothing to compare")
    return found


def sign_test(up: int, down: int) -> float:
    """The chance that `up` + `down` fair coins fall at least as unevenly as that, to either side; 1 without a coin."""
    coins = up + down
    ways = tail = 1
    for few in range(min(up, down)):
        ways = ways * (coins - few) // (few + 1)  # C(coins, few + 1)
        tail += ways
    return float(min(1, 2 * tail / 2**coins))


def _pair(old: Sequence[Trajectory], new: Sequence[Trajectory], value: Value) -> _Pair:
    first = old[0]
    sides = (old, new)
    if not all(any(episode.usable for episode in side) for side in sides):
        return _Pair(first.env_id, first.task.group, first.task.id, None, (False, False))
    before, after = (mean_of(side, value) for side in sides)
    solved_before, solved_after = (mean_of(side, VALUES["success"]) >= 0.5 for side in sides)
    return _Pair(first.env_id, first.task.group, first.task.id, (before, after), (solved_before, solved_after))


def _row(pairs: Sequence[_Pair], env_id: str | None, group: str | None, bounded: bool) -> ComparedRow:
    means = [pair.means for pair in pairs if pair.means]
    up, down = sum(after > before for before, after in means), sum(after < before for before, after in means)
    return ComparedRow(
        env_id=env_id,
        group=group,
        before=fmean(before for before, _ in means) if means else None,
        after=fmean(after for _, after in means) if means else None,
        difference=_difference(pairs, bounded),
        up=up,
        down=down,
        p_value=sign_test(up, down),
        won=tuple(pair.task for pair in pairs if pair.solved == (False, True)),
        lost=tuple(pair.task for pair in pairs if pair.solved == (True, False)),
    )


def _is_bounded(value: Value) -> bool:
    """Whether no task can gain more than 1 in it; what others measure may be anything."""
    return value in VALUES.values()


def _difference(pairs: Sequence[_Pair], bounded: bool) -> PairedDifference | None:
    gains = [pair.means[1] - pair.means[0] for pair in pairs if pair.means]
    if not gains:
        return None
    low, high = paired_interval(gains, bounded=bounded)
    return PairedDifference(fmean(gains), low, high, len(gains), len(pairs) - len(gains))


def _check_same_tasks(old: Mapping[TaskKey, Any], new: Mapping[TaskKey, Any], allow_partial: bool) -> None:
    everything = old.keys() | new.keys()
    unpaired = sorted(old.keys() ^ new.keys())
    if not old.keys() & new.keys():
        raise UsageError("there is no task on both sides, so there is nothing to compare")
    if unpaired and not allow_partial:
        raise UsageError(
            f"a paired comparison needs the same tasks on both sides; {len(unpaired)} of {len(everything)} are on one "
            f"side only, for example {unpaired[0][1]!r}"
        )


def _listed(value: Any) -> Any:
    """Tuples as lists, through and through."""
    if isinstance(value, dict):
        return {name: _listed(item) for name, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value

"""Paired comparison of two runs over the same tasks: differences, intervals, sign tests and flipped tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
"""The values that can be compared, by name."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean difference over tasks with its 95 % interval.

    `tasks` is the number of pairs, `excluded` that of tasks without a usable episode in one of the runs.
    """

    mean: float
    low: float
    high: float
    tasks: int
    excluded: int

    def to_json(self) -> dict[str, Any]:
        """Convert to a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """The comparison over a set of tasks. `env_id` and `group` are None if the set spans several.

    `before` and `after` are means over the tasks with a usable episode in both runs; without such tasks, they and the
    difference are None. `won` and `lost` name the flipped tasks: solved in at least half of their episodes in one run
    and in fewer in the other. `up` and `down` count the tasks whose mean rose and fell. `p_value` is that of their
    exact two-sided sign test (McNemar's exact test with one episode per task and run).
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
    """The comparison of two runs: overall, by environment, and by group.

    `only_before` and `only_after` name the tasks of only one run, which are not compared.
    """

    overall: ComparedRow
    environments: tuple[ComparedRow, ...]
    groups: tuple[ComparedRow, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON objects and lists."""
        return {name: _listed(value) for name, value in asdict(self).items()}


class _Pair(NamedTuple):
    """A task: its means in both runs, None unless both have a usable episode, and whether each run solves it."""

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
    """Compare `after` with `before` in `value`, paired by task. The order of episodes does not matter.

    With `allow_partial`, tasks of only one run are left out and named in the result.

    Raises:
        UsageError: no task is in both runs, or some are in only one and `allow_partial` is not set.
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
    """The mean difference between `after` and `before`, paired by task; by default in success.

    Each task contributes the difference of its means, which cancels its difficulty. The interval is `paired_interval`.

    Raises:
        UsageError: the runs have different tasks, or no task has a usable episode in both.
    """
    old, new = by_task(before), by_task(after)
    _check_same_tasks(old, new, False)
    pairs = [_pair(old[key], new[key], value) for key in sorted(old)]
    found = _difference(pairs, _is_bounded(value))
    if found is None:
        raise UsageError("there is no task with a usable episode in both runs, so there is nothing to compare")
    return found


def sign_test(up: int, down: int) -> float:
    """The exact two-sided p value of the sign test: `up` + `down` fair coins fall at least as unevenly."""
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
    """True if a task's gain is at most 1, as for success and score."""
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
        raise UsageError(
            f"there is no task in both runs, so there is nothing to compare: one has {_described(old)}, the other "
            f"{_described(new)}; evaluate both on the same environment, split and tasks (--tasks with the same number "
            "and --seed, or the same file)"
        )
    if unpaired and not allow_partial:
        raise UsageError(
            f"a paired comparison needs the same tasks in both runs; {len(unpaired)} of {len(everything)} are in only "
            f"one, for example {unpaired[0][1]!r}"
        )


def _described(tasks: Collection[TaskKey]) -> str:
    """The environments of some tasks, and one of the tasks."""
    if not tasks:
        return "no tasks"
    env_ids, example = sorted({env_id for env_id, _ in tasks}), min(tasks)[1]
    return f"tasks of {', '.join(env_ids)}, such as {example!r}"


def _listed(value: Any) -> Any:
    """Convert tuples to lists, recursively."""
    if isinstance(value, dict):
        return {name: _listed(item) for name, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value

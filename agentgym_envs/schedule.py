"""Turn limits as pure functions of the training step (ScalingInter-RL).

A limit that depends only on the global step is exact after a resume, and equal on every rank.

Source: ScalingInter-RL, arXiv 2509.08755, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentgym_envs.errors import UsageError

TurnSchedule = Callable[[int], int]
"""Maps a global training step, counted from 0, to the turn limit of the episodes that begin in it."""


@dataclass(frozen=True, slots=True)
class FixedTurnLimit:
    """The same turn limit at every training step."""

    max_turns: int

    def __post_init__(self) -> None:
        _check((self.max_turns,))

    def __call__(self, step: int) -> int:
        """The turn limit at the global training step `step`."""
        return self.max_turns


@dataclass(frozen=True, slots=True)
class TurnLimitCurriculum:
    """A turn-limit curriculum: steps 0..every-1 use `max_turns[0]`, the next `every` steps `max_turns[1]`, and so on.

    The last limit applies to all later steps. With `max_turns=(10, 20, 30), every=100`, step 99 has 10 turns, step 100
    has 20, and all steps from 200 on have 30.
    """

    max_turns: tuple[int, ...]
    every: int

    def __post_init__(self) -> None:
        _check(self.max_turns)
        if self.every < 1:
            raise UsageError(f"the number of steps between two turn limits must be at least 1, got {self.every}")

    def __call__(self, step: int) -> int:
        """The turn limit at the global training step `step`."""
        return self.max_turns[min(max(step, 0) // self.every, len(self.max_turns) - 1)]


def parse_schedule(
    max_turns: str | int | Sequence[int], every: int | None = None
) -> FixedTurnLimit | TurnLimitCurriculum:
    """Parse `--max-turns 10,20,30 --every 100`; one number is a fixed limit.

    Raises:
        UsageError: the limits are malformed, not positive or decreasing, or `every` is missing for several limits.
    """
    numbers = _numbers(max_turns)
    if len(numbers) == 1:
        return FixedTurnLimit(numbers[0])
    _check(numbers)
    if every is None:
        raise UsageError(f"max turns {_show(numbers)} need the number of training steps of a stage: --every 100")
    return TurnLimitCurriculum(numbers, every)


Schedules = TurnSchedule | Mapping[str, TurnSchedule]
"""One schedule, or one for each environment, by its id."""


def parse_schedules(max_turns: str, every: int | None = None) -> Schedules:
    """Parse a schedule, or one schedule per environment: TextCraft=10,20,30;BabyAI=6,13,20.

    Raises:
        UsageError: see `parse_schedule`; also for an environment without a name, or with two schedules.
    """
    if "=" not in max_turns:
        return parse_schedule(max_turns, every)
    found: dict[str, TurnSchedule] = {}
    for part in max_turns.split(";"):
        name, equals, numbers = (text.strip() for text in part.partition("="))
        if not name or not equals or name in found:
            raise UsageError(
                f"max turns name each environment once, as in TextCraft=10,20,30;BabyAI=6,13,20; got {max_turns!r}"
            )
        found[name] = parse_schedule(numbers, every)
    return found


def match_schedules(schedules: Schedules, names: Mapping[str, str]) -> Schedules:
    """Key the schedules by id. `names` maps the ids of a run's environments to short names; schedules may use either.

    Raises:
        UsageError: a schedule for an unknown environment, or an environment without a schedule.
    """
    if callable(schedules):
        return schedules
    found = {env_id: schedules.get(env_id) or schedules.get(name) for env_id, name in names.items()}
    unknown = set(schedules) - set(names) - set(names.values())
    if unknown or not all(found.values()) or not names:
        raise UsageError(
            f"schedules for each environment must name them all: {', '.join(names.values()) or 'there is only one'}; "
            f"got {', '.join(schedules)}"
        )
    return {env_id: one for env_id, one in found.items() if one}


def _numbers(max_turns: str | int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(max_turns, int):
        return (max_turns,)
    if not isinstance(max_turns, str):
        return tuple(max_turns)
    try:
        return tuple(int(part) for part in max_turns.split(","))
    except ValueError:
        raise UsageError(
            f"max turns must be whole numbers with commas between, as in 10,20,30; got {max_turns!r}"
        ) from None


def _check(max_turns: tuple[int, ...]) -> None:
    if not max_turns or min(max_turns) < 1:
        raise UsageError(f"a turn limit must be at least 1, got max turns {_show(max_turns) or 'of length 0'}")
    if list(max_turns) != sorted(max_turns):
        raise UsageError(f"turn limits must not decrease during training, got max turns {_show(max_turns)}")


def _show(max_turns: Sequence[int]) -> str:
    return ",".join(map(str, max_turns))

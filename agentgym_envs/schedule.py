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
class FixedRounds:
    """The same limit at every step."""

    rounds: int

    def __post_init__(self) -> None:
        _check_rounds((self.rounds,))

    def __call__(self, step: int) -> int:
        """The turn limit at the global training step `step`."""
        return self.rounds


@dataclass(frozen=True, slots=True)
class StepRounds:
    """A turn-limit curriculum: steps 0..every-1 use `rounds[0]`, the next `every` steps `rounds[1]`, and so on.

    The last limit applies to all later steps. With `rounds=(10, 20, 30), every=100`, step 99 has 10 turns, step 100 has
    20, and all steps from 200 on have 30.
    """

    rounds: tuple[int, ...]
    every: int

    def __post_init__(self) -> None:
        _check_rounds(self.rounds)
        if self.every < 1:
            raise UsageError(f"the number of steps between two turn limits must be at least 1, got {self.every}")

    def __call__(self, step: int) -> int:
        """The turn limit at the global training step `step`."""
        return self.rounds[min(max(step, 0) // self.every, len(self.rounds) - 1)]


def parse_schedule(rounds: str | int | Sequence[int], every: int | None = None) -> FixedRounds | StepRounds:
    """Parse `--rounds 10,20,30 --every 100`; one number is a fixed limit.

    Raises:
        UsageError: the rounds are malformed, not positive or decreasing, or `every` is missing for several rounds.
    """
    numbers = _numbers(rounds)
    if len(numbers) == 1:
        return FixedRounds(numbers[0])
    _check_rounds(numbers)
    if every is None:
        raise UsageError(f"rounds {_show(numbers)} need the number of training steps of a stage: --every 100")
    return StepRounds(numbers, every)


Schedules = TurnSchedule | Mapping[str, TurnSchedule]
"""One schedule, or one for each environment, by its id."""


def parse_schedules(rounds: str, every: int | None = None) -> Schedules:
    """Parse a schedule, or one schedule per environment: TextCraft=10,20,30;BabyAI=6,13,20.

    Raises:
        UsageError: see `parse_schedule`; also for an environment without a name, or with two schedules.
    """
    if "=" not in rounds:
        return parse_schedule(rounds, every)
    found: dict[str, TurnSchedule] = {}
    for part in rounds.split(";"):
        name, equals, numbers = (text.strip() for text in part.partition("="))
        if not name or not equals or name in found:
            raise UsageError(
                f"rounds name each environment once, as in TextCraft=10,20,30;BabyAI=6,13,20; got {rounds!r}"
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


def _numbers(rounds: str | int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(rounds, int):
        return (rounds,)
    if not isinstance(rounds, str):
        return tuple(rounds)
    try:
        return tuple(int(part) for part in rounds.split(","))
    except ValueError:
        raise UsageError(f"rounds must be whole numbers with commas between, as in 10,20,30; got {rounds!r}") from None


def _check_rounds(rounds: tuple[int, ...]) -> None:
    if not rounds or min(rounds) < 1:
        raise UsageError(f"a turn limit must be at least 1, got rounds {_show(rounds) or 'of length 0'}")
    if list(rounds) != sorted(rounds):
        raise UsageError(f"turn limits must not decrease during training, got rounds {_show(rounds)}")


def _show(rounds: Sequence[int]) -> str:
    return ",".join(map(str, rounds))

import pickle
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs import FixedTurnLimit, TurnLimitCurriculum
from agentgym_envs.errors import UsageError
from agentgym_envs.schedule import parse_schedule

PAPER = TurnLimitCurriculum((10, 20, 30), every=100)
LIMITS = st.lists(st.integers(1, 50), min_size=1, max_size=6).map(lambda max_turns: tuple(sorted(max_turns)))


@pytest.mark.parametrize(
    ("step", "turns"), [(-1, 10), (0, 10), (99, 10), (100, 20), (199, 20), (200, 30), (299, 30), (300, 30), (10**9, 30)]
)
def test_the_schedule_of_the_paper_changes_exactly_at_its_steps(step: int, turns: int) -> None:
    assert PAPER(step) == turns


@given(LIMITS, st.integers(1, 1000), st.integers(0, 10**6), st.integers(0, 10**6))
def test_limits_never_decrease_and_come_from_the_rounds(
    max_turns: tuple[int, ...], every: int, one: int, two: int
) -> None:
    schedule = TurnLimitCurriculum(max_turns, every)
    assert schedule(min(one, two)) <= schedule(max(one, two))
    assert schedule(one) in max_turns


@given(LIMITS, st.integers(1, 100), st.lists(st.integers(0, 700), max_size=20))
def test_a_limit_depends_only_on_the_step(max_turns: tuple[int, ...], every: int, earlier_steps: list[int]) -> None:
    used, fresh = TurnLimitCurriculum(max_turns, every), TurnLimitCurriculum(max_turns, every)
    for step in earlier_steps:
        used(step)
    assert [used(step) for step in range(50)] == [fresh(step) for step in range(50)]


@given(st.integers(1, 100), st.integers(0, 10**6))
def test_fixed_rounds_do_not_depend_on_the_step(max_turns: int, step: int) -> None:
    assert FixedTurnLimit(max_turns)(step) == max_turns


def test_schedules_compare_by_value() -> None:
    assert TurnLimitCurriculum((10, 20, 30), 100) == PAPER
    assert pickle.loads(pickle.dumps(PAPER)) == PAPER


@pytest.mark.parametrize(
    ("max_turns", "every", "schedule"),
    [
        ("10,20,30", 100, PAPER),
        (" 10, 20 ,30", 100, PAPER),
        ([10, 20, 30], 100, PAPER),
        ("7", None, FixedTurnLimit(7)),
        (7, None, FixedTurnLimit(7)),
        ((7,), 100, FixedTurnLimit(7)),
        ("5,5", 1, TurnLimitCurriculum((5, 5), 1)),
    ],
)
def test_parse_schedule_reads_rounds_and_intervals(
    max_turns: str | int | Sequence[int], every: int | None, schedule: object
) -> None:
    assert parse_schedule(max_turns, every) == schedule


@pytest.mark.parametrize(
    ("max_turns", "every", "message"),
    [
        ("ten", 100, "whole numbers with commas between, as in 10,20,30; got 'ten'"),
        ("", 100, "whole numbers"),
        ("10,,30", 100, "whole numbers"),
        ("1.5", None, "whole numbers"),
        ("30,20", 100, "must not decrease during training, got max turns 30,20"),
        ("30,20", None, "must not decrease"),
        ("0", None, "must be at least 1, got max turns 0"),
        ("0,10", 100, "must be at least 1"),
        ("-5", None, "must be at least 1, got max turns -5"),
        ([], None, "got max turns of length 0"),
        ("10,20", None, "--every 100"),
        ("10,20", 0, "at least 1, got 0"),
        ("10,20", -3, "at least 1, got -3"),
    ],
)
def test_invalid_rounds_are_refused(max_turns: str | Sequence[int], every: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_schedule(max_turns, every)

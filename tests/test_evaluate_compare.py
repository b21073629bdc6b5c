"""Comparisons of runs, paired by task."""

import json
import math
import random
from math import comb
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_envs.evaluate import VALUES, Z95, compare, paired_difference
from agentgym_envs.evaluate.compare import sign_test
from agentgym_envs.evaluate.estimates import paired_interval
from agentgym_envs.trajectory import Trajectory

from .episodes import episode, several


def sides() -> tuple[list[Trajectory], list[Trajectory]]:
    before = [
        *several("t/1", 0, 0),
        *several("t/2", 1, 1),
        *several("t/3", 0, 1),
        *several("t/4", 0, 0, group="hard"),
        episode("t/5", 1, group="hard", stop="env_error"),
        episode("b/1", 0, env_id="B-v0"),
    ]
    after = [
        *several("t/1", 1, 0),
        *several("t/2", 0, 0, 0),
        *several("t/3", 1, 1),
        *several("t/4", 0, 0.9, group="hard"),
        episode("t/5", 1, group="hard"),
        episode("b/1", 1, env_id="B-v0"),
    ]
    return before, after


def test_a_comparison_equals_hand_computed_values() -> None:
    found = compare(*sides())
    easy, hard, other = found.groups
    assert [(row.env_id, row.group) for row in found.groups] == [("A-v0", "easy"), ("A-v0", "hard"), ("B-v0", "easy")]
    # Means of t/1, t/2, t/3: 0, 1, .5 before and .5, 0, 1 after.
    assert (easy.before, easy.after) == (0.5, 0.5)
    assert easy.difference and (easy.difference.mean, easy.difference.tasks) == (0, 3)
    assert (easy.won, easy.lost) == (("t/1",), ("t/2",))  # t/3 had half of its episodes solved before: no flip
    assert (easy.up, easy.down, easy.p_value) == (2, 1, 1)
    assert hard.difference and (hard.difference.tasks, hard.difference.excluded, hard.won) == (1, 1, ())
    assert (other.before, other.after, other.won) == (0, 1, ("b/1",))
    assert (found.overall.env_id, found.overall.up, found.overall.down) == (None, 3, 1)
    assert found.overall.difference == paired_difference(*sides())
    assert [row.env_id for row in found.environments] == ["A-v0", "B-v0"]


def test_scores_can_be_compared() -> None:
    hard = compare(*sides(), value=VALUES["score"]).groups[1]
    assert (hard.before, hard.up) == (0, 1)
    assert hard.after == pytest.approx(0.45)
    assert hard.won == ()  # flips are about success, whichever value is compared


def test_groups_are_in_the_given_order() -> None:
    assert [row.group for row in compare(*sides(), group_order=["hard"]).groups] == ["hard", "easy", "easy"]


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_sign_test_equals_an_enumeration(up: int, down: int) -> None:
    coins = up + down
    as_uneven = [heads for heads in range(coins + 1) if abs(2 * heads - coins) >= abs(up - down)]
    assert sign_test(up, down) == pytest.approx(sum(comb(coins, heads) for heads in as_uneven) / 2**coins)
    assert sign_test(up, down) == sign_test(down, up) <= 1


def test_the_sign_test_is_exact_for_many_coins() -> None:
    assert sign_test(0, 5) == 2 / 32
    assert sign_test(9, 1) == 22 / 1024
    assert sign_test(5100, 4900) == pytest.approx(0.0466, abs=5e-4)  # the normal limit: 2 Φ(-1.99)
    assert 0 < sign_test(900, 100) < 1e-100


def test_equal_runs_have_no_difference() -> None:
    before, _ = sides()
    found = compare(before, before).overall
    assert found.difference and found.difference.mean == 0
    assert found.difference.low == -found.difference.high < 0  # five unchanged tasks give a wide interval
    assert (found.up, found.down, found.p_value, found.won, found.lost) == (0, 0, 1, (), ())


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=60))
def test_the_interval_of_a_gain_contains_its_mean(gains: list[float]) -> None:
    low, high = paired_interval(gains, bounded=True)
    assert -1 <= low < high <= 1
    assert low - 1e-12 <= fmean(gains) <= high + 1e-12
    turned = paired_interval([-gain for gain in gains], bounded=True)
    assert turned == pytest.approx((-high, -low))


def test_a_gain_in_counts_has_an_unbounded_interval() -> None:
    # Gains of 2 and 4 turns, with pseudo-tasks of 4 and -4: mean 6/4, variance (4 + 16 + 32)/4 - 2.25 = 10.75.
    half = Z95 * math.sqrt(10.75 / 4)
    assert paired_interval([2, 4], bounded=False) == pytest.approx((1.5 - half, 1.5 + half))
    assert paired_interval([0, 0], bounded=False) == (0, 0)  # without any gain, the size of gains is unknown
    one, two = ([episode("t/1", 0, turns=turns)] for turns in (9, 4))
    found = paired_difference(one, two, value=lambda played: len(played.turns))
    assert found.low < -5 < found.high


@pytest.mark.parametrize("tasks", [3, 10, 50, 300])
@pytest.mark.parametrize("chances", [(0.2, 0.05), (0.1, 0.02), (0.03, 0.01)])
def test_the_interval_of_a_gain_covers_the_truth(tasks: int, chances: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    weights = [chances[1], 1 - sum(chances), chances[0]]
    runs = rng.choice([-1.0, 0.0, 1.0], p=weights, size=(400, tasks))
    found = [paired_interval(run.tolist(), bounded=True) for run in runs]
    assert fmean(low <= chances[0] - chances[1] <= high for low, high in found) >= 0.93


def test_tasks_of_only_one_run_are_refused_unless_allowed() -> None:
    before, after = sides()
    before, after = [*before, episode("t/8", 1)], [*after, episode("t/9", 1)]
    with pytest.raises(UsageError, match=r"2 of 8 are in only one, for example 't/8'"):
        compare(before, after)
    found = compare(before, after, allow_partial=True)
    assert (found.only_before, found.only_after) == (("t/8",), ("t/9",))
    assert found.overall == compare(*sides()).overall


def test_runs_without_common_tasks_are_refused() -> None:
    with pytest.raises(UsageError, match="no task in both runs"):
        compare([episode("t/1", 1)], [episode("t/2", 1)], allow_partial=True)
    with pytest.raises(UsageError, match="no task in both runs"):
        compare([], [])


def test_tasks_without_usable_episodes_have_no_difference() -> None:
    spoiled = [episode("t/1", 0, stop="env_error")]
    row = compare(spoiled, [episode("t/1", 1)]).overall
    assert (row.before, row.after, row.difference, row.p_value, row.won) == (None, None, None, 1, ())


def test_the_result_ignores_the_order_and_converts_to_json() -> None:
    before, after = sides()
    found = compare(before, after)
    rng = random.Random(0)
    assert compare(rng.sample(before, len(before)), rng.sample(after, len(after))) == found
    row = found.to_json()
    assert json.loads(json.dumps(row)) == row
    assert row["groups"][0]["won"] == ["t/1"]
    assert row["groups"][0]["difference"]["tasks"] == 3

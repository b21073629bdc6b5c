"""Metrics against golden numbers computed by hand, as shown in the comments."""

import json
import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_envs.evaluate import Z95, evaluate, interval, paired_difference, wilson

from .episodes import episode, several


def test_wilson_equals_the_hand_computed_interval() -> None:
    # 1 of 2: the centre is 1/2 by symmetry, the half-width z/(1+z²/2) * sqrt(1/8 + z²/16) = z/2 / sqrt(2+z²).
    half = Z95 / 2 / math.sqrt(2 + Z95**2)
    found = wilson(0.5, 2)
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half))
    assert found.low == pytest.approx(0.0945, abs=1e-4)


def test_wilson_stays_within_0_and_1() -> None:
    # 0 of n: low is 0 and high z²/(n+z²); with n = 10 that is 3.8415/13.8415.
    assert wilson(0.0, 10).low == 0.0
    assert wilson(0.0, 10).high == pytest.approx(3.841459 / 13.841459)
    assert wilson(1.0, 10).high == 1.0
    assert wilson(1.0, 10).low == pytest.approx(1 - 3.841459 / 13.841459)


def test_wilson_agrees_with_a_published_value() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263 by the score method without correction.
    found = wilson(81 / 263, 263)
    assert (round(found.low, 4), round(found.high, 4)) == (0.2553, 0.3662)
    found = wilson(15 / 148, 148)
    assert (round(found.low, 4), round(found.high, 4)) == (0.0624, 0.1605)


def test_one_episode_per_task_gives_plain_wilson() -> None:
    assert interval([1, 0, 0, 1, 1], 5) == wilson(0.6, 5)


def test_agreeing_episodes_of_a_task_count_once() -> None:
    # Ten tasks, 8 episodes each, each task always solved or never: the interval is that of 10 episodes, not of 80.
    assert interval([1.0] * 4 + [0.0] * 6, 80) == wilson(0.4, 10)


def test_the_effective_number_of_episodes_equals_the_known_one() -> None:
    # Task means 0, .5, .5, 1: mean .5; variance 1/8 of them, (1/8)/3 = 1/24 of their mean; .25 / (1/24) = 6.
    assert interval([0, 0.5, 0.5, 1], 8) == wilson(0.5, 6)


def test_equal_task_means_give_the_interval_of_the_number_of_tasks() -> None:
    assert interval([0.5, 0.5], 8) == wilson(0.5, 2)


def test_the_effective_number_is_at_most_that_of_episodes() -> None:
    # Task means .4, .6: mean .5, variance .01 of them, .01 of their mean; .25/.01 = 25, but there were 20 episodes.
    assert interval([0.4, 0.6], 20) == wilson(0.5, 20)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 10))
@example([0.0] * 6 + [1e-71], 1)  # rounding put the lower bound above the mean
def test_an_interval_lies_in_0_1_and_contains_its_mean(means: list[float], each: int) -> None:
    found = interval(means, len(means) * each)
    assert 0 <= found.low <= found.mean <= found.high <= 1
    assert found.high - found.low > 0


def test_the_interval_covers_the_truth_better_than_a_bootstrap() -> None:
    rng, truth, held = random.Random(0), 0.05, 0
    for _ in range(400):
        means = []
        for _ in range(25):
            p = rng.betavariate(truth * 8, (1 - truth) * 8)
            means.append(sum(rng.random() < p for _ in range(4)) / 4)
        found = interval(means, 100)
        held += found.low <= truth <= found.high
    assert 0.93 <= held / 400 <= 0.99


def test_metrics_equal_hand_computed_values() -> None:
    episodes = [
        *several("t/1", 1, 1, 0, turns=2, invalid=1),
        episode("t/2", 0, turns=5),
        episode("t/2", 0, seed=1, turns=1, stop="env_error"),
        episode("t/3", 0.5, group="hard", turns=3),
    ]
    found = evaluate(episodes)
    easy, hard = found.groups
    assert (easy.group, hard.group) == ("easy", "hard")
    assert (easy.tasks, easy.episodes, easy.excluded) == (2, 4, 1)
    assert easy.success is not None
    assert easy.success.mean == pytest.approx((2 / 3 + 0) / 2)  # over tasks, not 2 of 4 episodes
    assert easy.turns == pytest.approx((2 + 5) / 2)
    assert easy.invalid_actions == pytest.approx(3 / 11)
    assert easy.stop_reasons == {"env_error": 1, "success": 2, "turn_limit": 2}
    assert hard.success is not None and hard.score is not None
    assert (hard.success.mean, hard.score.mean) == (0, 0.5)
    assert (found.overall.tasks, found.overall.episodes, found.overall.env_id) == (3, 5, "A-v0")


def test_infrastructure_errors_alone_give_no_rate() -> None:
    row = evaluate([episode("t/1", 0, stop="env_error"), episode("t/2", 0, turns=0, stop="closed")]).overall
    assert (row.tasks, row.episodes, row.excluded) == (0, 0, 2)
    assert [row.success, row.score, row.turns, row.invalid_actions] == [None] * 4
    assert row.stop_reasons == {"closed": 1, "env_error": 1}


def test_no_episodes_give_empty_metrics() -> None:
    found = evaluate([])
    assert (found.environments, found.groups, found.overall.tasks) == ((), (), 0)


def test_environments_are_separate_even_if_their_tasks_share_an_id() -> None:
    found = evaluate([episode("t/1", 1, env_id="B-v0"), episode("t/1", 0, env_id="A-v0")])
    assert [row.env_id for row in found.environments] == ["A-v0", "B-v0"]
    assert [row.env_id for row in found.groups] == ["A-v0", "B-v0"]
    assert (found.overall.env_id, found.overall.tasks) == (None, 2)


def test_groups_are_in_the_given_order() -> None:
    episodes = [episode(f"t/{group}", 1, group=group) for group in ("c", "a", "d", "b")]
    assert [row.group for row in evaluate(episodes, group_order=["d", "b"]).groups] == ["d", "b", "a", "c"]


def test_the_order_of_episodes_does_not_matter() -> None:
    episodes = [e for n in range(20) for e in several(f"t/{n}", n % 2, n % 3 == 0, n % 7 / 7, turns=1 + n % 4)]
    shuffled = random.Random(0).sample(episodes, len(episodes))
    assert evaluate(shuffled) == evaluate(episodes)


def test_the_result_converts_to_json() -> None:
    found = evaluate([episode("t/1", 1)])
    row = json.loads(json.dumps(found.to_json()))
    assert row["overall"]["success"] == {"mean": 1.0, "low": pytest.approx(0.2065, abs=1e-4), "high": 1.0}
    assert row["groups"][0]["group"] == "easy"
    assert row == found.to_json()


def test_a_paired_difference_equals_the_hand_computed_one() -> None:
    before = [*several("t/1", 0, 1), *several("t/2", 0, 0)]
    after = [*several("t/1", 1, 1), *several("t/2", 0, 1)]
    # Each task gained one half. With pseudo-tasks of +1/2 and -1/2: mean 1/4, variance 1/4 - 1/16 = 3/16, of the mean
    # of four 3/64. Equal gains do not make the interval a point.
    found = paired_difference(before, after)
    half = Z95 * math.sqrt(3 / 64)
    assert (found.mean, found.tasks, found.excluded) == (0.5, 2, 0)
    assert (found.low, found.high) == pytest.approx((0.25 - half, 0.25 + half))
    assert found.to_json()["mean"] == 0.5


def test_the_paired_interval_equals_the_hand_computed_one() -> None:
    # Of 10 tasks 5 gained 1 and 5 gained 0. Bonett and Price: p12 = (5 + 1) / 12, p21 = (0 + 1) / 12, and
    # 5/12 ± z sqrt((p12 + p21 - (5/12)²) / 12). (The percentile bootstrap gives [.2, .8]; with
    # few tasks it covers the truth too rarely.)
    before = [episode(f"t/{n}", 0) for n in range(10)]
    after = [episode(f"t/{n}", n % 2) for n in range(10)]
    found = paired_difference(before, after)
    half = Z95 * math.sqrt((7 / 12 - 25 / 144) / 12)
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 5 / 12 - half, 5 / 12 + half))
    assert paired_difference(before, after) == found


def test_pairing_removes_the_difficulty_of_tasks() -> None:
    # Half of the tasks are always solved, half never; ten of the hard ones are learned.
    before = [episode(f"t/{n}", n % 2) for n in range(100)]
    after = [episode(f"t/{n}", n % 2 or n < 20) for n in range(100)]
    found = paired_difference(before, after)
    assert found.mean == pytest.approx(0.1)
    assert 0.03 < found.low < found.high < 0.17
    unpaired = [evaluate(side).overall.success for side in (before, after)]
    assert unpaired[0] and unpaired[1]
    assert unpaired[0].high > unpaired[1].low  # the two intervals overlap; the paired one excludes 0


def test_scores_can_be_compared() -> None:
    before, after = [episode("t/1", 0, turns=9)], [episode("t/1", 0, turns=4)]
    assert paired_difference(before, after, value=lambda t: len(t.turns)).mean == -5


def test_a_task_without_a_usable_episode_in_one_run_is_excluded() -> None:
    before = [episode("t/1", 0), episode("t/2", 0, stop="env_error")]
    after = [episode("t/1", 1), episode("t/2", 1)]
    found = paired_difference(before, after)
    assert (found.mean, found.tasks, found.excluded) == (1, 1, 1)
    with pytest.raises(UsageError, match="no task with a usable episode"):
        paired_difference(before[1:], after[1:])


def test_different_tasks_cannot_be_paired() -> None:
    with pytest.raises(UsageError, match=r"2 of 3 are in only one, for example 't/1'"):
        paired_difference([episode("t/1", 0), episode("t/2", 0)], [episode("t/2", 0), episode("t/3", 0)])

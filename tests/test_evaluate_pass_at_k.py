"""pass@k, pass^k and bootstrap intervals, against enumeration, numbers by hand and simulation."""

import itertools
import json
import random
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.evaluate import evaluate, wilson
from agentgym_envs.evaluate.estimates import FEW, TaskValues, bootstrap, estimates, share
from agentgym_envs.evaluate.pass_at_k import pass_at_k, pass_hat_k
from tests.trying import examples

from .episodes import episode, several

successes = st.lists(st.booleans(), min_size=1, max_size=7)


@given(successes, st.data())
def test_pass_at_k_and_pass_hat_k_are_means_over_all_choices(episodes: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(episodes)))
    choices = list(itertools.combinations(episodes, k))
    n, c = len(episodes), sum(episodes)
    assert pass_at_k(n, c, k) == pytest.approx(fmean(any(choice) for choice in choices))
    assert pass_hat_k(n, c, k) == pytest.approx(fmean(all(choice) for choice in choices))


@given(st.lists(st.lists(st.sampled_from([0, 0.25, 1]), min_size=1, max_size=5), min_size=1, max_size=6))
def test_metrics_by_k_are_means_over_tasks_of_means_over_choices(tasks: list[list[float]]) -> None:
    found = evaluate(e for number, task in enumerate(tasks) for e in several(f"t/{number}", *task)).overall
    assert found.max_k == max(map(len, tasks))
    for k in range(1, found.max_k + 1):
        enough = [list(itertools.combinations(task, k)) for task in tasks if len(task) >= k]
        assert found.fewer_than_k[k] == len(tasks) - len(enough)
        assert found.avg_at_k[k].mean == pytest.approx(fmean(fmean(map(fmean, choices)) for choices in enough))
        anyone = fmean(fmean(1 in choice for choice in choices) for choices in enough)
        everyone = fmean(fmean(set(choice) == {1} for choice in choices) for choices in enough)
        assert found.pass_at_k[k].mean == pytest.approx(anyone)
        assert found.pass_hat_k[k].mean == pytest.approx(everyone)
        for estimate in (found.avg_at_k[k], found.pass_at_k[k], found.pass_hat_k[k]):
            assert 0 <= estimate.low <= estimate.mean + 1e-12
            assert estimate.mean <= estimate.high + 1e-12 <= 1 + 2e-12


def test_pass_at_1_is_the_success_rate() -> None:
    found = evaluate([*several("t/1", 1, 0, 0), *several("t/2", 1, 1, 1), *several("t/3", 0)]).overall
    assert found.pass_at_k[1] == found.pass_hat_k[1] == found.success
    assert found.avg_at_k[1] == found.score == found.success  # with scores of 0 and 1


def test_pass_at_n_is_a_rate_over_tasks() -> None:
    found = evaluate(e for number in range(60) for e in several(f"t/{number}", number % 3 == 0, number % 2)).overall
    assert found.pass_at_k[2] == wilson(fmean(n % 3 == 0 or n % 2 == 1 for n in range(60)), 60)
    assert found.pass_hat_k[2] == wilson(10 / 60, 60)


def test_tasks_with_fewer_than_k_episodes_are_left_out_and_counted() -> None:
    found = evaluate([*several("t/1", 0, 1), *several("t/2", 1)]).overall
    assert found.fewer_than_k == {1: 0, 2: 1}
    assert (found.max_k, found.common_k) == (2, 1)
    assert (found.pass_at_k[2].mean, found.pass_hat_k[2].mean, found.avg_at_k[2].mean) == (1, 0, 0.5)
    spoiled = [episode("t/2", 0, seed=seed, stop="env_error") for seed in (1, 2)]
    assert evaluate([*several("t/1", 0, 1), *several("t/2", 1), *spoiled]).overall.fewer_than_k == {1: 0, 2: 1}


def test_partial_scores_get_a_bootstrap_and_few_tasks_a_rate_interval() -> None:
    scores = [0.5 * (number % 3) for number in range(FEW)]
    many = evaluate(episode(f"t/{number}", score) for number, score in enumerate(scores)).overall
    few = evaluate(episode(f"t/{number}", score) for number, score in enumerate(scores[1:])).overall
    [bounds] = bootstrap([scores])
    assert many.score and few.score and bounds
    assert (many.score.low, many.score.high) == bounds
    # Scores of 0, .5, 1 in equal shares have variance 1/6, a rate of .5 has 1/4: 49 tasks count as 73.5,
    # times the correction (1.96 / t(48))² = .95 for the uncertain variance.
    assert few.score.high - few.score.low == pytest.approx(2 * (wilson(0.5, 70).high - 0.5), rel=0.01)


def test_few_partial_scores_get_the_interval_of_wilson() -> None:
    # 0, .5, 1: mean .5; variance 1/6 of them, 1/12 of their mean; .25 * 12 = 3, times (1.96 / 4.17)², at least 3 tasks.
    found = evaluate(episode(f"t/{number}", number / 2) for number in range(3)).overall
    assert found.score == wilson(0.5, 3)
    # .4, .5, .6: 1/300 of their mean; .25 * 300 = 75, times (1.96 / 4.17)² = .2208.
    found = evaluate(episode(f"t/{number}", number / 10) for number in (4, 5, 6)).overall
    assert found.score and found.score.low == pytest.approx(wilson(0.5, 75 * 0.2208).low, abs=1e-4)


def test_the_interval_of_equal_scores_has_a_width() -> None:
    found = evaluate(episode(f"t/{number}", 0.5) for number in range(100)).overall
    assert found.score == wilson(0.5, 100)


def test_the_bootstrap_equals_a_plain_loop() -> None:
    values = [number % 7 / 7 for number in range(40)]
    rng = np.random.Generator(np.random.PCG64(3))
    means = [np.array(values)[rng.integers(40, size=40)].mean() for _ in range(500)]
    assert bootstrap([values], resamples=500, seed=3) == [pytest.approx(np.percentile(means, [2.5, 97.5]))]


def test_the_bootstrap_has_the_width_of_the_normal_limit() -> None:
    values = np.random.default_rng(0).random(3000)
    [bounds] = bootstrap([values.tolist()])
    half = 1.96 * values.std() / 3000**0.5
    assert bounds == pytest.approx((values.mean() - half, values.mean() + half), abs=0.06 * half)


def test_columns_of_different_lengths_are_independent() -> None:
    one, two = [number % 3 / 3 for number in range(60)], [number % 5 / 5 for number in range(80)]
    both = estimates({"one": TaskValues(one, 60, "bounded"), "two": TaskValues(two, 80, "count")})
    assert both["one"] == estimates({"one": TaskValues(one, 60, "bounded")})["one"]
    assert both["two"] == estimates({"two": TaskValues(two, 80, "count")})["two"]


def test_turns_of_few_tasks_get_the_interval_of_student() -> None:
    # 1, 2, 4, 6, 7: mean 4, standard deviation 2.55, t(4) = 2.776: half-width 2.776 * 2.55 / sqrt(5) = 3.16.
    found = estimates({"turns": TaskValues([1, 2, 4, 6, 7], 5, "count")})["turns"]
    assert found is not None and found.mean == 4
    assert (found.low, found.high - 4) == (1, 3)  # within the range of the values
    found = estimates({"turns": TaskValues([1, 4, 4, 4, 7], 5, "count")})["turns"]
    assert found is not None and found.high - 4 == 4 - found.low == pytest.approx(2.63, rel=0.04)
    assert evaluate(episode(f"t/{turns}", 0, turns=turns) for turns in (2, 4, 6, 8)).overall.turns_estimate is None
    assert evaluate(episode(f"t/{turns}", 0, turns=turns) for turns in (1, 3, 2, 9, 12)).overall.turns_estimate


def test_the_share_of_invalid_turns_equals_the_known_one() -> None:
    # Of 1, 2 and 3 turns 1, 1 and 1 invalid: 3/6. Residuals 1/2, 0, -1/2: variance (1/2) * 3/2 / 36 = 1/48;
    # effective turns .25 * 48 = 12, but there are 6.
    found = evaluate(episode(f"t/{turns}", 0, turns=turns, invalid=1) for turns in (1, 2, 3)).overall
    assert found.invalid_actions == 0.5
    assert found.invalid_actions_estimate == wilson(0.5, 6)
    # One task with invalid turns only and one without any: two tasks, not eight turns.
    clustered = evaluate([episode("t/1", 0, turns=4, invalid=4), episode("t/2", 0, turns=4)]).overall
    assert clustered.invalid_actions_estimate == wilson(0.5, 2)
    assert share([0.0, 0.0], [5.0, 9.0]) == wilson(0.0, 2)


def test_tokens_are_averaged_over_episodes_that_count_them() -> None:
    counted = episode("t/1", 1, turns=3, tokens=7)
    silent = episode("t/2", 1)
    half = episode("t/3", 1, turns=2)
    half = type(half).from_json(half.to_json().replace('"info": {', '"info": {"tokens": 5, ', 1))
    agent = episode("t/4", 1, tokens=7, meta={"agent": {"answer_tokens": 39}})
    more = [episode(f"t/{number}", 1, turns=1, tokens=30) for number in (5, 6)]
    unsure = episode("t/7", 1, tokens=7, meta={"agent": {"answer_tokens": None}})
    found = evaluate([counted, silent, half, agent, unsure, *more]).overall
    assert found.tokens_estimate is None  # of four tasks
    assert found.tokens == pytest.approx((21 + 39 + 30 + 30) / 4)
    assert (found.tokens_known, found.episodes) == (4, 7)
    assert evaluate([silent, half]).overall.tokens is None
    few = evaluate([counted, agent]).overall
    assert (few.tokens, few.tokens_estimate) == (30, None)  # a mean, but too few tasks for an interval


def test_the_turns_of_earlier_attempts_count() -> None:
    def turns(count: int, invalid: int) -> list[dict[str, object]]:
        return [{"info": {"invalid_action": "what?" if number < invalid else None}} for number in range(count)]

    attempts = [{"turns": turns(4, 2)}, {"turns": turns(3, 0)}]
    found = evaluate([episode("t/1", 1, turns=3, invalid=1, meta={"attempts": attempts})]).overall
    assert (found.turns, found.invalid_actions) == (10, 0.3)


@pytest.mark.parametrize("attempts", [3, "two", [1], [{"turns": 2}], {"turns": []}, None])
def test_malformed_attempts_are_ignored(attempts: object) -> None:
    meta = {"attempts": attempts, "agent": "mine"}
    assert evaluate([episode("t/1", 1, turns=3, meta=meta)]) == evaluate([episode("t/1", 1, turns=3)])


def test_agentgym_rl_metrics_equal_hand_computed_values() -> None:
    episodes = [
        *several("t/1", 0, 0.25),  # passes by its rule, with a positive score
        *several("t/2", 0, 0),
        episode("t/3", 0.5, stop="env_error"),  # its client records a score of 0
    ]
    found = evaluate(episodes).overall.agentgym_rl
    assert found == {"avg@n": 0.25 / 5, "pass@n": pytest.approx(1 / 3)}
    assert evaluate([]).overall.agentgym_rl == {"avg@n": None, "pass@n": None}


def test_metrics_by_k_are_empty_without_usable_episodes() -> None:
    found = evaluate([episode("t/1", 0, stop="env_error")]).overall
    assert (found.max_k, found.avg_at_k, found.pass_at_k, found.pass_hat_k, found.fewer_than_k) == (0, {}, {}, {}, {})
    assert found.common_k == 0
    assert (found.tokens, found.turns_estimate, found.invalid_actions_estimate) == (None, None, None)


def test_the_result_equals_the_golden_table() -> None:
    episodes = [
        e
        for number in range(6)
        for e in several(f"t/{number}", number % 2, number % 3 == 0, number / 8, turns=2 + number, tokens=10)
    ]
    row = evaluate(episodes).to_json()["groups"][0]
    assert json.loads(json.dumps(row)) == row
    text = {
        name: [round(row[name][part], 4) for part in ("mean", "low", "high")]
        for name in ("success", "score", "turns_estimate", "tokens_estimate")
    } | {name: [round(row[name][k]["mean"], 4) for k in "123"] for name in ("avg_at_k", "pass_at_k", "pass_hat_k")}
    # Successes of the six tasks: 1, 1, 0, 2, 0, 1 of 3 (5/18); scores 5/3 + 15/24 over 6 tasks.
    assert text == {
        "success": [0.2778, 0.125, 0.5087],  # the effective number is limited to 18 episodes: 5 of 18
        "score": [0.3819, 0.1722, 0.6473],
        "turns_estimate": [4.5, 2.5388, 6.4612],  # 4.5 ± 2.571 sqrt(3.5 / 6), within 0.2 %
        "tokens_estimate": [45.0, 25.3884, 64.6116],  # ten times that
        "avg_at_k": [0.3819] * 3,
        "pass_at_k": [0.2778, 0.5, 0.6667],  # 1 of 3: 1/3, 2/3, 1; 2 of 3: 2/3, 1, 1
        "pass_hat_k": [0.2778, 0.0556, 0.0],
    }


@examples(20)
@given(st.permutations(range(12)))
def test_the_order_of_episodes_does_not_matter(order: Sequence[int]) -> None:
    episodes = [e for n in range(4) for e in several(f"t/{n}", n / 3, n % 2, 0.1 * n, turns=1 + n, tokens=n)]
    assert evaluate(episodes[index] for index in order) == evaluate(episodes)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [10, 25, 60, 100])
def test_intervals_cover_the_truth(tasks: int) -> None:
    """Check the coverage of 400 simulated intervals for three kinds of values with known means."""
    rng = random.Random(tasks)
    held = {"partial": 0, "pass": 0, "turns": 0}
    truth = {"partial": 0.3, "pass": 1 - 1.4 * 2.4 / (2 * 3), "turns": 10.0}  # E[(1-p)²] of Beta(.6, 1.4)
    for _ in range(400):
        solved = [rng.betavariate(0.6, 1.4) for _ in range(tasks)]
        plays = [sum(rng.random() < p for _ in range(4)) for p in solved]
        columns = {
            "partial": TaskValues([fmean(rng.random() < p for _ in range(8)) for p in solved], tasks, "bounded"),
            "pass": TaskValues([pass_at_k(4, c, 2) for c in plays], 4 * tasks, "bounded"),
            "turns": TaskValues([rng.gammavariate(4, 2.5) for _ in solved], tasks, "count"),
        }
        for name, found in estimates(columns).items():
            assert found
            held[name] += found.low <= truth[name] <= found.high
    assert all(0.90 <= count / 400 <= 0.99 for count in held.values()), held

"""Preference pairs: only between equal starts, in the documented order, deterministic by seed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import TrajectoryError, UsageError
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn
from agentgym_trl.pairs import Pair, Preference, load_trajectories, make_pairs, prefer
from tests.adapters.trl.small import make_trainer
from tests.trying import examples

SUCCESS, SCORE, TURNS = Preference


def episode(
    actions: str = "ab",
    score: float = 0.0,
    success: bool = False,
    *,
    task: str = "toy/1",
    seed: int = 0,
    stop: str = "failure",
    **fields: Any,
) -> Trajectory:
    """An episode of one-letter actions."""
    what = Task(task, "train", "easy", "win", {})
    turns = tuple(Turn(f"seen {number}", action, 0.0) for number, action in enumerate(actions))
    known = {"env_id": "Toy-v0", "instructions": "", "final_observation": "", "error": None, **fields}
    return Trajectory(task=what, seed=seed, turns=turns, score=score, success=success, stop_reason=stop, **known)


def won(actions: str = "a", score: float = 1.0, **fields: Any) -> Trajectory:
    return episode(actions, score, True, stop="success", **fields)


EPISODES = st.builds(
    episode,
    actions=st.text("ab", max_size=4),
    score=st.sampled_from([0.0, 0.1 + 0.2, 0.3, 0.5, 1.0]),
    success=st.booleans(),
    task=st.sampled_from(["toy/1", "toy/2"]),
    seed=st.integers(0, 1),
    stop=st.sampled_from(["failure", "turn_limit", "env_error"]),
    env_id=st.sampled_from(["Toy-v0", "Other-v0"]),
    env_kwargs=st.sampled_from([{}, {"easy": True}]),
    instructions=st.sampled_from(["", "Think."]),
)


def start_of(trajectory: Trajectory) -> Any:
    known = (trajectory.env_id, str(trajectory.env_kwargs), trajectory.task.id, trajectory.seed)
    return (*known, trajectory.instructions, trajectory.turns[0].observation)


def rank(pair: Pair) -> tuple[Preference, bool]:
    """The expected kind of the pair, and whether the chosen side is the better one."""
    chosen, rejected = pair.chosen, pair.rejected
    if chosen.success != rejected.success:
        return SUCCESS, chosen.success
    if abs(chosen.score - rejected.score) > 1e-6:
        return SCORE, chosen.score > rejected.score
    return TURNS, chosen.success and len(chosen.turns) < len(rejected.turns)


@given(st.lists(EPISODES, max_size=24), st.integers(1, 5), st.integers(0, 3), st.sampled_from([0.0, 0.3]))
@examples(80)
def test_pairs_have_one_start_and_a_preference(episodes: list[Trajectory], most: int, seed: int, margin: float) -> None:
    def pair_up(**more: Any) -> Any:
        return make_pairs(episodes, max_pairs_per_task=most, min_margin=margin, seed=seed, **more)

    try:
        found = pair_up()
    except UsageError:
        usable = [e for e in episodes if e.usable]
        assert not any(
            start_of(a) == start_of(b) and prefer(a, b, margin) for n, a in enumerate(usable) for b in usable[:n]
        )
        return
    for pair in found.pairs:
        assert start_of(pair.chosen) == start_of(pair.rejected)
        assert pair.chosen.usable and pair.rejected.usable
        assert rank(pair) == (pair.preference, True)
        assert pair.chosen.actions != pair.rejected.actions
        assert pair.preference is not SCORE or pair.chosen.score - pair.rejected.score > margin - 1e-6
    by_start = Counter(start_of(pair.chosen) for pair in found.pairs)
    assert max(by_start.values()) <= most
    starts = {start_of(e) for e in episodes if e.usable}
    assert found.summary.starts == len(starts)
    assert found.summary.starts_without == len(starts) - len(by_start)
    assert found.summary.pairs == {p: sum(pair.preference is p for pair in found.pairs) for p in Preference}
    assert found.summary.unusable == sum(not e.usable for e in episodes)
    assert pair_up() == found and pair_up().digest() == found.digest()
    one = pair_up(tasks=1)
    assert {start_of(pair.chosen) for pair in one.pairs} <= set(by_start)
    assert len({start_of(pair.chosen) for pair in one.pairs}) == 1


@pytest.mark.parametrize(
    "better, worse, preference",
    [
        (won("aaaa"), episode("b", 0.9), SUCCESS),
        (won("aaaa", 0.2), episode("b", 0.9), SUCCESS),  # a success with a low score is a success
        (episode("abc", 0.5), episode("b", 0.25), SCORE),
        (won("abc", 1.0), won("b", 0.5), SCORE),
        (won("ab"), won("abc"), TURNS),
    ],
    ids=str,
)
def test_prefer_ignores_the_order_of_its_arguments(
    better: Trajectory, worse: Trajectory, preference: Preference
) -> None:
    assert prefer(better, worse) == prefer(worse, better) == Pair(better, worse, preference)


@pytest.mark.parametrize(
    "first, second",
    [
        (episode("a"), episode("bb")),  # two failures with equal scores: fewer turns are not better
        (episode("a", 0.1 + 0.2), episode("b", 0.3)),
        (won("a"), won("b")),
        (episode("ab"), won("ab")),  # equal actions, so neither is better
    ],
)
def test_equal_trajectories_make_no_pair(first: Trajectory, second: Trajectory) -> None:
    assert prefer(first, second) is None and prefer(second, first) is None


def test_a_margin_is_for_scores_only() -> None:
    low, high = episode("a", 0.25), episode("b", 0.5)
    assert prefer(low, high, 0.25) == Pair(high, low, SCORE)
    assert prefer(low, high, 0.26) is None
    assert prefer(won("a", 0.9), won("abc", 1.0), 0.5) is None  # the scores differ, so turns do not decide
    assert prefer(won("abc", 0.5), episode("a", 0.5), 1.0) == Pair(won("abc", 0.5), episode("a", 0.5), SUCCESS)


def test_the_strongest_kinds_come_first_and_kinds_can_be_left_out() -> None:
    group = [won("a"), won("ab"), won("abc"), episode("b", 0.5), episode("c", 0.25)]
    assert dict(make_pairs(group, max_pairs_per_task=99).summary.pairs) == {SUCCESS: 6, SCORE: 1, TURNS: 3}
    assert dict(make_pairs(group, max_pairs_per_task=7).summary.pairs) == {SUCCESS: 6, SCORE: 1, TURNS: 0}
    assert dict(make_pairs(group, max_pairs_per_task=99, preferences=["turns"]).summary.pairs) == {TURNS: 3}
    drawn = {make_pairs(group, max_pairs_per_task=2, seed=seed).digest() for seed in range(20)}
    assert len(drawn) > 5


def test_the_pairs_of_a_task_do_not_depend_on_other_tasks() -> None:
    group = [won("a"), won("ab"), episode("b"), episode("c"), episode("d")]
    other = [replace(e, seed=7) for e in group]
    alone = make_pairs(group, max_pairs_per_task=2).pairs
    assert make_pairs([*other, *group], max_pairs_per_task=2).pairs[2:] == alone
    assert make_pairs([*group, *group], max_pairs_per_task=2).pairs == alone  # the same file twice


@pytest.mark.parametrize(
    "options, part",
    [
        ({"max_pairs_per_task": 0}, "--max-pairs-per-task must be at least 1, got 0"),
        ({"tasks": 0}, "--tasks must be at least 1, got 0"),
        ({"min_margin": -0.1}, "--min-margin is a difference of scores, from 0 to 1; got -0.1"),
        ({"min_margin": float("nan")}, "got nan"),
        ({"preferences": ["luck"]}, "--preferences must name some of success, score, turns; got luck"),
        ({"preferences": []}, "got none"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError, match=re.escape(part)):
        make_pairs([won("a"), episode("b")], **options)


@pytest.mark.parametrize(
    "make, part",
    [
        (list, "from 0 trajectories; 0 of 0 starts"),
        (lambda: [won("a"), episode("b", seed=1)], "2 of 2 starts (task and seed) gave none"),
        (lambda: [won("a"), episode("b", stop="env_error")], "from 2 trajectories, 1 of them unusable; 1 of 1 starts"),
    ],
)
def test_trajectories_without_pairs_are_refused(make: Callable[[], list[Trajectory]], part: str) -> None:
    with pytest.raises(UsageError, match=re.escape(part)) as caught:
        make_pairs(make())
    assert "OUT/trajectories/*.jsonl" in str(caught.value) and "agentgym eval" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_are_read_in_order(tmp_path: Path) -> None:
    written = [won("a"), episode("b"), episode("c")]
    for name, part in (("x", written[:1]), ("y", written[1:])):
        with TrajectoryWriter(tmp_path / name) as writer:
            for trajectory in part:
                writer.write(trajectory)
    assert load_trajectories([tmp_path / "x", tmp_path / "y"]) == written
    with pytest.raises(UsageError, match=r"--trajectories .*none cannot be read: No such file"):
        load_trajectories([tmp_path / "x", tmp_path / "none"])
    (tmp_path / "z").write_text("{}\n")
    with pytest.raises(TrajectoryError, match="z:1: not a trajectory"):
        load_trajectories([tmp_path / "z"])


@pytest.mark.train
def test_the_trajectories_of_a_training_run_make_pairs(tokenizer: Any, tmp_path: Path) -> None:
    """Their groups share task and seed, as pairs need."""
    make_trainer(tmp_path, tokenizer, max_steps=1).train()
    played = load_trajectories(sorted((tmp_path / "trajectories").glob("*.jsonl")))
    found = make_pairs(played)
    assert found.summary.starts == len(played) / 4 and found.summary.starts_without == 0
    assert {pair.preference for pair in found.pairs} == {SCORE}

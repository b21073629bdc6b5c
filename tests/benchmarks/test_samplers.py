"""The figures of the studies of samplers and of the dial, against hand-computed ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agentgym_envs.core import text_env
from benchmarks import difficulty, samplers

CURVE = [
    {"tokens": tokens, "success": success}
    for tokens, success in [(0.0, 0.1), (10.0, 0.3), (20.0, 0.5), (30.0, 0.7), (40.0, 0.9)]
]


def test_tokens_to_a_success_are_interpolated() -> None:
    """Between the means of neighbours: 0.2, 0.3, 0.5, 0.7, 0.8."""
    assert samplers.tokens_to(CURVE, 0.4) == pytest.approx(15.0)
    assert samplers.tokens_to(CURVE, 0.75) == pytest.approx(35.0)
    assert samplers.tokens_to(CURVE, 0.1) == 0.0
    assert samplers.tokens_to(CURVE, 0.95) == 40.0  # never reached


def test_the_target_is_a_share_of_the_gain() -> None:
    assert samplers.target_of(CURVE) == pytest.approx(0.1 + samplers.SHARE * (0.7 - 0.1))


def test_a_curve_sums_the_tokens_of_training() -> None:
    rows: list[dict[str, Any]] = [{"step": 0, "eval/success": 0.1}, {"step": 4, "eval/success": 0.4}]
    rows += [{"step": step, "rollout/tokens": 5, "rollout/zero_variance_groups": step / 10} for step in (1, 2, 3, 4)]
    found = samplers.curve_of(rows)
    assert [(point["step"], point["success"]) for point in found] == [(0, 0.1), (4, 0.4)]
    assert [point["tokens"] for point in found] == [0.0, 20.0]
    assert [point["zero_variance_groups"] for point in found] == pytest.approx([0.0, 0.25])


def test_the_table_has_goals_of_four_depths(tmp_path: Path) -> None:
    path = samplers.write_recipes(tmp_path / "recipes.json")
    settings = samplers.Graded(recipes=path)
    tasks: Any = text_env(gym.make(settings.env_id, **settings.env_kwargs)).tasks
    turns = {group: {tasks.difficulty(task).turns for task in tasks.sample(groups=[group])} for group in tasks.groups}
    assert turns == {"depth-1": {2}, "depth-2": {3}, "depth-3": {4}, "depth-4": {5}}
    assert len(tasks.sample()) == 48 == len(json.loads(Path(path).read_text())["base_items"]) * 4


def test_only_a_significant_rise_counts() -> None:
    assert difficulty.rises([0.9, 0.5, 0.55, 0.1]) == []
    assert difficulty.rises([0.5, 0.2, 0.6]) == [2]

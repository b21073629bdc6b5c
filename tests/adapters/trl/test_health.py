"""The signs of a collapse, and the rule that stops a run."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from agentgym_trl.health import WINDOW, HealthWatch, collapse, signs

HEALTHY = {
    "rollout/score": 0.5,
    "rollout/success": 0.5,
    "rollout/truncated_answers": 0.0,
    "rollout/zero_variance_groups": 0.2,
    "effective_sample_size": 1.0,
    "entropy": 0.6,
    "kl": 0.01,
}
LATER: list[tuple[str, dict[str, float]]] = [
    ("entropy", {"entropy": 1.7}),
    ("answers", {"rollout/truncated_answers": 0.3}),
    ("groups", {"rollout/zero_variance_groups": 0.95}),
    ("weights", {"effective_sample_size": 0.4}),
    ("kl", {"kl": 1.5}),
    ("score", {"rollout/score": 0.3}),
]


def rows(*parts: dict[str, float]) -> list[dict[str, Any]]:
    """`WINDOW` steps for each part."""
    return [{**HEALTHY, **part} for part in parts for _ in range(WINDOW)]


def names(found: list[dict[str, Any]]) -> list[str]:
    return [sign.name for sign in signs(found)]


@pytest.mark.parametrize(("name", "later"), LATER)
def test_each_sign_is_found(name: str, later: dict[str, float]) -> None:
    assert names(rows({}, later)) == [name]
    assert names(rows({}, later)[:-1]) == [] or name != "entropy"  # too few steps


def test_a_healthy_run_has_no_sign() -> None:
    assert names(rows({})) == names(rows({}, {})) == []
    solved = {"rollout/success": 0.98, "rollout/score": 0.98, "rollout/zero_variance_groups": 0.95, "entropy": 0.05}
    assert names(rows({}, solved)) == []
    assert names(rows({}, {"entropy": 1.1})) == []  # from 0.6: less than doubled


def test_a_metric_that_is_not_logged_is_no_sign() -> None:
    assert names([{"rollout/score": 0.5}] * 3 * WINDOW) == []
    assert names([{**row, "entropy": None} for row in rows({}, {})]) == []


def test_a_score_below_half_of_its_best_is_a_collapse() -> None:
    assert collapse(rows({}, {"rollout/score": 0.8}, {"rollout/score": 0.45})) is None
    found = collapse(rows({}, {"rollout/score": 0.8}, {"rollout/score": 0.3}))
    assert found == "the score fell from 0.80 to 0.30"
    assert collapse(rows({"rollout/score": 0.08}, {"rollout/score": 0.0})) is None  # it had not learned
    assert collapse([]) is None and collapse(rows({})) is None


def watch(found: list[dict[str, Any]], *, stops: bool) -> tuple[str, Any]:
    out = io.StringIO()
    callback = HealthWatch(stops=stops, console=Console(file=out, width=300))
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    for step in range(1, len(found) + 1):
        state = SimpleNamespace(log_history=found[:step], global_step=step, is_world_process_zero=True)
        callback.on_log(None, state, control, found[step - 1])
        if control.should_training_stop:
            break
    return out.getvalue(), control


def test_a_sign_is_printed_once() -> None:
    text, control = watch(rows({}, {}, {"entropy": 3.0}, {"entropy": 3.0}), stops=True)
    lines = text.splitlines()
    assert len(lines) == 1 and "entropy of sampled tokens rose from 0.60 to" in lines[0]
    assert lines[0].startswith("Warning at step 2") and not control.should_training_stop


def test_a_collapsed_run_stops_only_if_it_was_asked_to() -> None:
    fallen = rows({"rollout/score": 0.8}, {}, {"rollout/score": 0.1})
    text, control = watch(fallen, stops=True)
    assert control.should_training_stop and control.should_save
    assert "Stopping at step" in text and "--stop-on-collapse" in text
    text, control = watch(fallen, stops=False)
    assert not control.should_training_stop and "Stopping" not in text and "the score fell" in text
